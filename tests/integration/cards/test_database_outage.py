"""What happens while the event log cannot be written."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from django.db import connections

from cards.database import run_in_database
from cards.engine import Engine, Turn
from cards.live.connection import Connection
from cards.live.hub import Hub
from cards.live.runtime import RuntimeSettings
from cards.log.committer import Committer
from cards.log.store import Entry, LogStore, StoreUnavailable, open_store
from cards.principals import ANONYMOUS
from cards.queries import fold_cards, unfinished_turns
from cards.transport import Batch


class UnreliableStore:
    """The real store, with a plug to pull."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self.is_away = False

    def write(self, entries: Sequence[Entry]) -> None:
        if self.is_away:
            raise StoreUnavailable("the plug is pulled")
        self._store.write(entries)

    def checkpoint(self) -> None:
        self._store.checkpoint()

    def close(self) -> None:
        self._store.close()


class TwoPartEngine(Engine):
    """Says one word, waits to be told, and says another."""

    def __init__(self) -> None:
        self.said_one = asyncio.Event()
        self.go_on = asyncio.Event()

    async def run(self, turn: Turn) -> None:
        if turn.input.text != "outage":
            return
        async with turn.message() as message, turn.tool("Bash"):
            await message.text("one")
            await turn.flush()
            self.said_one.set()
            await self.go_on.wait()
            await message.text("two")
            await turn.flush()


class RecordingTransport:
    """A client that reads everything at once."""

    def __init__(self) -> None:
        self.is_writable = True
        self.frames: list[dict[str, Any]] = []
        self._news = asyncio.Event()

    def on_writable(self, callback: object) -> None:
        """Always writable."""

    def write(self, batch: Batch) -> None:
        self.frames.extend(msgspec.json.decode(each) for each in batch.payloads)
        self._news.set()

    def close(self, code: int) -> None:
        raise AssertionError(f"closed with {code}")

    async def until(self, is_wanted: Any) -> dict[str, Any]:
        while True:
            for frame in self.frames:
                if is_wanted(frame):
                    return frame
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 30)


class House:
    """A process in small: hub, store, engine, one client."""

    def __init__(self) -> None:
        self.store = UnreliableStore(open_store())
        self.engine = TwoPartEngine()
        self.committer = Committer(lambda: self.store, patience_s=0)
        self.hub = Hub(
            committer=self.committer,
            settings=RuntimeSettings(
                engine=self.engine, tick_interval_ms=0, shows_exceptions=False
            ),
            queue_limit=8,
        )
        self.client = RecordingTransport()
        self.connection = Connection(self.hub, self.client, ANONYMOUS)

    async def say(self, text: str, event_id: str) -> None:
        message = {"type": "user.message", "text": text, "event_id": event_id}
        await self.connection.receive(msgspec.json.encode(message).decode())

    async def until_closed(self, card_id: str) -> dict[str, Any]:
        return await self.client.until(
            lambda frame: (
                frame["type"] == "card.close"
                and frame["envelope"]["card_id"] == card_id
            )
        )


@pytest_asyncio.fixture
async def house(transactional_db: None) -> AsyncIterator[House]:
    built = House()
    await built.connection.open("sess_outage")
    yield built
    built.connection.end()
    await built.committer.close()
    await run_in_database(connections.close_all)


def error_code(frame: dict[str, Any]) -> str:
    inner = frame["payload"].get("inner") or {}
    return str((inner.get("error") or {}).get("code"))


class TestOutage:
    @pytest.mark.parametrize("when", ["before the turn", "within the turn"])
    async def test_fails_the_turn_and_then_goes_on(
        self, house: House, when: str
    ) -> None:
        """Issue: emitters wait, then turns fail clearly; no restart is needed."""
        house.store.is_away = when == "before the turn"
        await house.say("outage", "c1")
        if when == "within the turn":
            await house.engine.said_one.wait()
            house.store.is_away = True
        house.engine.go_on.set()
        told = await house.client.until(
            lambda frame: error_code(frame) == "LOG_UNAVAILABLE"
        )
        logged_before = [f for f in house.client.frames if f["type"] == "card.close"]
        house.store.is_away = False
        closed = await house.until_closed("turn_c1")
        await house.say("fine", "c2")
        fine = await house.until_closed("turn_c2")

        assert told["payload"]["inner"]["error"]["retryable"] is True
        assert logged_before == []
        assert closed["payload"]["status"] == "failed"
        assert closed["payload"]["error"]["code"] == "LOG_UNAVAILABLE"
        assert fine["payload"]["status"] == "ok"

    async def test_leaves_a_log_without_holes_or_open_cards(self, house: House) -> None:
        """Spec: Rulings E2, E3, E11."""
        await house.say("outage", "c1")
        await house.engine.said_one.wait()
        house.store.is_away = True
        house.engine.go_on.set()
        await house.client.until(lambda frame: error_code(frame) == "LOG_UNAVAILABLE")
        house.store.is_away = False
        await house.until_closed("turn_c1")
        await house.say("fine", "c2")
        await house.until_closed("turn_c2")

        live = await house.hub.attach("sess_outage", ANONYMOUS)
        record = live.record
        assert record is not None
        cards = (await run_in_database(fold_cards, record.pk)).cards()
        assert {card.status for card in cards} == {"failed", "ok"}
        assert [card.channels.get("text") for card in cards][1] == "one"
        assert await run_in_database(unfinished_turns, record.pk) == []
        seqs = [
            frame["envelope"]["seq"]
            for frame in house.client.frames
            if frame["envelope"]["trace_id"] == live.trace_id
        ]
        assert seqs == list(range(1, len(seqs) + 1))
        closes = [
            frame["envelope"]["card_kind"]
            for frame in house.client.frames
            if frame["type"] == "card.close"
        ]
        assert closes == ["tool", "message", "turn", "turn"]
