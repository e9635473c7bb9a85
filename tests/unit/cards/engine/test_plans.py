"""Plans and their steps."""

import asyncio
import re
from typing import Any

import pytest

from cards.engine import EngineError, PlanStep
from tests.unit.cards.engine.stage import Stage

STEPS = [
    PlanStep("s1", "first", subagent_type="writer"),
    PlanStep("s2", "second", depends_on=("s1",)),
]


class TestPlan:
    async def test_opens_with_all_its_steps_queued(self, stage: Stage) -> None:
        """Spec: EMIT 14.4; Ruling E19."""
        async with stage.turn.plan(
            goal="goal", steps=STEPS, strategy="mixed", rationale="why", plan_id="p1"
        ) as plan:
            assert plan.plan_id == "p1"

        log = await stage.log()
        assert [f["envelope"]["card_id"] for f in log.frames[1:4]] == [
            "plan_p1", "step_s1", "step_s2",
        ]  # fmt: skip
        assert log.only("plan")["payload"] == {
            "plan_id": "p1",
            "goal": "goal",
            "strategy": "mixed",
            "rationale": "why",
            "steps": [
                {
                    "step_id": "s1",
                    "subagent_type": "writer",
                    "user_facing_title": "first",
                },
                {"step_id": "s2", "depends_on": ["s1"], "user_facing_title": "second"},
            ],
        }
        assert log.added("step")[0]["payload"] == {
            "step_id": "s1",
            "subagent_type": "writer",
            "status": "queued",
            "input_summary": "first",
        }
        assert log.parent("step_s1") == "plan_p1"

    async def test_mints_an_id(self, stage: Stage) -> None:
        async with stage.turn.plan(goal="g", steps=[]) as plan:
            assert re.fullmatch("pln_[0-9a-f]{24}", plan.plan_id)
            assert plan.card_id == f"plan_{plan.plan_id}"

    async def test_of_the_same_ids_gets_a_suffix(self, stage: Stage) -> None:
        """Spec: Ruling E7."""
        for _ in range(2):
            async with stage.turn.plan(goal="g", steps=STEPS, plan_id="p1") as plan:
                pass

        log = await stage.log()
        assert re.fullmatch("plan_p1_[0-9a-f]{8}", plan.card_id)
        step_ids = [f["envelope"]["card_id"] for f in log.added("step")]
        assert re.fullmatch("step_s1_[0-9a-f]{8}", step_ids[2])
        assert log.added("step")[2]["payload"]["step_id"] == "s1"
        assert log.parent(step_ids[2]) == plan.card_id

    @pytest.mark.parametrize("odd", ["a b", "实验", "x" * 64, "a\0"])
    async def test_takes_ids_that_are_unsafe(self, stage: Stage, odd: str) -> None:
        steps = [PlanStep(odd, "first")]
        async with stage.turn.plan(goal="g", steps=steps, plan_id=odd) as plan:
            async with plan.step(odd) as step:
                assert re.fullmatch("step_[0-9a-f]{16}", step.card_id)

        assert re.fullmatch("plan_[0-9a-f]{16}", plan.card_id)
        payload = (await stage.log()).only("plan")["payload"]
        assert payload["plan_id"] == odd.replace("\0", "\ufffd")

    async def test_takes_mappings_as_steps(self, stage: Stage) -> None:
        steps: list[Any] = [
            {"id": 1, "description": "first", "subagent_type": "x", "prompt": "p"},
            {"id": "b", "depends_on": [1]},
        ]
        async with stage.turn.plan(goal="g", steps=steps):
            pass

        assert (await stage.log()).only("plan")["payload"]["steps"] == [
            {"step_id": "1", "subagent_type": "x", "user_facing_title": "first"},
            {"step_id": "b", "depends_on": ["1"]},
        ]

    @pytest.mark.parametrize(
        ("steps", "error"),
        [
            ([{"description": "no id"}], ValueError),
            ([{"id": "a", "title": "no such field"}], ValueError),
            ([{"id": "a"}, {"id": "a"}], ValueError),
            ([{"id": "a", "depends_on": "b"}], TypeError),
            ([{"id": "a", "depends_on": 7}], TypeError),
        ],
        ids=repr,
    )
    async def test_refuses_malformed_steps(
        self, stage: Stage, steps: Any, error: type[Exception]
    ) -> None:
        with pytest.raises(error):
            stage.turn.plan(goal="g", steps=steps)

    async def test_refuses_another_strategy(self, stage: Stage) -> None:
        strategy: Any = "random"

        with pytest.raises(ValueError, match="allowed: sequential, parallel, mixed"):
            stage.turn.plan(goal="g", steps=[], strategy=strategy)

    async def test_names_its_steps_when_asked_for_another(self, stage: Stage) -> None:
        async with stage.turn.plan(goal="g", steps=STEPS) as plan:
            with pytest.raises(ValueError, match="no step 's3'; allowed: s1, s2"):
                plan.step("s3")


class TestPlanEnd:
    async def test_skips_steps_that_nobody_began(self, stage: Stage) -> None:
        async with stage.turn.plan(goal="g", steps=STEPS) as plan:
            async with plan.step("s1"):
                pass

        assert (await stage.log()).closes() == [
            ("step", "ok"),
            ("step", "skipped"),
            ("plan", "ok"),
        ]

    async def test_cancels_a_step_that_is_being_worked_on(self, stage: Stage) -> None:
        is_begun = asyncio.Event()

        async with stage.turn.plan(goal="g", steps=STEPS) as plan:

            async def work() -> None:
                async with plan.step("s1") as step:
                    await step.running()
                    is_begun.set()
                    await asyncio.Event().wait()

            task = asyncio.create_task(work())
            await is_begun.wait()
        task.cancel()
        await asyncio.wait([task])

        log = await stage.log()
        assert log.closing("step_s1")["status"] == "cancelled"
        assert log.closing("step_s2")["status"] == "skipped"

    @pytest.mark.parametrize(
        ("exception", "status"),
        [
            (EngineError("model_error", "x"), "failed"),
            (asyncio.CancelledError(), "cancelled"),
        ],
        ids=["failure", "cancellation"],
    )
    async def test_takes_its_steps_along(
        self, stage: Stage, exception: BaseException, status: str
    ) -> None:
        """Spec: Rulings E10, E11, E19."""
        with pytest.raises(type(exception)):
            async with stage.turn.plan(goal="g", steps=STEPS) as plan:
                async with plan.step("s1") as step, stage.turn.agent("x"):
                    await step.running()
                    raise exception

        kinds = ["agent", "step", "step", "plan"]
        assert (await stage.log()).closes() == [(kind, status) for kind in kinds]


class TestStep:
    async def test_opens_no_second_card(self, stage: Stage) -> None:
        async with stage.turn.plan(goal="g", steps=STEPS) as plan:
            async with plan.step("s1") as step:
                assert step.card_id == "step_s1"

        assert len((await stage.log()).added("step")) == 2

    async def test_is_a_parent_for_agents(self, stage: Stage) -> None:
        """Spec: EMIT 10, topology."""
        async with stage.turn.plan(goal="g", steps=STEPS) as plan:
            async with plan.step("s1"), stage.turn.agent("writer") as agent:
                pass

        assert (await stage.log()).parent(agent.card_id) == "step_s1"

    async def test_shows_each_attempt(self, stage: Stage) -> None:
        """Spec: Ruling E19."""
        async with stage.turn.plan(goal="g", steps=STEPS) as plan:
            async with plan.step("s1") as step:
                await step.running()
                await step.running(attempts=2)

        log = await stage.log()
        assert [f["payload"] for f in log.of("step_s1", "card.set")] == [
            {"status": "running", "attempts": 1},
            {"status": "running", "attempts": 2},
        ]
        assert log.closing("step_s1") == {"status": "ok", "inner": {"attempts": 2}}

    async def test_finishes_with_what_it_gave(self, stage: Stage) -> None:
        async with stage.turn.plan(goal="g", steps=STEPS) as plan:
            async with plan.step("s1") as step:
                await step.running()
                step.finish(output_summary="done", deliverables=["art_1"])

        assert (await stage.log()).closing("step_s1") == {
            "status": "ok",
            "inner": {
                "output_summary": "done",
                "deliverables": ["art_1"],
                "attempts": 1,
            },
        }

    async def test_fails_or_is_skipped_as_recorded(self, stage: Stage) -> None:
        async with stage.turn.plan(goal="g", steps=STEPS) as plan:
            async with plan.step("s1") as step:
                step.finish(output_summary="half")
                step.fail("contract_fail", "no table", code="NO_TABLE")
            async with plan.step("s2") as step:
                step.skip()

        log = await stage.log()
        failed = log.closing("step_s1")
        assert (failed["status"], failed["error"]["code"]) == ("failed", "NO_TABLE")
        assert failed["inner"] == {"output_summary": "half"}
        assert log.closing("step_s2") == {"status": "skipped"}
        assert log.of("step_s2")[-1]["envelope"]["severity"] == "warn"

    async def test_that_succeeds_after_a_failure_is_ok(self, stage: Stage) -> None:
        async with stage.turn.plan(goal="g", steps=STEPS) as plan:
            async with plan.step("s1") as step:
                step.fail("contract_fail", "no table")
                step.finish(output_summary="done")

        assert (await stage.log()).closing("step_s1")["status"] == "ok"

    async def test_fails_when_an_exception_comes_through(self, stage: Stage) -> None:
        async with stage.turn.plan(goal="g", steps=STEPS) as plan:
            with pytest.raises(EngineError):
                async with plan.step("s1"):
                    raise EngineError("dependency_fail", "x")

        log = await stage.log()
        assert log.closing("step_s1")["error"]["type"] == "dependency_fail"
        assert log.closing(plan.card_id)["status"] == "ok"

    async def test_of_an_agent_carries_the_agents_id(self, stage: Stage) -> None:
        """Spec: Ruling E19."""
        async with stage.turn.agent("boss") as boss:
            async with boss.plan(goal="g", steps=STEPS) as plan:
                async with plan.step("s1") as step:
                    await step.running()

        log = await stage.log()
        frames = log.of(plan.card_id) + log.of("step_s1") + log.of("step_s2")
        assert {f["envelope"]["agent_id"] for f in frames} == {boss.agent_id}
