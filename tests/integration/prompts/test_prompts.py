"""Prompts from the question to its answer, with the turn that asked still there."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from cards.database import run_in_database
from cards.engine import (
    Answer,
    ClientToolResult,
    Plan,
    PlanStep,
    PromptTimeout,
    PromptUnavailable,
    Turn,
)
from cards.live.prompt_desk import PromptDesk
from cards.ports import NewWait
from cards.protocol.kinds import CardKind
from cards.protocol.payloads import PromptReplyPayload
from prompts.models import PendingWait, PermissionGrant, SettledPrompt
from tests.integration.cards.house import Client, Frame, House, running_house
from tests.integration.prompts.asking import (
    answer,
    prompts_of,
    replies_of,
    request_of,
    say,
    states,
    text_of,
    until_asked,
)


@pytest_asyncio.fixture(name="house")
async def _house(transactional_db: None) -> AsyncIterator[House]:
    async with running_house() as house:
        yield house


@pytest_asyncio.fixture(name="client")
async def _client(house: House) -> Client:
    return await house.connect()


class TestQuestion:
    async def test_is_asked_and_answered(self, house: House, client: Client) -> None:
        """Spec: cases HC-16, HC-17."""

        async def play(turn: Turn) -> None:
            answer = await turn.ask("Pick a color", options=["red", "blue"])
            await say(answer.text)(turn)

        house.engine.plays["ask"] = play
        await client.say("ask", "c1")
        prompt = await until_asked(client)
        assert prompt["payload"] == {
            "request_id": request_of(prompt),
            "kind": "question",
            "inner": {
                "question": "Pick a color",
                "options": [{"label": "red"}, {"label": "blue"}],
                "allow_custom": True,
            },
            "timeout_ms": 0,
        }
        assert await states() == ["pending"]

        await answer(
            client,
            request_of(prompt),
            "approved",
            selected_options=["red"],
            custom_text="dark",
        )
        await client.until_closed("turn_c1")

        assert text_of(client) == "red; dark"
        assert replies_of(client) == [
            {"request_id": request_of(prompt), "decision": "approved"}
        ]
        assert await states() == []
        assert client.seqs == list(range(1, len(client.seqs) + 1))

    async def test_is_answered_once(self, house: House, client: Client) -> None:
        """Spec: Ruling E15; cases HC-19, HC-20, FR-23."""

        async def play(turn: Turn) -> None:
            await say((await turn.ask("first?")).text)(turn)
            await say((await turn.ask("second?")).text)(turn)

        house.engine.plays["ask"] = play
        await client.say("ask", "c1")
        first = request_of(await until_asked(client))
        await answer(client, first, "approved", custom_text="a")
        second = request_of(await until_asked(client, 2))

        await answer(client, first, "approved", custom_text="b")
        await answer(client, "req_0000000000000000", "approved", custom_text="b")

        errors = client.errors()
        assert [error["code"] for error in errors] == ["UNKNOWN_REQUEST_ID"] * 2
        assert [error["details"]["request_id"] for error in errors] == [
            first,
            "req_0000000000000000",
        ]
        assert [error["retryable"] for error in errors] == [False, False]
        assert {error["user_message"] for error in errors} == {
            "This question was answered before, or its time is over."
        }
        await answer(client, second, "denied")
        await client.until_closed("turn_c1")
        assert text_of(client) == "a"
        assert [reply["decision"] for reply in replies_of(client)] == [
            "approved",
            "denied",
        ]

    @pytest.mark.parametrize(
        ("decision", "payload", "field"),
        [
            ("maybe", {}, "decision"),
            ("approved", {}, "payload.selected_options"),
            (
                "approved",
                {"selected_options": [], "custom_text": " "},
                "payload.selected_options",
            ),
            ("approved", {"selected_options": ["green"]}, "payload.selected_options"),
            (
                "approved",
                {"selected_options": ["red", "blue"]},
                "payload.selected_options",
            ),
            ("approved", {"selected_options": "red"}, "payload.selected_options"),
            ("approved", {"custom_text": "pink"}, "payload.custom_text"),
            ("approved", {"approved": False}, "payload.approved"),
        ],
    )
    async def test_stays_open_after_an_answer_that_does_not_fit(
        self,
        house: House,
        client: Client,
        decision: str,
        payload: dict[str, Any],
        field: str,
    ) -> None:
        """Spec: Ruling E16; cases FR-33, FR-35."""

        async def play(turn: Turn) -> None:
            options = ["red", "blue"]
            answer = await turn.ask("?", options=options, allow_custom=False)
            await say(answer.text)(turn)

        house.engine.plays["ask"] = play
        await client.say("ask", "c1")
        request_id = request_of(await until_asked(client))

        await answer(client, request_id, decision, **payload)

        (error,) = client.errors()
        assert error["type"] == "invalid_input"
        assert error["details"]["field"] == field
        assert error["details"]["request_id"] == request_id
        assert await states() == ["pending"]
        await answer(client, request_id, "approved", selected_options=["blue"])
        await client.until_closed("turn_c1")
        assert text_of(client) == "blue"

    async def test_lapses(self, house: House, client: Client) -> None:
        """Spec: Ruling E17; case FR-37."""

        async def play(turn: Turn) -> None:
            try:
                await turn.ask("?", timeout=0.05)
            except PromptTimeout:
                await say("nobody")(turn)

        house.engine.plays["ask"] = play
        await client.say("ask", "c1")
        prompt = await until_asked(client)
        assert prompt["payload"]["timeout_ms"] == 50

        await client.until_closed("turn_c1")
        await answer(client, request_of(prompt), "approved", custom_text="late")

        assert text_of(client) == "nobody"
        assert [reply["decision"] for reply in replies_of(client)] == ["timeout"]
        assert [error["code"] for error in client.errors()] == ["UNKNOWN_REQUEST_ID"]
        assert await states() == []

    async def test_that_cannot_be_stored_is_not_asked(
        self, house: House, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Spec: Ruling E15; case HC-25."""

        async def play(turn: Turn) -> None:
            async with turn.tool("Deploy"):
                await turn.ask("really?")

        def refuse(wait: NewWait) -> None:
            # The table does not take it.
            PendingWait.objects.create(request_id=wait.request_id)

        monkeypatch.setattr(house.book, "open_wait", refuse)
        house.engine.plays["ask"] = play
        await client.say("ask", "c1")

        closed = await client.until_closed("turn_c1")

        assert closed["payload"]["status"] == "failed"
        assert closed["payload"]["error"]["code"] == "PROMPT_UNAVAILABLE"
        assert client.closes() == [("tool", "failed"), ("turn", "failed")]
        assert prompts_of(client) == []

    async def test_unanswered_fails_only_who_waits_for_it(
        self, house: House, client: Client
    ) -> None:
        async def play(turn: Turn) -> None:
            try:
                await turn.ask("?")
            except PromptUnavailable:
                raise AssertionError from None
            except asyncio.CancelledError:
                raise

        house.engine.plays["ask"] = play
        await client.say("ask", "c1")
        prompt = await until_asked(client)

        await client.interrupt()
        await client.until_closed("turn_c1")

        assert client.closes() == [("turn", "cancelled")]
        assert replies_of(client) == [
            {"request_id": request_of(prompt), "decision": "cancelled"}
        ]
        assert client.logged[-1]["type"] == "card.close"
        assert await states() == []


class TestWithdrawal:
    """Spec: Rulings E10, E15."""

    async def test_by_the_engine_is_told(self, house: House, client: Client) -> None:
        async def play(turn: Turn) -> None:
            asked = asyncio.create_task(turn.ask("which?"))
            await goes_on.wait()
            asked.cancel()
            await asyncio.wait([asked])
            await say("never mind")(turn)

        goes_on = asyncio.Event()
        house.engine.plays["ask"] = play
        await client.say("ask", "c1")
        prompt = await until_asked(client)

        goes_on.set()
        await client.until_closed("turn_c1")

        assert text_of(client) == "never mind"
        assert replies_of(client) == [
            {"request_id": request_of(prompt), "decision": "cancelled"}
        ]

    async def test_while_the_reply_is_stored_changes_nothing(
        self, house: House, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def play(turn: Turn) -> None:
            asked.append(asyncio.create_task(turn.ask("which?")))
            await asyncio.wait(asked)
            await say("done")(turn)

        def reply_and_let_go(desk: PromptDesk, told: PromptReplyPayload) -> None:
            reply(desk, told)
            asked[0].cancel()

        reply = PromptDesk._reply
        monkeypatch.setattr(PromptDesk, "_reply", reply_and_let_go)
        asked: list[asyncio.Task[Answer]] = []
        house.engine.plays["ask"] = play
        await client.say("ask", "c1")
        request_id = request_of(await until_asked(client))

        await answer(client, request_id, "approved", custom_text="this")
        await client.until_closed("turn_c1")

        assert [reply["decision"] for reply in replies_of(client)] == ["approved"]
        assert client.closes()[-1] == ("turn", "ok")
        assert await states() == []

    async def test_of_what_was_asked_again_is_told(
        self, house: House, client: Client
    ) -> None:
        """Spec: Ruling E19."""

        async def play(turn: Turn) -> None:
            plan = Plan("a report", [PlanStep("s1", "look")])
            asked = asyncio.create_task(turn.review_plan(plan))
            await goes_on.wait()
            asked.cancel()
            await asyncio.wait([asked])
            await turn.flush()
            await ends.wait()

        goes_on, ends = asyncio.Event(), asyncio.Event()
        house.engine.plays["plan"] = play
        await client.say("plan", "c1")
        first = await until_asked(client)
        twice = [{"id": "s1", "description": "look"}] * 2
        await answer(client, request_of(first), "approved", updated_steps=twice)
        second = await until_asked(client, 2)

        goes_on.set()
        await client.transport.until(lambda: len(replies_of(client)) == 2)
        ends.set()
        await client.until_closed("turn_c1")

        assert replies_of(client)[1] == {
            "request_id": request_of(second),
            "decision": "cancelled",
        }
        assert await states() == []


class TestPermission:
    async def test_for_the_session_is_remembered(
        self, house: House, client: Client
    ) -> None:
        """Spec: Ruling E18; cases HC-28, FR-31."""

        async def play(turn: Turn) -> None:
            key = turn.input.text.split()[1]
            answer = await turn.permission(
                "Bash", {"command": "rm x"}, permission_key=key
            )
            await say(f"[{answer.approved} {answer.scope} {answer.remembered}]")(turn)

        house.engine.plays["run"] = play
        await client.say("run Bash:rm", "c1")
        prompt = await until_asked(client)
        inner = prompt["payload"]["inner"]
        assert inner["tool_input"] == '{"command":"rm x"}'
        assert inner["permission_key"] == "Bash:rm"
        assert [option["scope"] for option in inner["options"]] == [
            "once",
            "session",
            "once",
        ]
        await answer(client, request_of(prompt), "approved", scope="session")
        await client.until_closed("turn_c1")

        await client.say("run Bash:rm", "c2")
        await client.until_closed("turn_c2")
        await client.say("run Bash:ls", "c3")
        await answer(client, request_of(await until_asked(client, 2)), "denied")
        await client.until_closed("turn_c3")
        other = await house.connect("sess_2")
        await other.say("run Bash:rm", "c1")
        await until_asked(other)

        assert text_of(client) == (
            "[True session False][True session True][False once False]"
        )
        assert await run_in_database(PermissionGrant.objects.count) == 1

    async def test_answers_belong_to_their_requests(
        self, house: House, client: Client
    ) -> None:
        """Spec: cases FR-27, FR-29."""

        async def work(turn: Turn, number: int) -> None:
            async with turn.tool(f"Tool{number}", call_id=f"t{number}") as tool:
                answer = await turn.permission(f"Tool{number}", {"n": number})
                tool.result(f"{number} {answer.approved}")

        async def play(turn: Turn) -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(3):
                    group.create_task(work(turn, number))

        house.engine.plays["run"] = play
        await client.say("run", "c1")
        await until_asked(client, 3)
        requests = {
            prompt["payload"]["inner"]["tool_name"]: request_of(prompt)
            for prompt in prompts_of(client)
        }

        await answer(client, requests["Tool1"], "denied")
        await answer(client, requests["Tool2"], "approved")
        await answer(client, requests["Tool0"], "approved")
        await client.until_closed("turn_c1")

        outputs = {
            frame["envelope"]["card_id"]: frame["payload"]["inner"]["output"]
            for frame in client.frames
            if frame["type"] == "card.close"
            and frame["envelope"]["card_kind"] == "tool"
        }
        assert outputs == {"t0": "0 True", "t1": "1 False", "t2": "2 True"}
        assert [reply["request_id"] for reply in replies_of(client)] == [
            requests["Tool1"],
            requests["Tool2"],
            requests["Tool0"],
        ]


class TestPlanReview:
    async def test_edits_are_carried_out_or_asked_about_again(
        self, house: House, client: Client
    ) -> None:
        """Spec: Ruling E19; cases HC-31, HC-32, FR-39."""

        async def play(turn: Turn) -> None:
            steps = [
                PlanStep("s1", "look", subagent_type="researcher"),
                PlanStep("s2", "write", depends_on=["s1"]),
            ]
            review = await turn.review_plan(
                Plan("a report", steps), available_subagents=["researcher"]
            )
            await say([review.edited, *(step.id for step in review.steps)])(turn)

        house.engine.plays["plan"] = play
        await client.say("plan", "c1")
        first = await until_asked(client)
        cyclic = [
            {"id": "s1", "description": "look", "depends_on": ["s2"]},
            {"id": "s2", "description": "write", "depends_on": ["s1"]},
        ]
        await answer(client, request_of(first), "approved", updated_steps=cyclic)
        second = await until_asked(client, 2)

        assert second["payload"]["inner"]["rejection_reason"].startswith("Step 1 (s1)")
        assert second["payload"]["inner"]["steps"] == first["payload"]["inner"]["steps"]
        assert replies_of(client)[0]["decision"] == "denied"
        assert await states() == ["pending"]
        await answer(
            client,
            request_of(second),
            "approved",
            updated_steps=[{"id": "s9", "description": "only this"}],
        )
        await client.until_closed("turn_c1")
        assert text_of(client) == "[True, 's9']"


class TestStepDecision:
    @pytest.mark.parametrize(
        ("said", "counts", "replied"),
        [
            ("continue", "continue", "continue"),
            ("retry", "retry", "retry"),
            ("cancel", "cancel", "cancelled"),
            ("banana", "cancel", "cancelled"),
        ],
    )
    async def test_counts(
        self, house: House, client: Client, said: str, counts: str, replied: str
    ) -> None:
        """Spec: Ruling E16; cases HC-38, HC-40."""

        async def play(turn: Turn) -> None:
            decision = await turn.decide_step(
                scope="step", step_id="s2", reason="rate limit", attempts=3
            )
            await say(f"{decision.decision} {decision.note}")(turn)

        house.engine.plays["step"] = play
        await client.say("step", "c1")
        prompt = await until_asked(client)

        await answer(client, request_of(prompt), said, note="hm", approved="retry")
        await client.until_closed("turn_c1")

        assert text_of(client) == f"{counts} hm"
        assert replies_of(client)[0]["decision"] == replied


class TestClientTool:
    async def test_is_called_once(self, house: House, client: Client) -> None:
        """Spec: Ruling E24."""
        results: list[ClientToolResult] = []

        async def play(turn: Turn) -> None:
            results.append(await turn.client_tool("camera", {"side": "front"}))

        def calls() -> list[Frame]:
            return [
                frame
                for frame in client.frames
                if frame["payload"].get("target") == "client"
            ]

        house.engine.plays["call"] = play
        await client.say("call", "c1")
        await client.transport.until(calls)
        card_id = calls()[0]["envelope"]["card_id"]
        stranger = await house.connect("sess_2")
        result = {
            "type": "tool.result",
            "tool_use_id": card_id,
            "status": "ok",
            "output": {"taken": 1},
        }
        await stranger.send(result)

        await client.send(result)
        await client.until_closed("turn_c1")
        await client.send(result)

        assert [(each.status, each.output) for each in results] == [
            ("success", {"taken": 1})
        ]
        closed = client.closes_of(card_id)
        assert [close["payload"]["status"] for close in closed] == ["ok"]
        for refused in (stranger, client):
            (error,) = refused.errors()
            assert error["code"] == "UNKNOWN_TOOL_USE_ID"
        assert await states() == []
        assert await run_in_database(SettledPrompt.objects.count) == 1


class TestWatchdog:
    async def test_leaves_alone_what_is_above_a_prompt(
        self, transactional_db: None
    ) -> None:
        """Spec: Ruling E13; cases HC-44, HC-61."""

        async def ask(turn: Turn) -> None:
            async with turn.agent("worker") as agent, agent.tool("Deploy") as tool:
                given = await agent.ask("really?")
                tool.result(given.text)

        async def hang(turn: Turn) -> None:
            async with turn.tool("Hang"):
                await asyncio.Event().wait()

        windows_ms = dict.fromkeys((CardKind.TURN, CardKind.AGENT, CardKind.TOOL), 150)
        async with running_house(windows_ms=windows_ms) as house:
            house.engine.plays |= {"ask": ask, "hang": hang}
            client = await house.connect()
            await client.say("ask", "c1")
            prompt = await until_asked(client)
            # Each of these takes longer than any window.
            for number in range(3):
                other = await house.connect(f"other_{number}")
                await other.say("hang", "c1")
                closed = await other.until_closed("turn_c1")
                assert closed["payload"]["error"]["type"] == "orphan_timeout"

            assert client.closes() == []
            assert prompt["envelope"]["agent_id"].startswith("sub_")
            await answer(client, request_of(prompt), "approved", custom_text="yes")
            await client.until_closed("turn_c1")

        assert client.closes() == [("tool", "ok"), ("agent", "ok"), ("turn", "ok")]
