"""The builder, with a log in memory."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from cards.builder import Builder
from cards.log.store import RowChange
from cards.log.writer import LogWriteFailed
from cards.protocol.card_tree import Card
from cards.protocol.envelope import Hint, Metrics
from cards.protocol.errors import LocalProtocolError
from cards.protocol.kinds import (
    CardKind,
    Channel,
    CloseStatus,
    SessionEventKind,
    Severity,
    TickKind,
)
from cards.protocol.payloads import (
    REQUIRED_ON_ADD,
    AgentPayload,
    HeartbeatInner,
    MessagePayload,
    NoteInner,
    Payload,
    ProgressInner,
    TickPayload,
    TodoPayload,
    ToolPayload,
    UpdatedInner,
)
from tests.unit.cards.engine.stage import Stage
from tests.unit.cards.protocol.frames import ERROR, PAYLOADS

CHANGE = RowChange("UPDATE cards_session SET title = %s", ("x",), 1)


@pytest_asyncio.fixture(name="stage")
async def _stage() -> AsyncIterator[Stage]:
    async with Stage() as stage:
        yield stage


def add(stage: Stage, kind: CardKind, card_id: str, **options: Any) -> Card:
    wanted: dict[str, Any] = {"card_id": card_id, "parent": stage.turn_card}
    return stage.builder.add(kind, PAYLOADS[kind], **(wanted | options))


def progress(count: int) -> TickPayload:
    return TickPayload(
        kind=TickKind.PROGRESS, inner=ProgressInner(items_processed=count)
    )


async def timers_have_run() -> None:
    """Wait until the loop has run all timers of a millisecond that were set before."""
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(0.002, later.set)
    await later.wait()


def counts_of(ticks: list[dict[str, Any]]) -> list[int]:
    return [tick["items_processed"] for tick in ticks]


class TestAdd:
    """Spec: EMIT 6.1."""

    async def test_fills_the_envelope(self, stage: Stage) -> None:
        """Spec: EMIT 3.2; Ruling E6."""
        add(stage, CardKind.TOOL, "toolu_1", agent_run_id="run_1")

        envelope = (await stage.log()).only("tool")["envelope"]
        assert re.fullmatch("evt_[0-9a-f]{20}", envelope.pop("event_id"))
        assert envelope == {
            "session_id": "sess_1",
            "trace_id": "tr_1",
            "card_id": "toolu_1",
            "parent_card_id": "turn_1",
            "card_kind": "tool",
            "seq": 2,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "agent_id": "main",
            "agent_role": "worker",
            "agent_run_id": "run_1",
            "severity": "info",
        }

    async def test_follows_the_clock(self, stage: Stage) -> None:
        for _ in range(2):
            stage.clock.advance(1)
            add(stage, CardKind.MESSAGE, stage.builder.random_hex(4))

        stamps = [f["envelope"]["timestamp"] for f in (await stage.log()).frames]
        assert [stamp[-5:] for stamp in stamps] == [".000Z", ".001Z", ".002Z"]

    async def test_takes_the_hint_and_severity_given(self, stage: Stage) -> None:
        hint = Hint(title="Title", icon="warning")

        add(stage, CardKind.TOOL, "t", hint=hint, severity=Severity.WARN)

        frame = (await stage.log()).only("tool")
        assert frame["hint"] == {"title": "Title", "icon": "warning"}
        assert frame["envelope"]["severity"] == "warn"

    async def test_carries_row_changes_into_the_transaction(self, stage: Stage) -> None:
        add(stage, CardKind.TOOL, "t", changes=(CHANGE,))

        await stage.log()
        assert [entry.changes for entry in stage.store.entries] == [(), (CHANGE,)]

    @pytest.mark.parametrize(
        "kind", [kind for kind, names in REQUIRED_ON_ADD.items() if names]
    )
    async def test_refuses_a_card_that_lacks_what_its_kind_needs(
        self, stage: Stage, kind: CardKind
    ) -> None:
        """Spec: EMIT 10."""
        payload = type(PAYLOADS[kind])()

        with pytest.raises(LocalProtocolError, match=REQUIRED_ON_ADD[kind][0]):
            stage.builder.add(kind, payload, card_id="x", parent=stage.turn_card)

    async def test_gives_no_seq_to_what_it_refuses(self, stage: Stage) -> None:
        todo = add(stage, CardKind.TODO, "todo_1")
        refused: list[dict[str, Any]] = [
            {"card_id": "todo_1"},
            {"card_id": "x", "parent": None},
            {"card_id": "x", "parent": todo},
            {"card_id": "x", "agent_id": "nobody"},
        ]

        for options in refused:
            with pytest.raises(LocalProtocolError):
                add(stage, CardKind.TOOL, **options)

        assert stage.writer.next_seq == 3
        assert stage.builder.is_free("x")

    async def test_refuses_text_that_was_not_cleaned(self, stage: Stage) -> None:
        payload = MessagePayload(role="assistant", model="\ud83d")

        with pytest.raises(LocalProtocolError):
            stage.builder.add(
                CardKind.MESSAGE, payload, card_id="x", parent=stage.turn_card
            )
        assert stage.builder.is_free("x")


class TestFreeCardId:
    """Spec: Ruling E7."""

    @pytest.mark.parametrize(
        ("kind", "shape"),
        [
            (CardKind.MESSAGE, "msg_[0-9a-f]{16}"),
            (CardKind.THINKING, "thk_[0-9a-f]{16}"),
            (CardKind.TODO, "todo_[0-9a-f]{16}"),
            (CardKind.TOOL, "tool_[0-9a-f]{16}"),
            (CardKind.TEAM, "card_[0-9a-f]{16}"),
        ],
    )
    async def test_is_minted(self, stage: Stage, kind: CardKind, shape: str) -> None:
        assert re.fullmatch(shape, stage.builder.free_card_id(kind, None))

    async def test_is_the_wanted_one_once(self, stage: Stage) -> None:
        assert stage.builder.free_card_id(CardKind.TOOL, "t") == "t"
        add(stage, CardKind.TOOL, "t")

        assert stage.builder.free_card_id(CardKind.TOOL, "t") != "t"

    async def test_is_never_one_of_the_log(self) -> None:
        class Repeating:
            """Gives the digits of a used id first."""

            digits = iter(["00" * 8, "01" * 8])

            def hex(self, byte_count: int) -> str:
                return next(self.digits)

        async with Stage(used_ids=["msg_" + "00" * 8]) as stage:
            entropy: Any = Repeating()
            stage.builder._entropy = entropy

            minted = stage.builder.free_card_id(CardKind.MESSAGE, None)
        assert minted == "msg_" + "01" * 8


class TestSet:
    """Spec: EMIT 6.2; Ruling E11."""

    async def test_sends_the_patch(self, stage: Stage) -> None:
        todo = add(stage, CardKind.TODO, "todo_1")

        stage.builder.set(todo, TodoPayload(status="completed"))

        frame = (await stage.log()).frames[-1]
        assert (frame["type"], frame["payload"]) == (
            "card.set",
            {"status": "completed"},
        )
        assert "hint" not in frame

    @pytest.mark.parametrize(
        ("kind", "patch"),
        [
            (CardKind.TOOL, ToolPayload(name="")),
            (CardKind.AGENT, AgentPayload(name="")),
            (CardKind.TODO, TodoPayload(subject="")),
        ],
    )
    async def test_never_blanks_what_a_card_needs(
        self, stage: Stage, kind: CardKind, patch: Payload
    ) -> None:
        card = add(stage, kind, "x", agent_id="x" if kind == "agent" else "main")

        with pytest.raises(LocalProtocolError, match="blank"):
            stage.builder.set(card, patch)
        if kind != "todo":
            with pytest.raises(LocalProtocolError, match="blank"):
                stage.builder.close(card, CloseStatus.OK, inner=patch)
        assert stage.writer.next_seq == 3


class TestAppend:
    """Spec: EMIT 6.3."""

    async def test_refuses_a_channel_of_another_kind(self, stage: Stage) -> None:
        message = add(stage, CardKind.MESSAGE, "m")

        with pytest.raises(LocalProtocolError):
            stage.builder.append(message, Channel.THINKING, "hm")
        assert stage.writer.next_seq == 3


class TestTick:
    """Spec: EMIT 6.4; Ruling E20."""

    async def test_that_waits_is_sent_by_its_timer(self) -> None:
        async with Stage(tick_interval_ms=1) as stage:
            tool = add(stage, CardKind.TOOL, "t")
            for number in range(3):
                stage.builder.tick(tool, progress(number))
            await timers_have_run()

            log = await stage.log()
        assert counts_of(log.ticks("progress")) == [0, 2]

    async def test_that_waits_is_replaced_by_one_that_is_due(self) -> None:
        async with Stage(tick_interval_ms=250_000) as stage:
            tool = add(stage, CardKind.TOOL, "t")
            stage.builder.tick(tool, progress(1))
            stage.builder.tick(tool, progress(2))
            stage.clock.advance(250_000)
            stage.builder.tick(tool, progress(3))
            stage.builder.close(tool, CloseStatus.OK)

            log = await stage.log()
        assert counts_of(log.ticks("progress")) == [1, 3]

    async def test_that_may_not_be_dropped_never_waits(self) -> None:
        async with Stage(tick_interval_ms=250_000) as stage:
            tool = add(stage, CardKind.TOOL, "t")
            for number in range(3):
                note = NoteInner(text=str(number))
                stage.builder.tick(tool, TickPayload(kind=TickKind.NOTE, inner=note))

            notes = (await stage.log()).ticks("note")
        assert [note["text"] for note in notes] == ["0", "1", "2"]

    async def test_that_waits_is_never_sent_after_the_close(self) -> None:
        """The timer is still there when the card is closed."""
        async with Stage(tick_interval_ms=1) as stage:
            tool = add(stage, CardKind.TOOL, "t")
            for number in range(3):
                stage.builder.tick(tool, progress(number))
            stage.builder.close(tool, CloseStatus.OK)
            await timers_have_run()

            log = await stage.log()
        assert counts_of(log.ticks("progress")) == [0, 2]
        assert log.frames[-1]["type"] == "card.close"

    async def test_that_waits_is_dropped_when_the_log_has_failed(self) -> None:
        async with Stage(tick_interval_ms=1) as stage:
            tool = add(stage, CardKind.TOOL, "t")
            await stage.writer.flush()
            stage.store.is_away = True
            for number in range(3):
                stage.builder.tick(tool, progress(number))
            with pytest.raises(LogWriteFailed):
                await stage.writer.flush()
            await timers_have_run()

        assert len(stage.store.entries) == 2

    async def test_stops_waiting_when_told(self) -> None:
        async with Stage(tick_interval_ms=250_000) as stage:
            tool = add(stage, CardKind.TOOL, "t")
            heartbeat = TickPayload(kind=TickKind.HEARTBEAT, inner=HeartbeatInner())
            stage.builder.tick(tool, heartbeat)
            stage.builder.tick(tool, heartbeat)

            stage.builder.stop()

            assert len((await stage.log()).ticks("heartbeat")) == 1


class TestClose:
    """Spec: EMIT 6.5; Rulings E11, E12."""

    @pytest.mark.parametrize(
        ("status", "severity"),
        [
            ("ok", "info"),
            ("failed", "error"),
            ("skipped", "warn"),
            ("cancelled", "warn"),
        ],
    )
    async def test_is_as_loud_as_it_is_bad(
        self, stage: Stage, status: str, severity: str
    ) -> None:
        tool = add(stage, CardKind.TOOL, "t")

        error = ERROR if status == "failed" else None
        stage.builder.close(tool, CloseStatus(status), error=error)

        frame = (await stage.log()).frames[-1]
        assert frame["envelope"]["severity"] == severity
        assert frame["payload"]["status"] == status
        assert ("error" in frame["payload"]) == (status == "failed")

    async def test_happens_once(self, stage: Stage) -> None:
        tool = add(stage, CardKind.TOOL, "t")

        for _ in range(3):
            stage.builder.close(tool, CloseStatus.OK)

        assert (await stage.log()).closes() == [("tool", "ok")]
        assert stage.builder.dropped_count == 2

    async def test_adds_the_duration_to_the_metrics(self, stage: Stage) -> None:
        tool = add(stage, CardKind.TOOL, "t")
        stage.clock.advance(1234)

        stage.builder.close(tool, CloseStatus.OK, metrics=Metrics(tokens_in=3))

        metrics = (await stage.log()).frames[-1]["metrics"]
        assert metrics == {"duration_ms": 1234, "tokens_in": 3}

    async def test_carries_row_changes_into_the_transaction(self, stage: Stage) -> None:
        stage.builder.close(stage.turn_card, CloseStatus.OK, changes=(CHANGE,))

        await stage.log()
        assert stage.store.entries[-1].changes == (CHANGE,)

    async def test_refuses_a_kind_that_is_never_closed(self, stage: Stage) -> None:
        """Spec: EMIT 10.9."""
        todo = add(stage, CardKind.TODO, "todo_1")

        with pytest.raises(LocalProtocolError, match="never closed"):
            stage.builder.close(todo, CloseStatus.OK)
        assert stage.writer.next_seq == 3


NOTE = TickPayload(kind=TickKind.NOTE, inner=NoteInner(text="still here"))


class TestSignsOfLife:
    """What the watchdog gets to know of a card. Spec: Ruling E13."""

    @pytest.mark.parametrize(
        "emit",
        [
            lambda builder, card: builder.set(card, MessagePayload(model="x")),
            lambda builder, card: builder.append(card, Channel.TEXT, "x"),
            lambda builder, card: builder.tick(card, NOTE),
            lambda builder, card: builder.close(card, CloseStatus.OK),
        ],
        ids=["set", "append", "tick", "close"],
    )
    async def test_are_its_frames(
        self, stage: Stage, emit: Callable[[Builder, Card], None]
    ) -> None:
        message = add(stage, CardKind.MESSAGE, "m")
        assert message.last_event_ms == stage.clock.now_ms
        stage.clock.advance(5000)

        emit(stage.builder, message)

        assert message.last_event_ms == stage.clock.now_ms
        assert message.opened_ms == stage.clock.now_ms - 5000

    async def test_are_told_to_the_card_alone(self, stage: Stage) -> None:
        """A frame costs no walk: the watchdog hands the time on when it looks."""
        message = add(stage, CardKind.MESSAGE, "m")
        stage.clock.advance(5000)

        stage.builder.append(message, Channel.TEXT, "x")

        assert stage.turn_card.last_event_ms == stage.clock.now_ms - 5000

    async def test_end_with_its_close(self, stage: Stage) -> None:
        """What is dropped was no frame. Spec: Ruling E12."""
        message = add(stage, CardKind.MESSAGE, "m")
        stage.builder.close(message, CloseStatus.OK)
        stage.clock.advance(5000)

        stage.builder.append(message, Channel.TEXT, "too late")

        assert message.last_event_ms == stage.clock.now_ms - 5000


class TestSessionEvent:
    """Spec: EMIT 8; Ruling E6."""

    async def test_belongs_to_no_card(self, stage: Stage) -> None:
        stage.builder.session_event(
            SessionEventKind.UPDATED, UpdatedInner(title="T"), changes=(CHANGE,)
        )

        frame = (await stage.log()).frames[-1]
        envelope = frame["envelope"]
        assert (envelope["card_id"], envelope["card_kind"]) == ("", "")
        assert (envelope["agent_role"], envelope["seq"]) == ("system", 2)
        assert frame["payload"] == {"kind": "updated", "inner": {"title": "T"}}
        assert stage.store.entries[-1].changes == (CHANGE,)


class TestFailedLog:
    async def test_refuses_everything_more(self, stage: Stage) -> None:
        tool = add(stage, CardKind.TOOL, "t")
        await stage.writer.flush()
        stage.store.is_away = True
        stage.builder.tick(tool, progress(1))
        with pytest.raises(LogWriteFailed):
            await stage.writer.flush()

        with pytest.raises(LogWriteFailed):
            add(stage, CardKind.TOOL, "t2")
        with pytest.raises(LogWriteFailed):
            stage.builder.close(tool, CloseStatus.OK)
