"""What all blocks share: nesting, and closing with the truth."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from cards.engine import EngineError, Turn
from cards.engine.block import Block, close_open_below, error_of, innermost_card
from cards.engine.messages import Message
from cards.engine.tools import Tool
from cards.log.committer import MAX_WAITING_EVENTS
from cards.log.writer import LogWriteFailed
from cards.protocol.errors import LocalProtocolError
from cards.protocol.kinds import CloseStatus
from tests.unit.cards.engine.stage import Stage

BUSY = EngineError("overloaded", "x")


class BrokenText(Exception):
    """An exception that cannot be shown."""

    def __str__(self) -> str:
        raise ValueError("no text")


class TestBlock:
    async def test_closes_ok(self, stage: Stage) -> None:
        async with stage.turn.tool("Bash") as tool:
            stage.clock.advance(70)

        log = await stage.log()
        assert log.closing(tool.card_id) == {"status": "ok"}
        assert log.frames[-1]["metrics"] == {"duration_ms": 70}
        assert log.frames[-1]["envelope"]["severity"] == "info"

    async def test_closes_failed_when_an_exception_comes_through(
        self, stage: Stage
    ) -> None:
        """Spec: Ruling E11."""
        with pytest.raises(RuntimeError, match="secret"):
            async with stage.turn.agent("worker"), stage.turn.tool("Bash"):
                raise RuntimeError("a secret of the engine")

        log = await stage.log()
        assert log.closes() == [("tool", "failed"), ("agent", "failed")]
        errors = [f["payload"]["error"] for f in log.frames[-2:]]
        assert {error["type"] for error in errors} == {"internal"}
        assert "secret" not in str(errors)
        assert log.frames[-1]["envelope"]["severity"] == "error"

    async def test_closes_with_the_error_that_the_engine_chose(
        self, stage: Stage
    ) -> None:
        with pytest.raises(EngineError):
            async with stage.turn.message() as message:
                raise EngineError("rate_limit", "429", code="UPSTREAM_429")

        error = (await stage.log()).closing(message.card_id)["error"]
        assert (error["type"], error["code"]) == ("rate_limit", "UPSTREAM_429")
        assert error["retryable"] is True

    async def test_closes_ok_when_the_failure_was_inside(self, stage: Stage) -> None:
        async with stage.turn.tool("outer") as outer:
            with pytest.raises(RuntimeError):
                async with stage.turn.tool("inner") as inner:
                    raise RuntimeError

        log = await stage.log()
        assert log.closing(inner.card_id)["status"] == "failed"
        assert log.closing(outer.card_id)["status"] == "ok"

    async def test_closes_cancelled_when_its_task_is(self, stage: Stage) -> None:
        """Spec: Ruling E10: children before parents."""
        is_inside = asyncio.Event()

        async def work() -> None:
            async with stage.turn.message(), stage.turn.tool("Bash"):
                is_inside.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await is_inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        log = await stage.log()
        assert log.closes() == [("tool", "cancelled"), ("message", "cancelled")]
        assert "error" not in log.frames[-1]["payload"]
        assert log.frames[-1]["envelope"]["severity"] == "warn"

    async def test_closes_cancelled_when_its_generator_is_closed(
        self, stage: Stage
    ) -> None:
        async def words() -> AsyncIterator[Message]:
            async with stage.turn.message() as message:
                yield message

        generator = words()
        message = await anext(generator)
        closing = asyncio.create_task(generator.aclose())  # type: ignore[attr-defined]
        await closing

        log = await stage.log()
        assert log.closing(message.card_id)["status"] == "cancelled"

    async def test_closes_what_is_open_inside_as_cancelled(self, stage: Stage) -> None:
        async with stage.turn.agent("worker") as agent:
            await agent.message().__aenter__()
            await agent.tool("Bash").__aenter__()

        log = await stage.log()
        assert log.closes() == [
            ("tool", "cancelled"),
            ("message", "cancelled"),
            ("agent", "ok"),
        ]

    async def test_fails_what_is_open_inside_with_its_own_error(
        self, stage: Stage
    ) -> None:
        with pytest.raises(EngineError):
            async with stage.turn.agent("worker") as agent:
                tool = await agent.tool("Bash").__aenter__()
                raise EngineError("model_error", "gone")

        log = await stage.log()
        assert log.closing(tool.card_id)["error"]["type"] == "model_error"
        assert log.closing(agent.card_id)["error"]["type"] == "model_error"

    async def test_drops_and_counts_what_comes_after_the_close(
        self, stage: Stage
    ) -> None:
        """Spec: Ruling E12."""
        async with stage.turn.message() as message:
            await message.text("in time")
        async with stage.turn.tool("Bash") as tool:
            pass

        await message.text("late")
        await tool.progress(progress_pct=1)
        await tool.note("late")
        await tool.set(intent="late")
        await tool.__aexit__(None, None, None)

        log = await stage.log()
        assert log.text(message.card_id) == "in time"
        assert log.frames[-1]["type"] == "card.close"
        assert stage.builder.dropped_count == 5

    async def test_can_be_entered_once(self, stage: Stage) -> None:
        async with stage.turn.tool("Bash") as tool:
            pass

        with pytest.raises(RuntimeError, match="only once"):
            await tool.__aenter__()
        assert len((await stage.log()).added("tool")) == 1

    async def test_has_no_card_before_it_is_entered(self, stage: Stage) -> None:
        tool = stage.turn.tool("Bash")

        assert not tool.is_entered
        with pytest.raises(RuntimeError, match="async with"):
            await tool.heartbeat()

    async def test_sends_nothing_when_it_may_not_open(self, stage: Stage) -> None:
        async with Stage() as other, other.turn.message() as foreign:
            with pytest.raises(LocalProtocolError):
                await stage.turn.tool("Bash", parent=foreign).__aenter__()

        assert len((await stage.log()).frames) == 1
        assert innermost_card(stage.context) is stage.turn_card


class TestEntering:
    async def fill(self, stage: Stage) -> None:
        """Bring the log behind, so that whoever emits has to wait."""
        await stage.writer.flush()
        stage.store.gate.clear()
        stage.writer.append(b"{}")
        await asyncio.sleep(0)
        for _ in range(MAX_WAITING_EVENTS):
            stage.writer.append(b"{}")

    @pytest.mark.parametrize("kind", ["tool", "plan"])
    async def test_closes_the_card_when_it_is_cancelled_meanwhile(
        self, stage: Stage, kind: str
    ) -> None:
        """Spec: Ruling E10; `async with` never leaves what it did not enter."""
        block: Block = stage.turn.tool("Bash")
        if kind == "plan":
            block = stage.turn.plan(goal="g", steps=[{"id": "s1"}])
        await self.fill(stage)
        task = asyncio.create_task(block.__aenter__())
        await asyncio.sleep(0)
        assert block.is_entered
        assert not task.done()

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert not block.card.is_open
        assert stage.builder.open_below(stage.turn_card) == []

    async def test_nests_nothing_under_it_afterwards(self, stage: Stage) -> None:
        await self.fill(stage)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await stage.turn.tool("Bash").__aenter__()

        assert innermost_card(stage.context) is stage.turn_card


class TestLeaving:
    async def test_in_another_order_keeps_the_innermost(self, stage: Stage) -> None:
        first, second = AsyncExitStack(), AsyncExitStack()
        outer = await first.enter_async_context(stage.turn.agent("outer"))
        inner = await second.enter_async_context(stage.turn.agent("inner"))

        await first.aclose()
        await second.aclose()

        log = await stage.log()
        assert log.ancestors(inner.card_id) == [outer.card_id, "turn_1"]
        assert log.closes() == [("agent", "cancelled"), ("agent", "ok")]
        assert innermost_card(stage.context) is stage.turn_card

    async def test_in_another_task_closes_the_card(self, stage: Stage) -> None:
        tool = stage.turn.tool("Bash")
        await asyncio.create_task(tool.__aenter__())

        await asyncio.create_task(tool.__aexit__(None, None, None))

        assert (await stage.log()).closing(tool.card_id) == {"status": "ok"}

    async def test_sends_nothing_once_the_log_has_failed(self, stage: Stage) -> None:
        """The card is closed from what the log holds, by whoever recovers it."""
        await stage.turn.flush()
        with pytest.raises(LogWriteFailed):
            async with stage.turn.tool("Bash") as tool:
                stage.store.is_away = True
                await stage.turn.flush()

        assert tool.card.is_open
        assert [entry.seq for entry in stage.store.entries] == [1]


class TestInnermostCard:
    async def test_of_parallel_tasks_are_their_own(self, stage: Stage) -> None:
        """Case FR-189: their ends come in another order than their begins."""
        gates = [asyncio.Event() for _ in range(3)]
        opened: list[tuple[str, str]] = []

        async def work(number: int) -> None:
            async with stage.turn.agent(f"agent {number}") as agent:
                if number:
                    gates[number].set()
                    await gates[number - 1].wait()
                async with agent.thinking() as thinking:
                    opened.append((thinking.card_id, agent.card_id))
                gates[number].set()

        await asyncio.gather(work(2), work(1), work(0))

        log = await stage.log()
        assert [log.parent(child) for child, _ in opened] == [
            agent for _, agent in opened
        ]

    async def test_of_tasks_in_a_group_is_the_block_around_it(
        self, stage: Stage
    ) -> None:
        async def think(turn: Turn) -> None:
            async with turn.thinking() as thinking:
                await thinking.text("hm")

        async with stage.turn.message() as message, asyncio.TaskGroup() as group:
            group.create_task(think(stage.turn))
            group.create_task(think(stage.turn))

        parents = {
            frame["envelope"]["parent_card_id"]
            for frame in (await stage.log()).added("thinking")
        }
        assert parents == {message.card_id}

    async def test_gives_way_when_a_task_outlives_its_block(self, stage: Stage) -> None:
        goes_on = asyncio.Event()

        async def late() -> str:
            await goes_on.wait()
            async with stage.turn.thinking() as thinking:
                return thinking.card_id

        async with stage.turn.agent("outer") as outer:
            async with stage.turn.agent("inner"):
                task = asyncio.create_task(late())
            goes_on.set()
            card_id = await task

        assert (await stage.log()).parent(card_id) == outer.card_id

    async def test_is_not_a_block_of_another_turn(self, stage: Stage) -> None:
        async with Stage() as other, other.turn.message():
            assert innermost_card(stage.context) is stage.turn_card

    async def test_is_overridden_by_a_parent(self, stage: Stage) -> None:
        async with stage.turn.agent("one") as one, stage.turn.agent("two"):
            async with stage.turn.thinking(parent=one) as thinking:
                pass
            async with stage.turn.tool("Bash", parent=one) as tool:
                pass
            async with stage.turn.message(parent=one) as message:
                pass
            async with stage.turn.agent("three", parent=one) as agent:
                pass
            async with stage.turn.plan(goal="g", steps=[], parent=one) as plan:
                pass

        log = await stage.log()
        blocks: list[Block] = [thinking, tool, message, agent, plan]
        assert {log.parent(block.card_id) for block in blocks} == {one.card_id}


class TestParallelFailure:
    async def test_cancels_the_siblings(self, stage: Stage) -> None:
        is_waiting = asyncio.Event()

        async def wait() -> None:
            async with stage.turn.tool("waits"):
                is_waiting.set()
                await asyncio.Event().wait()

        async def fail() -> None:
            async with stage.turn.tool("fails"):
                await is_waiting.wait()
                raise EngineError("tool_timeout", "slow")

        with pytest.raises(ExceptionGroup):
            async with stage.turn.agent("worker") as agent:
                async with asyncio.TaskGroup() as group:
                    group.create_task(wait())
                    group.create_task(fail())

        log = await stage.log()
        assert log.closes() == [
            ("tool", "failed"),
            ("tool", "cancelled"),
            ("agent", "failed"),
        ]
        assert log.closing(agent.card_id)["error"]["type"] == "tool_timeout"

    async def test_of_gather_closes_what_goes_on_with_its_parent(
        self, stage: Stage
    ) -> None:
        goes_on = asyncio.Event()

        async def slow() -> Tool:
            async with stage.turn.tool("slow") as tool:
                await goes_on.wait()
                await tool.note("too late")
            return tool

        async def fail() -> None:
            raise EngineError("model_error", "gone")

        task = asyncio.create_task(slow())
        with pytest.raises(EngineError):
            async with stage.turn.message() as message:
                task = asyncio.create_task(slow())
                await asyncio.sleep(0)
                await asyncio.gather(task, fail())
        goes_on.set()
        tool = await task

        log = await stage.log()
        assert log.parent(tool.card_id) == message.card_id
        assert log.closing(tool.card_id)["status"] == "failed"
        assert log.ticks("note") == []


class TestErrorOf:
    def test_hides_the_text_of_unexpected_exceptions(self) -> None:
        error = error_of(RuntimeError("secret"), shows_exceptions=False)

        assert (error.type, error.retryable) == ("internal", False)
        assert "secret" not in error.message

    @pytest.mark.parametrize(
        ("exception", "message"),
        [
            (RuntimeError("why"), "RuntimeError: why"),
            (RuntimeError("half \ud83d, \0"), "RuntimeError: half \ufffd, \ufffd"),
            (RuntimeError(), "RuntimeError"),
        ],
    )
    def test_shows_it_where_it_may(self, exception: Exception, message: str) -> None:
        assert error_of(exception, shows_exceptions=True).message == message

    def test_survives_an_exception_that_cannot_be_shown(self) -> None:
        assert "BrokenText" in error_of(BrokenText(), shows_exceptions=True).message

    @pytest.mark.parametrize(
        ("inside", "error_type"),
        [
            (
                [EngineError("overloaded", "x"), EngineError("internal", "y")],
                "overloaded",
            ),
            ([ExceptionGroup("g", [EngineError("overloaded", "x")])], "overloaded"),
            ([EngineError("overloaded", "x"), ValueError()], "internal"),
        ],
        ids=["first of several", "nested", "with others"],
    )
    def test_looks_into_groups(self, inside: list[Exception], error_type: str) -> None:
        group = ExceptionGroup("group", inside)

        assert error_of(group, shows_exceptions=False).type == error_type


class TestCloseOpenBelow:
    @pytest.mark.parametrize(
        ("status", "shown"),
        [
            (CloseStatus.OK, "cancelled"),
            (CloseStatus.SKIPPED, "cancelled"),
            (CloseStatus.CANCELLED, "cancelled"),
            (CloseStatus.FAILED, "failed"),
        ],
    )
    async def test_never_says_that_it_went_well(
        self, stage: Stage, status: CloseStatus, shown: str
    ) -> None:
        """Spec: Ruling E11."""
        error = error_of(EngineError("internal", "x"), shows_exceptions=False)
        tool = await stage.turn.tool("Bash").__aenter__()

        close_open_below(stage.builder, stage.turn_card, status, error)

        closing = (await stage.log()).closing(tool.card_id)
        assert closing["status"] == shown
        assert ("error" in closing) == (shown == "failed")


class TestMayEmit:
    async def test_counts_what_comes_after_the_turn(self, stage: Stage) -> None:
        stage.end_turn()

        assert not stage.context.may_emit()
        assert stage.builder.dropped_count == 1
