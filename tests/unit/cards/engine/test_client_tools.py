"""Tools that the client runs."""

import asyncio
from typing import Any

import pytest

from cards.engine import ClientToolResult, PromptTimeout, PromptUnavailable
from cards.engine.client_tools import ClientTool
from tests.unit.cards.engine.stage import LAPSED, REMOVED, SHOWN, Stage

CARD = "tool_called"


async def call(stage: Stage, status: str = "success", **payload: Any) -> Any:
    """Have the client run a tool that ends so."""
    stage.desk.answers.append((status, payload))
    return await stage.turn.client_tool("camera", {"side": "front"})


class TestCall:
    """Spec: EMIT 9, 14; Ruling E24."""

    async def test_shows_what_the_client_is_to_do(self, stage: Stage) -> None:
        stage.desk.answers.append(("success", {}))

        await stage.turn.client_tool("camera", {"side": "front"}, intent="a photo")

        frame = (await stage.log()).only("tool")
        assert frame["envelope"]["card_id"] == CARD
        assert frame["payload"] == {
            "name": "camera",
            "target": "client",
            "intent": "a photo",
            "input": {"side": "front"},
        }

    async def test_leaves_out_what_is_empty(self, stage: Stage) -> None:
        """Spec: Ruling E6."""
        stage.desk.answers.append(("success", {}))

        await stage.turn.client_tool("cam\0era")

        payload = (await stage.log()).only("tool")["payload"]
        assert payload == {"name": "cam\ufffdera", "target": "client"}

    async def test_opens_and_closes_one_card(self, stage: Stage) -> None:
        await call(stage)

        log = await stage.log()
        assert [frame["type"] for frame in log.of(CARD)] == ["card.add", "card.close"]

    async def test_changes_its_row_with_its_frames(self, stage: Stage) -> None:
        """Spec: Ruling E15."""
        await call(stage)
        await stage.log()

        assert [entry.changes for entry in stage.store.entries] == [
            (),
            (SHOWN,),
            (REMOVED,),
        ]

    @pytest.mark.parametrize(
        ("seconds", "milliseconds"), [(None, 0), (0.5, 500), (60, 60_000)]
    )
    async def test_waits_as_long_as_the_engine_wants(
        self, stage: Stage, seconds: float | None, milliseconds: int
    ) -> None:
        stage.desk.answers.append(("success", {}))

        await stage.turn.client_tool("camera", timeout=seconds)

        assert stage.desk.timeouts_ms == [milliseconds]

    @pytest.mark.parametrize("seconds", [0, -1, float("nan")])
    async def test_refuses_another_timeout(self, stage: Stage, seconds: float) -> None:
        with pytest.raises(ValueError, match="seconds above 0"):
            await stage.turn.client_tool("camera", timeout=seconds)

        assert (await stage.log()).added("tool") == []


class TestParent:
    """Spec: EMIT 14.2; engine-api.md, Scopes."""

    async def test_is_the_last_message(self, stage: Stage) -> None:
        async with stage.turn.message():
            pass
        async with stage.turn.message() as message:
            await message.text("Smile!")

        await call(stage)

        assert (await stage.log()).parent(CARD) == message.card_id

    async def test_is_the_innermost_block_without_one(self, stage: Stage) -> None:
        async with stage.turn.tool("Outer") as outer:
            await call(stage)

        assert (await stage.log()).parent(CARD) == outer.card_id

    async def test_of_an_agent_is_within_the_agent(self, stage: Stage) -> None:
        async with stage.turn.message():
            pass
        async with stage.turn.agent("photographer", agent_id="a1") as agent:
            stage.desk.answers.append(("success", {}))
            await agent.client_tool("camera")

        log = await stage.log()
        assert log.parent(CARD) == "a1"
        assert log.only("tool")["envelope"]["agent_id"] == "a1"
        agent_run_id = log.only("agent")["envelope"]["agent_run_id"]
        assert log.only("tool")["envelope"]["agent_run_id"] == agent_run_id


class TestResult:
    """Spec: EMIT 9; Ruling E24; engine-api.md, Asking."""

    async def test_is_what_the_client_gave(self, stage: Stage) -> None:
        result = await call(
            stage, output={"photo": 1}, error=None, metadata={"took_ms": 5}
        )

        assert result == ClientToolResult(
            status="success", output={"photo": 1}, error=None, metadata={"took_ms": 5}
        )

    @pytest.mark.parametrize("payload", [{}, {"metadata": None}, {"metadata": {}}])
    async def test_may_be_nothing(self, stage: Stage, payload: Any) -> None:
        result = await call(stage, **payload)

        assert result == ClientToolResult(
            status="success", output=None, error=None, metadata={}
        )

    @pytest.mark.parametrize(
        "status", ["success", "error", "denied", "timeout", "cancelled"]
    )
    async def test_comes_back_whatever_it_is(self, stage: Stage, status: str) -> None:
        """A client that gave up in time is an answer, no exception."""
        result = await call(stage, status, error="why")

        assert (result.status, result.error) == (status, "why")


class TestClose:
    """Spec: EMIT 9, 12; Rulings E6, E24."""

    @pytest.mark.parametrize("output", [{"photo": 1}, [], 0, False, "", "done"])
    async def test_of_a_success_shows_the_output(
        self, stage: Stage, output: Any
    ) -> None:
        await call(stage, output=output, metadata={"took_ms": 5})

        closing = (await stage.log()).closing(CARD)
        assert closing == {
            "status": "ok",
            "inner": {"output": output, "metadata": {"took_ms": 5}},
        }

    async def test_of_a_success_without_output_shows_none(self, stage: Stage) -> None:
        await call(stage, output=None, metadata={})

        assert (await stage.log()).closing(CARD) == {"status": "ok"}

    @pytest.mark.parametrize(
        ("status", "error_type", "is_retryable"),
        [
            ("error", "internal", False),
            ("denied", "permission_denied", False),
            ("timeout", "tool_timeout", True),
        ],
    )
    @pytest.mark.parametrize("given", [None, "", {}, [], 5, {"message": ""}], ids=repr)
    async def test_of_a_failure_says_why_by_its_status(
        self,
        stage: Stage,
        status: str,
        error_type: str,
        is_retryable: bool,
        given: Any,
    ) -> None:
        await call(stage, status, error=given, output="half a photo")

        closing = (await stage.log()).closing(CARD)
        assert closing["status"] == "failed"
        assert closing["inner"] == {"output": "half a photo"}
        error = closing["error"]
        assert (error["type"], error["retryable"]) == (error_type, is_retryable)
        assert error["message"] == f"the client's tool ended with {status}"
        assert error["user_message"]

    @pytest.mark.parametrize(
        ("given", "error_type", "message"),
        [
            ("no camera\0", "internal", "no camera\ufffd"),
            ({"message": "no camera"}, "internal", "no camera"),
            ({"message": 5, "type": None}, "internal", "5"),
            ({"message": "slow", "type": "rate_limit"}, "rate_limit", "slow"),
            ({"message": "own word", "type": "NoCamera"}, "internal", "own word"),
            (
                {"type": "invalid_input"},
                "invalid_input",
                "the client's tool ended with error",
            ),
        ],
    )
    async def test_of_a_failure_says_it_in_the_words_of_the_client(
        self, stage: Stage, given: Any, error_type: str, message: str
    ) -> None:
        await call(stage, "error", error=given)

        error = (await stage.log()).closing(CARD)["error"]
        assert (error["type"], error["message"]) == (error_type, message)

    async def test_of_what_was_cancelled_has_no_error(self, stage: Stage) -> None:
        await call(stage, "cancelled", error="the user closed the camera")

        closing = (await stage.log()).closing(CARD)
        assert closing == {"status": "cancelled"}


class TestNoResult:
    async def test_in_time_raises_and_closes_the_card(self, stage: Stage) -> None:
        """Spec: Ruling E17."""
        stage.desk.answers.append((LAPSED, {}))

        with pytest.raises(PromptTimeout, match="no result came in time"):
            await stage.turn.client_tool("camera", timeout=1)

        closing = (await stage.log()).closing(CARD)
        assert closing["status"] == "failed"
        assert closing["error"]["type"] == "tool_timeout"

    async def test_yet_cannot_be_looked_at(self, stage: Stage) -> None:
        tool = ClientTool(
            stage.context,
            parent=None,
            agent_id="main",
            agent_run_id=None,
            name="camera",
            input=None,
            intent=None,
        )

        assert tool.has_timed_out is False
        with pytest.raises(RuntimeError, match="no result yet"):
            _ = tool.result

    async def test_because_nothing_can_be_stored_opens_no_card(
        self, stage: Stage
    ) -> None:
        """Spec: Ruling E15; case HC-25."""
        stage.desk.is_unavailable = True

        with pytest.raises(PromptUnavailable):
            await stage.turn.client_tool("camera")

        assert (await stage.log()).added("tool") == []

    @pytest.mark.parametrize(
        ("interruption", "status"),
        [(asyncio.CancelledError(), "cancelled"), (OSError("broke"), "failed")],
        ids=["stopped", "broken"],
    )
    async def test_closes_the_card_of_a_wait_that_ends(
        self, stage: Stage, interruption: BaseException, status: str
    ) -> None:
        """Spec: Rulings E10, E11."""
        stage.desk.interruption = interruption

        with pytest.raises(type(interruption)):
            await stage.turn.client_tool("camera")
        await stage.log()

        assert (await stage.log()).closing(CARD)["status"] == status
        assert stage.store.entries[-1].changes == (REMOVED,)
