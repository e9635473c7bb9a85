"""Asking the user: what is asked, and what comes back."""

import asyncio
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from cards.engine import (
    Answer,
    Plan,
    PlanStep,
    PromptTimeout,
    PromptUnavailable,
)
from cards.engine.asking import MAX_KEY_CHARS, MAX_TIMEOUT_S
from cards.engine.desk import Prompt
from cards.protocol.prompts import MAX_STEP_ID_CHARS
from tests.unit.cards.engine.stage import LAPSED, Stage

DEFAULT_OPTIONS = [
    {"label": "Allow once", "scope": "once", "allow": True},
    {"label": "Allow for this session", "scope": "session", "allow": True},
    {"label": "Deny", "scope": "once", "allow": False},
]
STEPS = [
    PlanStep("s1", "look", subagent_type="researcher", prompt="Look well."),
    PlanStep("s2", "write", depends_on=("s1",)),
]


def answer_with(stage: Stage, decision: str, **payload: Any) -> None:
    stage.desk.answers.append((decision, payload))


def asked(stage: Stage) -> Prompt:
    """Return the only prompt."""
    (prompt,) = stage.desk.prompts
    return prompt


def inner(stage: Stage) -> Any:
    """Return the inner of the only prompt, as clients get it."""
    return msgspec.to_builtins(asked(stage).inner)


async def ask_anything(stage: Stage, question: str = "?", **options: Any) -> Answer:
    answer_with(stage, "denied", selected_options=[], custom_text="")
    return await stage.turn.ask(question, **options)


class TestAsk:
    """Spec: EMIT 7.1, 7.3; engine-api.md, Asking."""

    async def test_offers_options_and_free_text(self, stage: Stage) -> None:
        await ask_anything(stage, "Pick a color", options=["red", {"label": " blue "}])

        assert asked(stage).kind == "question"
        assert asked(stage).timeout_ms == 0
        assert inner(stage) == {
            "question": "Pick a color",
            "options": [{"label": "red"}, {"label": "blue"}],
            "allow_custom": True,
        }

    async def test_leaves_out_what_is_not_offered(self, stage: Stage) -> None:
        """Spec: Ruling E6."""
        await ask_anything(stage, "?", options=["a"], allow_custom=False)
        await ask_anything(stage, "Why\0?")
        await ask_anything(stage, "?", options=[1, 2], multi=True)

        assert [msgspec.to_builtins(each.inner) for each in stage.desk.prompts] == [
            {"question": "?", "options": [{"label": "a"}]},
            {"question": "Why\ufffd?", "allow_custom": True},
            {
                "question": "?",
                "options": [{"label": "1"}, {"label": "2"}],
                "multi": True,
                "allow_custom": True,
            },
        ]

    async def test_gives_the_answer(self, stage: Stage) -> None:
        answer_with(
            stage, "approved", selected_options=["red", "blue"], custom_text="dark"
        )

        answer = await stage.turn.ask("?", options=["red", "blue"], multi=True)

        assert answer == Answer(
            approved=True, selected=("red", "blue"), custom_text="dark"
        )

    async def test_gives_that_the_user_declined(self, stage: Stage) -> None:
        answer = await ask_anything(stage)

        assert answer == Answer(approved=False, selected=(), custom_text="")

    @pytest.mark.parametrize(
        ("options", "allow_custom", "problem"),
        [
            (["a", "a"], True, "two options have the same label"),
            (["a", " a "], True, "two options have the same label"),
            ([1, "1"], True, "two options have the same label"),
            ([], False, "allow_custom must be true"),
            ([""], True, "an option is a label, not ''"),
            (["  "], True, "an option is a label, not '  '"),
            ([None], True, "an option is a label, not None"),
            ([{"text": "a"}], True, "an option is a label, not {'text': 'a'}"),
            ([{"label": None}], True, "an option is a label"),
        ],
    )
    async def test_refuses_what_cannot_be_answered(
        self, stage: Stage, options: Any, allow_custom: bool, problem: str
    ) -> None:
        with pytest.raises(ValueError, match=problem):
            await stage.turn.ask("?", options=options, allow_custom=allow_custom)

        assert stage.desk.prompts == []


class TestAnswer:
    @pytest.mark.parametrize(
        ("selected", "custom_text", "text"),
        [
            ((), "", ""),
            (("red",), "", "red"),
            (("red", "blue"), "", "red; blue"),
            ((), "dark", "dark"),
            (("red",), "dark", "red; dark"),
        ],
    )
    def test_joins_what_was_chosen_and_written(
        self, selected: tuple[str, ...], custom_text: str, text: str
    ) -> None:
        """Spec: case HC-17; engine-api.md, Asking."""
        answer = Answer(approved=True, selected=selected, custom_text=custom_text)

        assert answer.text == text


class TestTimeout:
    """Spec: Ruling E17; engine-api.md, Asking."""

    @pytest.mark.parametrize(
        ("seconds", "milliseconds"),
        [
            (None, 0),
            (1, 1000),
            (0.05, 50),
            (0.0001, 1),
            (Decimal("1.5"), 1500),
            (MAX_TIMEOUT_S, MAX_TIMEOUT_S * 1000),
        ],
    )
    async def test_goes_out_in_milliseconds(
        self, stage: Stage, seconds: Any, milliseconds: int
    ) -> None:
        await ask_anything(stage, timeout=seconds)
        answer_with(stage, "denied", scope="once", message="")
        await stage.turn.permission("Bash", "ls", timeout=seconds)

        assert [each.timeout_ms for each in stage.desk.prompts] == [milliseconds] * 2

    @pytest.mark.parametrize(
        "seconds",
        [0, -1, float("nan"), float("inf"), float("-inf"), MAX_TIMEOUT_S + 1, 10**400],
        ids=["zero", "negative", "nan", "inf", "-inf", "long", "huge"],
    )
    async def test_is_a_number_of_seconds(self, stage: Stage, seconds: float) -> None:
        with pytest.raises(ValueError, match="allowed: None, or seconds above 0"):
            await stage.turn.ask("?", timeout=seconds)

        assert stage.desk.prompts == []

    async def test_that_passed_raises(self, stage: Stage) -> None:
        answer_with(stage, LAPSED)

        with pytest.raises(PromptTimeout) as caught:
            await stage.turn.ask("?", timeout=1)

        error = caught.value.error
        assert (error.type, error.code) == ("tool_timeout", "PROMPT_TIMEOUT")
        assert error.retryable is False
        assert error.user_message == "The question was not answered in time."


class TestUnavailable:
    async def test_fails_the_block_that_asked(self, stage: Stage) -> None:
        """Spec: Ruling E15; case HC-25."""
        stage.desk.is_unavailable = True

        with pytest.raises(PromptUnavailable):
            async with stage.turn.tool("Deploy", call_id="t1"):
                await stage.turn.ask("?")

        error = (await stage.log()).closing("t1")["error"]
        assert (error["type"], error["code"]) == ("overloaded", "PROMPT_UNAVAILABLE")
        assert error["retryable"] is True
        assert error["user_message"].startswith("I could not ask you")


class TestAnchor:
    """Spec: Rulings E13, E15; engine-api.md, Scopes."""

    async def test_is_the_innermost_open_block(self, stage: Stage) -> None:
        await ask_anything(stage)
        async with stage.turn.tool("Outer") as outer:
            await ask_anything(stage)
            async with stage.turn.tool("Inner", parent=outer) as inner:
                await ask_anything(stage)
            await ask_anything(stage)
        await ask_anything(stage)

        assert [each.anchor.card_id for each in stage.desk.prompts] == [
            "turn_1",
            outer.card_id,
            inner.card_id,
            outer.card_id,
            "turn_1",
        ]

    async def test_is_that_of_the_task(self, stage: Stage) -> None:
        async def work(name: str) -> None:
            async with stage.turn.tool(name, call_id=name):
                await ask_anything(stage, name)

        async with asyncio.TaskGroup() as group:
            group.create_task(work("a"))
            group.create_task(work("b"))

        anchors = {
            msgspec.to_builtins(each.inner)["question"]: each.anchor.card_id
            for each in stage.desk.prompts
        }
        assert anchors == {"a": "a", "b": "b"}

    async def test_inside_a_plan_is_the_step(self, stage: Stage) -> None:
        async with stage.turn.plan(goal="goal", steps=STEPS, plan_id="p") as plan:
            async with plan.step("s1"):
                answer_with(stage, "cancel", note="")
                await stage.turn.decide_step(scope="step", step_id="s1", reason="busy")

        assert asked(stage).anchor.card_id == "step_s1"

    async def test_carries_the_id_of_the_agent_that_asks(self, stage: Stage) -> None:
        """Spec: engine-api.md, Asking."""
        async with stage.turn.agent("researcher", agent_id="a1") as agent:
            answer_with(stage, "denied", selected_options=[], custom_text="")
            await agent.ask("?")
            await ask_anything(stage)

        frame = (await stage.log()).only("agent")
        by_agent, by_turn = stage.desk.prompts
        assert (by_agent.agent_id, by_agent.agent_run_id) == (
            "a1",
            frame["envelope"]["agent_run_id"],
        )
        assert (by_turn.agent_id, by_turn.agent_run_id) == ("main", "run_1")
        assert [each.anchor.card_id for each in stage.desk.prompts] == ["a1", "a1"]


class TestPermission:
    """Spec: EMIT 7.1, 7.3; Rulings E16, E18; case HC-28."""

    async def test_shows_exactly_what_would_be_done(self, stage: Stage) -> None:
        answer_with(stage, "approved", scope="once", message="")

        await stage.turn.permission("Bash", {"command": "rm x"}, message="Really?")

        assert asked(stage).kind == "permission"
        assert inner(stage) == {
            "tool_name": "Bash",
            "tool_input": '{"command":"rm x"}',
            "message": "Really?",
            "options": DEFAULT_OPTIONS,
            "permission_key": "Bash:{'command': 'rm x'}",
        }

    @pytest.mark.parametrize(
        ("given", "shown"),
        [
            ("rm x\0", "rm x\ufffd"),
            ("", None),
            (None, None),
            ({}, "{}"),
            (0, "0"),
            ([1, {"a": None}], '[1,{"a":null}]'),
            ({"n": 2**60}, '{"n":"1152921504606846976"}'),
        ],
    )
    async def test_shows_inputs_of_any_form(
        self, stage: Stage, given: object, shown: str | None
    ) -> None:
        answer_with(stage, "denied", scope="once", message="")

        await stage.turn.permission("Do", given, permission_key="k")

        assert inner(stage) == {
            "tool_name": "Do",
            **({"tool_input": shown} if shown else {}),
            "options": DEFAULT_OPTIONS,
            "permission_key": "k",
        }

    async def test_offers_what_the_engine_wants(self, stage: Stage) -> None:
        answer_with(stage, "denied", scope="once", message="")

        await stage.turn.permission(
            "Read",
            "/a",
            is_read_only=True,
            options=[
                {"label": "Always", "scope": "session", "allow": True},
                {"label": "Never"},
            ],
        )

        assert inner(stage) == {
            "tool_name": "Read",
            "tool_input": "/a",
            "is_read_only": True,
            "options": [
                {"label": "Always", "scope": "session", "allow": True},
                {"label": "Never", "scope": "once", "allow": False},
            ],
            "permission_key": "Read:/a",
        }

    @pytest.mark.parametrize(
        ("option", "problem"),
        [
            ({"label": "Yes", "scope": "ever"}, "unknown scope 'ever'"),
            ({"label": " ", "allow": True}, "an option is a label"),
            ({"scope": "once"}, "an option is a label"),
            ("Yes", "an option maps label, scope and allow, unlike 'Yes'"),
        ],
    )
    async def test_refuses_other_options(
        self, stage: Stage, option: Any, problem: str
    ) -> None:
        with pytest.raises(ValueError, match=problem):
            await stage.turn.permission("Bash", "ls", options=[option])

        assert stage.desk.prompts == []

    @pytest.mark.parametrize(
        ("decision", "payload", "expected"),
        [
            ("approved", {"scope": "once", "message": ""}, (True, "once", "")),
            (
                "approved",
                {"scope": "session", "message": "ok"},
                (True, "session", "ok"),
            ),
            ("denied", {"scope": "once", "message": "no"}, (False, "once", "no")),
        ],
    )
    async def test_gives_the_answer(
        self, stage: Stage, decision: str, payload: Any, expected: object
    ) -> None:
        answer_with(stage, decision, **payload)

        given = await stage.turn.permission("Bash", "ls")

        assert (given.approved, given.scope, given.message) == expected
        assert given.remembered is False

    async def test_that_the_session_gave_is_not_asked_for(self, stage: Stage) -> None:
        stage.desk.granted.add("Bash:ls")

        given = await stage.turn.permission("Bash", "ls")

        assert (given.approved, given.scope, given.remembered) == (
            True,
            "session",
            True,
        )
        assert given.message == ""
        assert stage.desk.prompts == []

    async def test_is_not_another(self, stage: Stage) -> None:
        """Spec: case FR-31."""
        stage.desk.granted.add("Bash:ls")
        answer_with(stage, "denied", scope="once", message="")

        given = await stage.turn.permission("Bash", "ls && rm x")

        assert (given.approved, given.remembered) == (False, False)
        assert inner(stage)["permission_key"] == "Bash:ls && rm x"

    @pytest.mark.parametrize("key", [None, ""])
    async def test_covers_the_whole_input_without_a_key(
        self, stage: Stage, key: str | None
    ) -> None:
        answer_with(stage, "denied", scope="once", message="")

        await stage.turn.permission("Bash", "ls", permission_key=key)

        assert stage.desk.looked_up == ["Bash:ls"]

    async def test_has_a_key_that_an_index_takes(self, stage: Stage) -> None:
        for end in ("a", "b", "b"):
            answer_with(stage, "denied", scope="once", message="")
            key = "x" * MAX_KEY_CHARS + end
            await stage.turn.permission("Bash", "ls", permission_key=key)

        first, second, third = stage.desk.looked_up
        assert first != second == third
        assert len(first) <= MAX_KEY_CHARS
        assert [msgspec.to_builtins(p.inner)["permission_key"] for p in
                stage.desk.prompts] == [first, second, third]  # fmt: skip

    async def test_keeps_a_key_as_it_is(self, stage: Stage) -> None:
        answer_with(stage, "denied", scope="once", message="")

        await stage.turn.permission("Bash", "ls", permission_key="Bash:\0ls")

        assert stage.desk.looked_up == ["Bash:\ufffdls"]


class TestReviewPlan:
    """Spec: EMIT 7.1, 7.3; Ruling E19; cases HC-31, FR-39."""

    async def test_shows_the_plan(self, stage: Stage) -> None:
        answer_with(stage, "approved", reason="")
        plan = Plan("a report", STEPS, rationale="why", plan_id="pln_1")

        await stage.turn.review_plan(plan, available_subagents=["researcher"])

        assert asked(stage).kind == "plan_review"
        assert asked(stage).timeout_ms == 0
        assert inner(stage) == {
            "plan_id": "pln_1",
            "goal": "a report",
            "rationale": "why",
            "steps": [
                {
                    "id": "s1",
                    "description": "look",
                    "subagent_type": "researcher",
                    "prompt": "Look well.",
                },
                {"id": "s2", "description": "write", "depends_on": ["s1"]},
            ],
            "available_subagents": ["researcher"],
        }

    async def test_opens_no_card(self, stage: Stage) -> None:
        answer_with(stage, "approved", reason="")

        await stage.turn.review_plan(Plan("a report", STEPS))

        assert [frame["type"] for frame in (await stage.log()).frames] == ["card.add"]

    async def test_mints_an_id(self, stage: Stage) -> None:
        answer_with(stage, "approved", reason="")

        await stage.turn.review_plan(Plan("a report", [PlanStep("s1", "look")]))

        plan_id = inner(stage).pop("plan_id")
        assert plan_id.startswith("pln_")
        assert len(plan_id) == len("pln_") + 24

    async def test_shows_steps_without_spaces_around(self, stage: Stage) -> None:
        """So that what comes back unchanged counts as unchanged."""
        answer_with(stage, "approved", reason="")
        steps = [PlanStep(" s1", "look\n"), PlanStep("s2", "write", depends_on=[" s1"])]

        await stage.turn.review_plan(Plan("a report", steps))

        assert inner(stage)["steps"] == [
            {"id": "s1", "description": "look"},
            {"id": "s2", "description": "write", "depends_on": ["s1"]},
        ]

    async def test_gives_the_plan_as_it_was_approved(self, stage: Stage) -> None:
        answer_with(stage, "approved", reason="go")

        review = await stage.turn.review_plan(Plan("a report", STEPS))

        assert (review.approved, review.edited, review.reason) == (True, False, "go")
        assert list(review.steps) == STEPS

    async def test_gives_the_plan_as_it_was_edited(self, stage: Stage) -> None:
        answer_with(
            stage,
            "approved",
            reason="",
            updated_steps=[
                {"id": "s2", "description": "write"},
                {"id": "s3", "description": "print", "depends_on": ["s2"]},
            ],
        )

        review = await stage.turn.review_plan(Plan("a report", STEPS))

        assert (review.approved, review.edited) == (True, True)
        assert review.steps == (
            PlanStep("s2", "write"),
            PlanStep("s3", "print", depends_on=("s2",)),
        )

    async def test_gives_that_it_was_declined(self, stage: Stage) -> None:
        answer_with(stage, "denied", reason="too long")

        review = await stage.turn.review_plan(Plan("a report", STEPS))

        assert (review.approved, review.edited) == (False, False)
        assert review.reason == "too long"
        assert list(review.steps) == STEPS

    @pytest.mark.parametrize(
        ("steps", "problem"),
        [
            ([], "the plan has no steps"),
            ([PlanStep("a", "x"), PlanStep("a", "y")], "the same id"),
            ([{"description": "x"}], "a step is a PlanStep or a mapping"),
            (
                [PlanStep("x" * (MAX_STEP_ID_CHARS + 1), "x")],
                "the id of a step is longer than 128 characters",
            ),
        ],
        ids=["no step", "an id twice", "no id", "a long id"],
    )
    async def test_refuses_what_cannot_be_reviewed(
        self, stage: Stage, steps: Any, problem: str
    ) -> None:
        with pytest.raises(ValueError, match=problem):
            await stage.turn.review_plan(Plan("a report", steps))

        assert stage.desk.prompts == []


class TestDecideStep:
    """Spec: EMIT 7.1, 7.3; Rulings E16, E19; cases HC-38, HC-41."""

    async def test_shows_what_failed(self, stage: Stage) -> None:
        answer_with(stage, "retry", note="")

        await stage.turn.decide_step(
            scope="step",
            step_id="s2",
            step_description="write",
            reason="rate limit (+2 more)",
            attempts=3,
        )

        assert asked(stage).kind == "step_decision"
        assert asked(stage).timeout_ms == 0
        assert inner(stage) == {
            "scope": "step",
            "step_id": "s2",
            "step_description": "write",
            "reason": "rate limit (+2 more)",
            "attempts": 3,
            "allow_retry": True,
        }

    async def test_leaves_out_what_is_not_told(self, stage: Stage) -> None:
        """Spec: Ruling E6."""
        answer_with(stage, "continue", note="")

        await stage.turn.decide_step(scope="plan", reason="busy", allow_retry=False)

        assert inner(stage) == {"scope": "plan", "reason": "busy"}

    @pytest.mark.parametrize("decision", ["continue", "retry", "cancel"])
    async def test_gives_the_decision(self, stage: Stage, decision: str) -> None:
        answer_with(stage, decision, note="slowly")

        given = await stage.turn.decide_step(scope="step", reason="busy")

        assert (given.decision, given.note) == (decision, "slowly")

    async def test_refuses_another_scope(self, stage: Stage) -> None:
        with pytest.raises(ValueError, match="unknown scope 'turn'"):
            await stage.turn.decide_step(
                scope="turn",  # type: ignore[arg-type]
                reason="busy",
            )

        assert stage.desk.prompts == []
