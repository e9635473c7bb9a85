"""Which live session a client gets, and when one is let go."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from cards.database import run_in_database
from cards.engine import Turn
from cards.operations import SessionTaken
from cards.principals import ANONYMOUS, Principal
from tests.integration.cards.conftest import make_session
from tests.integration.cards.house import Client, House, running_house, until_idle

ANN = Principal("user:1")
BOB = Principal("user:2")


@pytest_asyncio.fixture(name="house")
async def _house(transactional_db: None) -> AsyncIterator[House]:
    async with running_house() as house:
        yield house


class TestAttach:
    async def test_mints_an_id(self, house: House) -> None:
        first = await house.hub.attach(None, ANN)
        second = await house.hub.attach(None, ANN)

        assert first.session_id.startswith("sess_")
        assert first.session_id != second.session_id
        assert (first.record, first.tail.newest_seq) == (None, 0)

    async def test_gives_everybody_at_once_the_same(self, house: House) -> None:
        """Spec: Ruling E26."""
        both = await asyncio.gather(
            house.hub.attach("sess_1", ANN), house.hub.attach("sess_1", ANN)
        )

        assert both[0] is both[1]

    async def test_finds_a_session_that_was_let_go(self, house: House) -> None:
        client = await house.connect()
        await client.say("hi", "c1")
        await client.until_closed("turn_c1")
        first = await house.live()
        client.connection.end()
        await until_idle(first)
        await house.hub.look_around()

        second = await house.live()

        assert second is not first
        assert second.trace_id == first.trace_id
        assert second.tail.newest_seq == first.tail.newest_seq == 5

    async def test_knows_no_session_of_somebody_else(self, house: House) -> None:
        """Spec: Ruling E27."""
        await (await house.hub.attach("sess_1", ANN)).store()

        with pytest.raises(SessionTaken):
            await house.hub.attach("sess_1", BOB)

    async def test_of_a_new_id_belongs_to_who_stores_it_first(
        self, house: House
    ) -> None:
        anns = await house.hub.attach("sess_1", ANN)
        bobs = await house.hub.attach("sess_1", BOB)
        assert anns is not bobs

        await bobs.store()

        with pytest.raises(SessionTaken):
            await anns.store()
        assert anns.record is None

    async def test_that_another_process_stored_takes_its_trace(
        self, house: House
    ) -> None:
        live = await house.live()
        async with running_house() as other:
            client = await other.connect()
            await client.say("hi", "c1")
            await client.until_closed("turn_c1")

        await live.store()

        assert live.trace_id == client.trace_id
        assert live.tail.newest_seq == 5


class TestAttachToTrace:
    """Spec: Ruling E27."""

    async def test_finds_ones_own(self, house: House) -> None:
        live = await house.hub.attach("sess_1", ANN)
        await live.store()

        assert await house.hub.attach_to_trace(live.trace_id, ANN) is live

    async def test_finds_no_others(self, house: House) -> None:
        live = await house.hub.attach("sess_1", ANN)
        await live.store()

        assert await house.hub.attach_to_trace(live.trace_id, BOB) is None
        assert await house.hub.attach_to_trace("tr_none", ANN) is None


class TestRelease:
    async def test_lets_an_idle_session_go(self, house: House) -> None:
        live = await house.live()

        house.hub.release(live)

        assert await house.live() is not live

    async def test_keeps_what_somebody_follows(self, house: House) -> None:
        first, second = await house.connect(), await house.connect()
        live = await house.live()

        first.connection.end()
        assert await house.live() is live

        second.connection.end()
        assert await house.live() is not live

    async def test_keeps_what_is_in_use(self, house: House) -> None:
        live = await house.live()

        with live.in_use():
            house.hub.release(live)
            await house.hub.attach(None, ANN)
            assert await house.live() is live

    async def test_keeps_what_runs(self, house: House) -> None:
        goes_on = asyncio.Event()

        async def wait(turn: Turn) -> None:
            await goes_on.wait()

        house.engine.plays["wait"] = wait
        client = await house.connect()
        await client.say("wait", "c1")
        live = await house.live()
        client.connection.end()

        assert await house.live() is live
        goes_on.set()

    async def test_keeps_what_is_being_said(self, house: House) -> None:
        client = await house.connect()
        live = await house.live()
        saying = asyncio.create_task(client.say("hi", "c1"))
        await asyncio.sleep(0)
        saying.cancel()
        client.connection.end()

        again = await house.connect()
        assert await house.live() is live
        await again.until_closed("turn_c1")


class TestResumeMeanwhile:
    async def test_follows_the_session_that_all_have(self, house: House) -> None:
        """Two clients that kept only their trace resume while others come."""
        await run_in_database(make_session, "sess_1")

        async def resume() -> Client:
            client = await house.connect(None)
            await client.resume(0, "tr_sess_1")
            return client

        clients = await asyncio.gather(*(resume() for _ in range(8)))
        await clients[0].say("hi", "c1")

        for client in clients:
            await client.until_closed("turn_c1")
        assert (await house.live()).principal == ANONYMOUS
