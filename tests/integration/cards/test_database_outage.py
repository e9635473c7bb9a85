"""What happens while the event log cannot be written."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
import pytest_asyncio

from cards.database import run_in_database
from cards.engine import Engine, Turn
from cards.log.committer import Committer
from cards.log.store import Entry, LogStore, StoreUnavailable, open_store
from cards.principals import ANONYMOUS
from cards.queries import fold_cards, unfinished_turns
from tests.integration.cards.house import Client, Frame, House


class UnreliableStore:
    """The real store, with a plug to pull.

    Attributes:
        is_away: Whether the plug is pulled.
        loses_answers: Whether it is pulled behind each commit.
    """

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self.is_away = False
        self.loses_answers = False

    def write(self, entries: Sequence[Entry]) -> None:
        if self.is_away:
            raise StoreUnavailable("the plug is pulled")
        self._store.write(entries)
        if self.loses_answers:
            raise StoreUnavailable("the plug is pulled behind the commit")

    def holds(self, entry: Entry) -> bool:
        return self._store.holds(entry)

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


class Outage:
    """A house whose store can be away, and its one client."""

    def __init__(
        self, store: UnreliableStore, engine: TwoPartEngine, *, patience_s: float = 0
    ) -> None:
        self.store = store
        self.engine = engine
        self.client: Client
        self.house = House(
            engine=engine, committer=Committer(lambda: store, patience_s=patience_s)
        )

    async def connect(self) -> None:
        self.client = await self.house.connect("sess_outage")

    async def until(self, is_wanted: Callable[[Frame], bool]) -> Frame:
        await self.client.transport.until(
            lambda: any(map(is_wanted, self.client.frames))
        )
        return next(filter(is_wanted, self.client.frames))


@pytest_asyncio.fixture
async def outage(transactional_db: None) -> AsyncIterator[Outage]:
    built = Outage(UnreliableStore(open_store()), TwoPartEngine())
    await built.connect()
    yield built
    await built.house.close()


def error_code(frame: Frame) -> str:
    inner = frame["payload"].get("inner") or {}
    return str((inner.get("error") or {}).get("code"))


class TestOutage:
    @pytest.mark.parametrize("when", ["before the turn", "within the turn"])
    async def test_fails_the_turn_and_then_goes_on(
        self, outage: Outage, when: str
    ) -> None:
        """Issue: emitters wait, then turns fail clearly; no restart is needed."""
        outage.store.is_away = when == "before the turn"
        await outage.client.say("outage", "c1")
        if when == "within the turn":
            await outage.engine.said_one.wait()
            outage.store.is_away = True
        outage.engine.go_on.set()
        told = await outage.until(lambda frame: error_code(frame) == "LOG_UNAVAILABLE")
        logged_before = [f for f in outage.client.frames if f["type"] == "card.close"]
        outage.store.is_away = False
        closed = await outage.client.until_closed("turn_c1")
        await outage.client.say("fine", "c2")
        fine = await outage.client.until_closed("turn_c2")

        assert told["payload"]["inner"]["error"]["retryable"] is True
        assert logged_before == []
        assert closed["payload"]["status"] == "failed"
        assert closed["payload"]["error"]["code"] == "LOG_UNAVAILABLE"
        assert fine["payload"]["status"] == "ok"

    async def test_leaves_a_log_without_holes_or_open_cards(
        self, outage: Outage
    ) -> None:
        """Spec: Rulings E2, E3, E11."""
        await outage.client.say("outage", "c1")
        await outage.engine.said_one.wait()
        outage.store.is_away = True
        outage.engine.go_on.set()
        await outage.until(lambda frame: error_code(frame) == "LOG_UNAVAILABLE")
        outage.store.is_away = False
        await outage.client.until_closed("turn_c1")
        await outage.client.say("fine", "c2")
        await outage.client.until_closed("turn_c2")

        live = await outage.house.hub.attach("sess_outage", ANONYMOUS)
        record = live.record
        assert record is not None
        cards = (await run_in_database(fold_cards, record.pk)).cards()
        assert {card.status for card in cards} == {"failed", "ok"}
        assert [card.channels.get("text") for card in cards][1] == "one"
        assert await run_in_database(unfinished_turns, record.pk) == []
        seqs = [
            frame["envelope"]["seq"]
            for frame in outage.client.frames
            if frame["envelope"]["trace_id"] == live.trace_id
        ]
        assert seqs == list(range(1, len(seqs) + 1))
        closes = [
            frame["envelope"]["card_kind"]
            for frame in outage.client.frames
            if frame["type"] == "card.close"
        ]
        assert closes == ["tool", "message", "turn", "turn"]


async def test_a_commit_without_an_answer_costs_no_turn(transactional_db: None) -> None:
    """Spec: Rulings E2, E3: what is stored is neither lost nor stored again."""
    outage = Outage(UnreliableStore(open_store()), TwoPartEngine(), patience_s=60)
    await outage.connect()
    try:
        outage.engine.go_on.set()
        outage.store.loses_answers = True
        await outage.client.say("outage", "c1")
        closed = await outage.client.until_closed("turn_c1")
        log = await outage.house.log("sess_outage")
    finally:
        outage.store.loses_answers = False
        await outage.house.close()

    assert closed["payload"]["status"] == "ok"
    assert outage.client.errors() == []
    assert outage.client.seqs == list(range(1, len(log) + 1))
