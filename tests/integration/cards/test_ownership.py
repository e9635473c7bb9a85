"""Two workers on one database: who runs what, and what becomes of the lost.

Spec: Rulings E8, E9, E10, E14, E23, E26; design.md 4.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta

import pytest
import pytest_asyncio
from channels.layers import InMemoryChannelLayer

from cards.clock import utc_now
from cards.database import run_in_database
from cards.engine import Turn
from cards.models import Injection, Session, Worker
from cards.models import Turn as TurnRow
from cards.queries import fold_cards, newest_seq, unfinished_turns
from tests.integration.cards.conftest import make_session
from tests.integration.cards.house import (
    PATIENCE_S,
    Client,
    House,
    running_house,
    until_at_rest,
)

HOUR = timedelta(hours=1)

#: How the two workers hear of each other: by rings, or by looking alone.
WAYS = ["rung", "looking"]


class Waiting:
    """A play that says when it is inside, and goes on when it may.

    Attributes:
        is_over: Set when it ended, however.
    """

    def __init__(self, house: House) -> None:
        self.is_inside = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.is_over = asyncio.Event()
        self.runs = 0
        house.engine.plays["wait"] = self

    async def __call__(self, turn: Turn) -> None:
        self.runs += 1
        try:
            async with turn.message() as message, turn.tool("Bash"):
                await turn.flush()
                self.is_inside.set()
                await self.goes_on.wait()
                await message.text("late")
        finally:
            self.is_over.set()

    async def until_over(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self.is_over.wait()


class Stubborn(Waiting):
    """A play that does not let itself be cancelled, and says something for it."""

    async def __call__(self, turn: Turn) -> None:
        async with turn.message() as message:
            await turn.flush()
            self.is_inside.set()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            await self.goes_on.wait()
            with suppress(Exception):
                await message.text("late")
        self.is_over.set()


@pytest_asyncio.fixture(params=WAYS)
async def houses(
    request: pytest.FixtureRequest, transactional_db: None
) -> AsyncIterator[tuple[House, House]]:
    """Two living workers."""
    layer = InMemoryChannelLayer() if request.param == "rung" else None
    async with running_house(layer=layer) as first, running_house(layer=layer) as other:
        first.hub.start()
        other.hub.start()
        yield first, other


@pytest_asyncio.fixture
async def lost(transactional_db: None) -> AsyncIterator[tuple[House, House]]:
    """A worker that the other one takes for lost, although it still breathes."""
    async with running_house(lease_s=0) as lost, running_house() as heir:
        yield lost, heir


async def in_one_session(houses: tuple[House, House]) -> list[Client]:
    """Connect a client to each worker, to a session that has a row."""
    await run_in_database(make_session, "sess_1")
    return [await house.connect() for house in houses]


async def statuses(house: House) -> list[tuple[str, str]]:
    record = (await house.live()).record
    assert record is not None
    fold = await run_in_database(fold_cards, record.pk)
    return [(card.card_id, card.status) for card in fold.cards()]


def newest_of_log() -> int:
    return newest_seq(Session.objects.get().pk)


def prompts_of(client: Client) -> list[str]:
    return [
        frame["payload"]["request_id"]
        for frame in client.frames
        if frame["type"] == "prompt.user"
    ]


def replies_of(client: Client) -> list[str]:
    return [
        frame["payload"]["decision"]
        for frame in client.frames
        if frame["type"] == "prompt.reply"
    ]


def queues_of(client: Client) -> list[list[str]]:
    inners = [frame["payload"].get("inner", {}) for frame in client.logged]
    return [
        [message["event_id"] for message in inner["queue"]]
        for inner in inners
        if "queue" in inner
    ]


def end_turn_c1() -> None:
    TurnRow.objects.filter(event_id="c1").update(state=TurnRow.State.ENDED)


async def owner() -> str:
    return (await run_in_database(Session.objects.get)).owner


class TestLostWorker:
    """Spec: Ruling E14; cases FR-49, FR-55, FR-57."""

    async def test_is_found_out_by_whoever_attaches(
        self, lost: tuple[House, House]
    ) -> None:
        gone, heir = lost
        play = Waiting(gone)
        before = await gone.connect()
        await before.say("wait", "c1")
        await play.is_inside.wait()

        after = await heir.connect()
        await after.transport.until(lambda: after.closes_of("turn_c1"))

        closed = after.closes_of("turn_c1")[0]["payload"]
        assert closed["status"] == "failed"
        assert closed["error"]["code"] == "WORKER_LOST"
        assert closed["error"]["retryable"] is True
        assert [status for _, status in after.closes()] == ["failed"] * 3
        assert [error["code"] for error in after.errors()] == ["WORKER_LOST"]
        await until_at_rest(heir)
        assert await owner() == ""

    async def test_is_found_out_in_a_round(self, lost: tuple[House, House]) -> None:
        gone, heir = lost
        play = Waiting(gone)
        await (await gone.connect()).say("wait", "c1")
        await play.is_inside.wait()

        await heir.hub.find_the_lost()
        await until_at_rest(heir)

        assert {status for _, status in await statuses(heir)} == {"failed"}
        assert await run_in_database(Worker.objects.count) == 1

    async def test_writes_nothing_once_it_wakes(
        self, lost: tuple[House, House]
    ) -> None:
        """A paused worker that was replaced: what it says is refused, and it stops."""
        gone, heir = lost
        play = Waiting(gone)
        before = await gone.connect()
        await before.say("wait", "c1")
        await play.is_inside.wait()
        after = await heir.connect()
        await after.until_closed("turn_c1")

        play.goes_on.set()
        await until_at_rest(gone)
        await gone.hub.look_around()
        await before.until_closed("turn_c1")

        assert before.seqs == list(range(1, len(before.seqs) + 1))
        assert before.closes_of("turn_c1") == after.closes_of("turn_c1")
        assert len(await statuses(heir)) == 3
        log = await heir.log()
        assert not any(b"late" in frame for frame in log)

    async def test_stops_its_work_once_it_wakes(
        self, lost: tuple[House, House]
    ) -> None:
        """It may have nothing to say that the log would refuse."""
        gone, heir = lost
        play = Waiting(gone)
        before = await gone.connect()
        await before.say("wait", "c1")
        await play.is_inside.wait()
        after = await heir.connect()
        await after.until_closed("turn_c1")
        await until_at_rest(heir)

        await gone.hub.renew()
        await play.until_over()
        await before.until_closed("turn_c1")
        await until_at_rest(gone)

        assert await run_in_database(newest_of_log) == len(before.logged)
        assert before.seqs == list(range(1, len(before.seqs) + 1))
        assert before.closes_of("turn_c1") == after.closes_of("turn_c1")
        assert len(before.closes()) == 3

    async def test_goes_on_as_a_follower_while_the_heir_works(
        self, lost: tuple[House, House]
    ) -> None:
        gone, heir = lost
        play, again = Waiting(gone), Waiting(heir)
        before = await gone.connect()
        await before.say("wait", "c1")
        await play.is_inside.wait()
        after = await heir.connect()
        await after.until_closed("turn_c1")
        await after.say("wait", "c2")
        await again.is_inside.wait()

        await gone.hub.renew()
        await before.until_closed("turn_c1")
        await before.interrupt()
        await heir.hub.look_around()
        await after.until_closed("turn_c2")
        await gone.hub.look_around()
        await before.until_closed("turn_c2")

        assert before.closes() == after.closes()
        assert before.closes()[-1] == ("turn", "cancelled")
        assert before.seqs == list(range(1, len(before.seqs) + 1))

    async def test_takes_the_session_back_although_its_old_work_does_not_end(
        self, lost: tuple[House, House]
    ) -> None:
        gone, heir = lost
        play = Stubborn(gone)
        before = await gone.connect()
        await before.say("wait", "c1")
        await play.is_inside.wait()
        await (await heir.connect()).until_closed("turn_c1")
        await until_at_rest(heir)
        await gone.hub.renew()

        await before.say("hi", "c2")
        closed = await before.until_closed("turn_c2")
        play.goes_on.set()
        await play.until_over()
        await gone.hub.stop(grace_s=0)

        assert closed["payload"]["status"] == "ok"
        assert before.seqs == list(range(1, len(before.seqs) + 1))
        assert not any(b"late" in frame for frame in await heir.log())

    async def test_leaves_its_questions_to_the_heir(
        self, lost: tuple[House, House]
    ) -> None:
        """Spec: Rulings E14, E15: prompts survive, and are answered once."""
        gone, heir = lost
        answers: list[str] = []

        async def ask(turn: Turn) -> None:
            answers.append((await turn.ask("Red or blue?")).text)

        async def go_on(turn: Turn) -> None:
            assert turn.input.continuation is not None
            answers.append("in a turn of its own")

        gone.engine.plays["ask"] = ask
        heir.engine.plays["Your"] = go_on
        before = await gone.connect()
        await before.say("ask", "c1")
        await before.transport.until(lambda: prompts_of(before))
        after = await heir.connect()
        await after.until_closed("turn_c1")
        await until_at_rest(heir)

        await gone.hub.renew()
        await before.until_closed("turn_c1")
        await until_at_rest(gone)
        assert prompts_of(after) == prompts_of(before)
        await after.send(
            {
                "type": "prompt.user_response",
                "request_id": prompts_of(before)[0],
                "decision": "approved",
                "payload": {"custom_text": "red"},
            }
        )
        await after.transport.until(lambda: len(after.closes()) == 2)

        assert answers == ["in a turn of its own"]
        assert replies_of(after) == ["approved"]

    async def test_that_has_nothing_to_run_sees_what_was_written_meanwhile(
        self, lost: tuple[House, House], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Rounds look behind the last one, however long ago that was."""
        gone, heir = lost
        before = await gone.connect()
        await before.say("hi", "c1")
        await before.until_closed("turn_c1")
        await until_at_rest(gone)
        await gone.hub.look_around()
        await (await heir.connect()).say("hi", "c2")
        await until_at_rest(heir)
        monkeypatch.setattr("cards.live.hub.utc_now", lambda: utc_now() + HOUR)

        await gone.hub.look_around()

        await before.until_closed("turn_c2")
        assert before.seqs == list(range(1, len(before.seqs) + 1))

    async def test_can_run_the_session_again_later(
        self, lost: tuple[House, House]
    ) -> None:
        gone, heir = lost
        play = Waiting(gone)
        before = await gone.connect()
        await before.say("wait", "c1")
        await play.is_inside.wait()
        await (await heir.connect()).until_closed("turn_c1")
        await until_at_rest(heir)

        await before.say("hi", "c2")

        closed = await before.until_closed("turn_c2")
        assert closed["payload"]["status"] == "ok"
        assert before.seqs == list(range(1, len(before.seqs) + 1))

    async def test_leaves_its_queue_to_the_heir(
        self, lost: tuple[House, House]
    ) -> None:
        """Spec: Ruling E9; nothing is run twice, nothing is forgotten."""
        gone, heir = lost
        play, again = Waiting(gone), Waiting(heir)
        before = await gone.connect()
        await before.say("wait", "c1")
        await play.is_inside.wait()
        for name in ("c2", "c3"):
            await before.say("hi", name)

        after = await heir.connect()
        await after.until_closed("turn_c3")

        turns = [pair for pair in await statuses(heir) if pair[0].startswith("turn")]
        assert turns == [("turn_c1", "failed"), ("turn_c2", "ok"), ("turn_c3", "ok")]
        assert (play.runs, again.runs) == (1, 0)

    async def test_is_replaced_by_one_of_many(self, lost: tuple[House, House]) -> None:
        gone, heir = lost
        play = Waiting(gone)
        await (await gone.connect()).say("wait", "c1")
        await play.is_inside.wait()
        async with running_house() as third:
            clients = [await house.connect() for house in (heir, third) for _ in "abc"]
            for house in (heir, third):
                await house.hub.find_the_lost()
                await until_at_rest(house)
            for house in (heir, third):
                await house.hub.look_around()
            for client in clients:
                # The turn may have been closed before the client was there.
                await client.resume(0)
                await client.until_closed("turn_c1")
                closes = client.closes_of("turn_c1")
                assert len({close["envelope"]["seq"] for close in closes}) == 1
            assert len(await statuses(heir)) == 3


class TestLivingOwner:
    """Spec: Ruling E26; design.md 4."""

    async def test_shows_its_frames_to_clients_of_another_worker(
        self, houses: tuple[House, House]
    ) -> None:
        """Cases HC-55, FR-127."""
        here, there = await in_one_session(houses)

        await here.say("hi", "c1")
        await there.until_closed("turn_c1")

        assert there.logged == here.logged
        assert there.seqs == list(range(1, len(there.seqs) + 1))

    async def test_is_found_by_who_waits_for_a_session_of_that_id(
        self, houses: tuple[House, House]
    ) -> None:
        """Both clients name a session that has no row yet. Spec: Rulings E1, E26."""
        first, other = houses
        here, there = await first.connect(), await other.connect()
        assert here.trace_id != there.trace_id

        await here.say("hi", "c1")
        await here.until_closed("turn_c1")
        await there.until_closed("turn_c1")

        assert there.trace_id == here.trace_id
        assert there.logged == here.logged

    async def test_is_found_by_who_sends_the_same_message_elsewhere(
        self, houses: tuple[House, House]
    ) -> None:
        """It is answered with its turn, and sees all of it. Spec: Rulings E8, E26."""
        first, other = houses
        here, there = await first.connect(), await other.connect()

        await here.say("hi", "c1")
        await here.until_closed("turn_c1")
        await there.say("hi", "c1")
        await there.until_closed("turn_c1")

        assert there.logged == here.logged
        assert [frame["payload"]["turn_no"] for frame in there.logged[:1]] == [1]

    async def test_runs_what_another_worker_accepted(
        self, houses: tuple[House, House]
    ) -> None:
        first, _ = houses
        play = Waiting(first)
        here, there = await in_one_session(houses)
        await here.say("wait", "c1")
        await play.is_inside.wait()

        await there.say("hi", "c2")
        play.goes_on.set()

        await there.until_closed("turn_c2")
        await here.until_closed("turn_c2")
        assert there.logged == here.logged
        assert [pair[1] for pair in here.closes() if pair[0] == "turn"] == ["ok", "ok"]

    async def test_is_stopped_from_another_worker(
        self, houses: tuple[House, House]
    ) -> None:
        """Spec: Ruling E10."""
        first, _ = houses
        play = Waiting(first)
        here, there = await in_one_session(houses)
        await here.say("wait", "c1")
        await play.is_inside.wait()

        await there.interrupt()

        closed = await there.until_closed("turn_c1")
        assert closed["payload"]["status"] == "cancelled"
        assert here.closes_of("turn_c1") == [closed]

    async def test_hears_words_from_another_worker(
        self, houses: tuple[House, House]
    ) -> None:
        """Spec: Ruling E23."""
        first, _ = houses
        is_inside = asyncio.Event()

        async def listen(turn: Turn) -> None:
            is_inside.set()
            async for words in turn.injections():
                async with turn.message() as message:
                    await message.text(f"heard {words}")
                return

        first.engine.plays["listen"] = listen
        here, there = await in_one_session(houses)
        await here.say("listen", "c1")
        await is_inside.wait()
        await there.transport.until(lambda: there.logged)

        await there.send({"type": "user.inject", "text": "faster"})
        await there.until_closed("turn_c1")

        texts = [
            frame["payload"]["chunk"]
            for frame in there.logged
            if frame["type"] == "card.append"
        ]
        assert texts == ["faster", "heard faster"]
        assert await run_in_database(Injection.objects.count) == 0

    async def test_runs_a_message_once_wherever_it_comes(
        self, houses: tuple[House, House]
    ) -> None:
        """Spec: Ruling E8; cases FR-143, FR-145."""
        first, other = houses
        play, again = Waiting(first), Waiting(other)
        await in_one_session(houses)
        clients = [await house.connect() for house in houses for _ in "ab"]

        await asyncio.gather(*(client.say("wait", "c1") for client in clients))
        for each in (play, again):
            each.goes_on.set()
        for client in clients:
            await client.until_closed("turn_c1")

        assert play.runs + again.runs == 1
        assert await run_in_database(TurnRow.objects.count) == 1


class TestStop:
    """Spec: design.md 1; cases FR-177, HC-59."""

    async def test_ends_the_running_turn_truthfully(
        self, transactional_db: None
    ) -> None:
        async with running_house() as house:
            play = Waiting(house)
            client = await house.connect()
            await client.say("wait", "c1")
            await play.is_inside.wait()

            await house.hub.stop(grace_s=0)

            assert await client.until_closed("turn_c1")
            assert client.closes()[-1] == ("turn", "cancelled")
            assert [error["code"] for error in client.errors()] == ["SERVER_STOPPED"]
            assert await owner() == ""
            assert await run_in_database(Worker.objects.count) == 0

    @pytest.mark.parametrize("when", ["before", "meanwhile"])
    async def test_waits_for_no_answer(self, transactional_db: None, when: str) -> None:
        """A question outlives the server. Spec: Rulings E14, E15."""
        async with running_house() as house, running_house() as heir:
            is_inside, goes_on = asyncio.Event(), asyncio.Event()

            async def ask(turn: Turn) -> None:
                is_inside.set()
                if when == "meanwhile":
                    await goes_on.wait()
                await turn.ask("Red or blue?")

            house.engine.plays["ask"] = ask
            heir.engine.plays["Your"] = heir.engine.plays["hi"]
            client = await house.connect()
            await client.say("ask", "c1")
            await is_inside.wait()
            if when == "before":
                await client.transport.until(lambda: prompts_of(client))

            stop = asyncio.create_task(house.hub.stop(grace_s=100 * PATIENCE_S))
            goes_on.set()
            async with asyncio.timeout(PATIENCE_S):
                await stop
            after = await heir.connect()
            assert prompts_of(after) == prompts_of(client)
            await after.send(
                {
                    "type": "prompt.user_response",
                    "request_id": prompts_of(after)[0],
                    "decision": "approved",
                    "payload": {"custom_text": "red"},
                }
            )
            await after.transport.until(lambda: len(after.closes()) == 2)

        assert client.closes() == [("turn", "cancelled")]
        assert [error["code"] for error in client.errors()] == ["SERVER_STOPPED"]
        assert replies_of(client) == []
        assert replies_of(after) == ["approved"]

    async def test_lets_a_turn_end_that_is_nearly_done(
        self, transactional_db: None
    ) -> None:
        async with running_house() as house:
            play = Waiting(house)
            client = await house.connect()
            await client.say("wait", "c1")
            await play.is_inside.wait()

            play.goes_on.set()
            await house.hub.stop(grace_s=30)

            assert client.closes()[-1] == ("turn", "ok")

    async def test_leaves_what_waits_to_the_next(self, transactional_db: None) -> None:
        """Spec: Ruling E9: the queue survives a restart."""
        async with running_house() as house, running_house() as heir:
            play = Waiting(house)
            client = await house.connect()
            await client.say("wait", "c1")
            await play.is_inside.wait()
            await client.say("hi", "c2")
            await house.hub.stop(grace_s=0)
            await client.say("hi", "c3")
            record = (await heir.live()).record
            assert record is not None
            waiting = await run_in_database(unfinished_turns, record.pk)
            assert [turn.event_id for turn in waiting] == ["c2", "c3"]

            await heir.hub.find_the_lost()
            await until_at_rest(heir)

            turns = [p for p in await statuses(heir) if p[0].startswith("turn")]
            assert [status for _, status in turns] == ["cancelled", "ok", "ok"]


class TestQueueOfAnOwnerBefore:
    """Whoever saw messages wait is told when they wait no more. Spec: Ruling E9."""

    async def test_is_shown_empty_when_its_only_turn_begins(
        self, lost: tuple[House, House]
    ) -> None:
        """The owner went between the end of one turn and the begin of the next."""
        gone, heir = lost
        play, again = Waiting(gone), Waiting(heir)
        before = await gone.connect()
        await before.say("wait", "c1")
        await play.is_inside.wait()
        await before.say("wait", "c2")
        await before.transport.until(lambda: queues_of(before))
        await run_in_database(end_turn_c1)

        after = await heir.connect()
        await again.is_inside.wait()

        assert queues_of(after) == [[]]

    async def test_is_shown_empty_after_a_stop(self, transactional_db: None) -> None:
        async with running_house() as house, running_house() as heir:
            play, again = Waiting(house), Waiting(heir)
            before = await house.connect()
            await before.say("wait", "c1")
            await play.is_inside.wait()
            await before.say("wait", "c2")
            await before.transport.until(lambda: queues_of(before))
            await house.hub.stop(grace_s=0)
            after = await heir.connect()

            await heir.hub.find_the_lost()
            await again.is_inside.wait()

            assert queues_of(after) == [[]]

    async def test_is_shown_empty_when_its_message_is_sent_again(
        self, lost: tuple[House, House]
    ) -> None:
        """Spec: Ruling E8: the heir hears of it by a message that it had already."""
        gone, heir = lost
        play, again = Waiting(gone), Waiting(heir)
        after = await heir.connect()
        before = await gone.connect()
        await before.say("wait", "c1")
        await play.is_inside.wait()
        await before.say("wait", "c2")
        await before.transport.until(lambda: queues_of(before))
        await run_in_database(end_turn_c1)
        await heir.hub.look_around()

        await after.say("wait", "c2")
        await again.is_inside.wait()

        assert queues_of(after)[-1] == []

    async def test_is_not_spoken_of_when_there_was_none(
        self, lost: tuple[House, House]
    ) -> None:
        gone, heir = lost
        before = await gone.connect()
        await before.say("hi", "c1")
        await before.until_closed("turn_c1")
        await until_at_rest(gone)

        after = await heir.connect()
        await after.say("hi", "c2")
        await after.until_closed("turn_c2")

        assert queues_of(after) == []


class TestLateWords:
    async def test_wait_for_the_next_when_their_worker_stops(
        self, transactional_db: None
    ) -> None:
        """Spec: Ruling E23; design.md 1."""
        async with running_house() as house, running_house() as heir:
            play = Waiting(house)
            client = await house.connect()
            await client.say("wait", "c1")
            await play.is_inside.wait()
            turn = await run_in_database(TurnRow.objects.get)
            await run_in_database(
                Injection.objects.create,
                turn=turn,
                text="hi again",
                accepted_at=turn.accepted_at,
            )
            await house.hub.stop(grace_s=0)

            await heir.hub.find_the_lost()
            await until_at_rest(heir)

            turns = [p for p in await statuses(heir) if p[0].startswith("turn")]
            assert [status for _, status in turns] == ["cancelled", "ok"]
            assert await run_in_database(Injection.objects.count) == 0
            assert any(b"hi again" in frame for frame in await heir.log())

    async def test_become_a_turn_of_their_own(self, transactional_db: None) -> None:
        """Words that were accepted and came too late are not lost. Ruling E23."""
        async with running_house() as house:
            play = Waiting(house)
            client = await house.connect()
            await client.say("wait", "c1")
            await play.is_inside.wait()
            turn = await run_in_database(TurnRow.objects.get)
            await run_in_database(
                Injection.objects.create,
                turn=turn,
                text="hi again",
                accepted_at=turn.accepted_at,
            )

            play.goes_on.set()
            await client.until_closed("turn_c1")
            await client.transport.until(lambda: len(client.closes()) == 5)

            started = [
                frame["payload"]["input"]["text"]
                for frame in client.logged
                if frame["type"] == "card.add"
                and frame["envelope"]["card_kind"] == "turn"
            ]
            assert started == ["wait", "hi again"]
