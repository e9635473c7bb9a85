"""Which turn a stop means, and what its client is told. Spec: Rulings E9, E10.

A client that names no turn means the one it saw running. While it was not shown that
this one has ended, it cannot mean the next. Case FR-43.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from cards.database import run_in_database
from cards.engine import Turn
from cards.live.new_turns import accepted_message
from cards.log.committer import LogSource
from cards.log.store import Entry
from cards.models import Event, Session
from cards.models import Turn as TurnRow
from cards.operations import (
    NOTHING_TO_STOP,
    NewTurn,
    StopRequest,
    accept_message,
    stop_turns,
)
from cards.protocol.client_messages import UserMessage
from tests.integration.cards.conftest import NOW, make_session
from tests.integration.cards.house import Client, House, running_house


class Waiting:
    """A play that waits until it may go on, and says that it does."""

    def __init__(self, house: House, word: str) -> None:
        self.is_inside = asyncio.Event()
        self.goes_on = asyncio.Event()
        house.engine.plays[word] = self

    async def __call__(self, turn: Turn) -> None:
        async with turn.message():
            await turn.flush()
            self.is_inside.set()
            await self.goes_on.wait()


@pytest_asyncio.fixture(name="house")
async def _house(transactional_db: None) -> AsyncIterator[House]:
    async with running_house() as house:
        yield house


@pytest_asyncio.fixture(name="houses")
async def _houses(transactional_db: None) -> AsyncIterator[tuple[House, House]]:
    """Two living workers that look at the database only when they are told to."""
    await run_in_database(make_session, "sess_1")
    async with running_house() as first, running_house() as other:
        yield first, other


def state_told(client: Client) -> object:
    """Return the state that the newest frame tells."""
    return client.last["payload"]["inner"].get("state")


def status_of(client: Client, card_id: str) -> object:
    return client.closes_of(card_id)[0]["payload"]["status"]


async def end_first_of_two(house: House, client: Client, how: str) -> Waiting:
    """Run a turn to its end, and the one that waited for it until it works."""
    first, second = Waiting(house, "first"), Waiting(house, "second")
    await client.say("first", "c1")
    await first.is_inside.wait()
    await client.say("second", "c2")
    if how == "stopped":
        await client.interrupt()
    first.goes_on.set()
    await second.is_inside.wait()
    return second


@pytest.mark.parametrize("how", ["stopped", "ended by itself"])
class TestWithoutName:
    async def test_spares_the_next_turn_of_who_has_not_seen_the_end(
        self, house: House, how: str
    ) -> None:
        """Two tabs: the slower one still shows the turn that is over."""
        slow, quick = await house.connect(), await house.connect()
        await quick.say("hi", "c0")
        await slow.until_closed("turn_c0")
        slow.transport.room = 0
        second = await end_first_of_two(house, quick, how)

        await slow.interrupt()
        told = state_told(slow)
        slow.transport.drain()
        second.goes_on.set()
        await slow.until_closed("turn_c2")

        assert told == "running"
        assert status_of(slow, "turn_c2") == "ok"

    async def test_stops_the_next_turn_of_who_has_seen_it(
        self, house: House, how: str
    ) -> None:
        client = await house.connect()
        await end_first_of_two(house, client, how)

        await client.interrupt()
        await client.until_closed("turn_c2")

        assert status_of(client, "turn_c2") == "cancelled"

    async def test_stops_it_although_its_client_has_all_shown_again(
        self, house: House, how: str
    ) -> None:
        """A page that reloads knows what runs, whatever it is still shown of it."""
        client = await house.connect()
        await end_first_of_two(house, client, how)
        client.transport.room = 0
        await client.resume(0)

        await client.interrupt()
        client.transport.drain()
        await client.until_closed("turn_c2")

        assert status_of(client, "turn_c2") == "cancelled"

    async def test_with_the_queue_stops_all(self, house: House, how: str) -> None:
        """Who wants nothing to run any more means whatever runs by now."""
        slow, quick = await house.connect(), await house.connect()
        await quick.say("hi", "c0")
        await slow.until_closed("turn_c0")
        slow.transport.room = 0
        await end_first_of_two(house, quick, how)
        await quick.say("hi", "c3")

        await slow.interrupt(clear_queue=True)
        await quick.until_closed("turn_c3")

        assert status_of(quick, "turn_c2") == "cancelled"
        assert status_of(quick, "turn_c3") == "cancelled"

    async def test_spares_it_from_another_worker_too(
        self, houses: tuple[House, House], how: str
    ) -> None:
        first, other = houses
        here = await first.connect()
        await here.say("hi", "c0")
        await here.until_closed("turn_c0")
        there = await other.connect()
        second = await end_first_of_two(first, here, how)

        await there.interrupt()
        told = state_told(there)
        await first.hub.look_around()
        second.goes_on.set()
        await here.until_closed("turn_c2")

        assert told == "running"
        assert status_of(here, "turn_c2") == "ok"

    async def test_stops_it_from_another_worker_that_has_shown_it(
        self, houses: tuple[House, House], how: str
    ) -> None:
        first, other = houses
        here, there = await first.connect(), await other.connect()
        await end_first_of_two(first, here, how)
        await other.hub.look_around()
        await there.transport.until(lambda: there.seqs == here.seqs)

        await there.interrupt()
        await first.hub.look_around()
        await here.until_closed("turn_c2")

        assert status_of(here, "turn_c2") == "cancelled"


class TestSessionThatAnotherWorkerMade:
    """Both clients named it before it had a row. Spec: Rulings E1, E26."""

    async def test_is_stopped_at_once(self, transactional_db: None) -> None:
        async with running_house() as first, running_house() as other:
            here, there = await first.connect(), await other.connect()
            play = Waiting(first, "wait")
            await here.say("wait", "c1")
            await play.is_inside.wait()

            await there.interrupt()
            await first.hub.look_around()
            await here.until_closed("turn_c1")

            assert status_of(here, "turn_c1") == "cancelled"

    async def test_takes_words_at_once(self, transactional_db: None) -> None:
        """Spec: Ruling E23."""
        async with running_house() as first, running_house() as other:
            here, there = await first.connect(), await other.connect()
            heard: list[str] = []

            async def listen(turn: Turn) -> None:
                async with turn.message():
                    await turn.flush()
                async for words in turn.injections():
                    heard.append(words)
                    return

            first.engine.plays["listen"] = listen
            await here.say("listen", "c1")
            await here.transport.until(here.closes)

            await there.send({"type": "user.inject", "text": "faster"})
            await first.hub.look_around()
            await here.until_closed("turn_c1")

            assert heard == ["faster"]
            assert there.errors() == []


class TestBetweenTwoTurns:
    async def test_a_stop_that_meets_the_end_of_a_turn_spares_the_next(
        self, house: House, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The turn is over, but nobody can know before that is stored."""
        client = await house.connect()
        first = Waiting(house, "first")
        await client.say("first", "c1")
        await first.is_inside.wait()
        await client.say("hi", "c2")
        submit = house.committer.submit
        stops: list[asyncio.Task[None]] = []

        def submit_and_stop(source: LogSource, entry: Entry) -> None:
            submit(source, entry)
            if b'"card.close"' in entry.data and b'"card_id":"turn_c1"' in entry.data:
                stops.append(asyncio.create_task(client.interrupt()))

        monkeypatch.setattr(house.committer, "submit", submit_and_stop)
        first.goes_on.set()
        await client.until_closed("turn_c2")
        await asyncio.gather(*stops)

        assert len(stops) == 1
        assert status_of(client, "turn_c1") == "ok"
        assert status_of(client, "turn_c2") == "ok"


class TestAnswer:
    """Spec: Ruling E10: never silence, and never a lie."""

    async def test_tells_what_another_worker_runs(
        self, houses: tuple[House, House]
    ) -> None:
        first, other = houses
        here, there = await first.connect(), await other.connect()
        second = await end_first_of_two(first, here, "ended by itself")

        await there.interrupt(turn_card_id="turn_c1")
        while_it_runs = state_told(there)
        second.goes_on.set()
        await here.until_closed("turn_c2")
        await there.interrupt(turn_card_id="turn_c1")

        assert while_it_runs == "running"
        assert state_told(there) == "idle"

    async def test_tells_what_runs_here(self, house: House) -> None:
        client = await house.connect()
        second = await end_first_of_two(house, client, "ended by itself")

        await client.interrupt(turn_card_id="turn_c1")
        while_it_runs = state_told(client)
        second.goes_on.set()
        await client.until_closed("turn_c2")
        await client.interrupt()

        assert while_it_runs == "running"
        assert state_told(client) == "idle"


class TestStopTurns:
    """What is stored for the owner."""

    @pytest.fixture(autouse=True)
    def _make_turns(self, session_row: Session) -> None:
        for name in ("c1", "c2", "c3"):
            turn = NewTurn(
                event_id=name,
                card_id=f"turn_{name}",
                run_id="run_1",
                message=accepted_message(UserMessage(text="hi")),
                title="hi",
                accepted_at=NOW,
            )
            accept_message(session_pk=session_row.pk, turn=turn, queue_limit=8, me=None)
        Event.objects.bulk_create(
            Event(session=session_row, seq=seq, data=b"{}") for seq in range(1, 11)
        )
        TurnRow.objects.filter(turn_no=1).update(state=TurnRow.State.ENDED, first_seq=1)

    def begin_second(self) -> None:
        TurnRow.objects.filter(turn_no=2).update(
            state=TurnRow.State.RUNNING, first_seq=8
        )

    @pytest.mark.parametrize(
        ("has_begun", "request_", "stopped"),
        [
            (True, StopRequest(seen_seq=6), []),
            (True, StopRequest(seen_seq=7), [2]),
            (True, StopRequest(seen_seq=10), [2]),
            (True, StopRequest(seen_seq=0, clear_queue=True), [2, 3]),
            (True, StopRequest(seen_seq=0, turn_card_id="turn_c2"), [2]),
            (True, StopRequest(seen_seq=10, turn_card_id="turn_c1"), []),
            (
                True,
                StopRequest(seen_seq=10, turn_card_id="turn_c1", clear_queue=True),
                [3],
            ),
            (False, StopRequest(seen_seq=9), []),
            (False, StopRequest(seen_seq=10), [2]),
            (False, StopRequest(seen_seq=9, clear_queue=True), [2, 3]),
        ],
    )
    def test_marks_what_is_meant(
        self,
        session_row: Session,
        request_: StopRequest,
        stopped: list[int],
        *,
        has_begun: bool,
    ) -> None:
        if has_begun:
            self.begin_second()

        outcome = stop_turns(session_row.pk, request_)

        marked = TurnRow.objects.filter(is_stopped=True).order_by("turn_no")
        assert list(marked.values_list("turn_no", flat=True)) == stopped
        assert (outcome.is_stopped, outcome.is_running) == (bool(stopped), True)

    def test_tells_that_nothing_runs(self, session_row: Session) -> None:
        TurnRow.objects.update(state=TurnRow.State.ENDED)

        assert stop_turns(session_row.pk, StopRequest(seen_seq=10)) == NOTHING_TO_STOP
