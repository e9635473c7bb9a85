"""A client's cursor into the log, and what it may say."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from django.db import connection as database

from cards.database import run_in_database
from cards.live.session import LiveSession
from cards.log.tail import Tail
from cards.models import Event, Session
from cards.principals import Principal
from cards.protocol.client_messages import UserMessage
from cards.transport import Batch
from tests.integration.cards.house import (
    Client,
    Frame,
    House,
    error_of,
    kind_of,
    running_house,
)

ANN = Principal("user:1")
BOB = Principal("user:2")


@pytest_asyncio.fixture(name="house")
async def _house(transactional_db: None) -> AsyncIterator[House]:
    async with running_house() as house:
        yield house


@pytest_asyncio.fixture(name="client")
async def _client(house: House) -> Client:
    return await house.connect()


async def talk(client: Client, *names: str) -> None:
    """Have turns of five frames each."""
    for name in names:
        await client.say("hi", name)
        await client.until_closed(f"turn_{name}")


async def shorten_tail(house: House) -> LiveSession:
    """Forget the recent frames, so that everybody behind reads the log."""
    live = await house.live()
    live.audience.tail = Tail(live.tail.newest_seq, Batch)
    return live


class TestOpen:
    """Spec: EMIT 2.2; Ruling E1."""

    async def test_greets_first(self, client: Client) -> None:
        (frame,) = client.frames

        inner = frame["payload"]["inner"]
        assert kind_of(frame) == "opened"
        assert frame["envelope"]["session_id"] == "sess_1"
        assert (inner["protocol_version"], inner["model"]) == ("2.0", "played")
        assert inner["last_seq"] == 0
        assert frame["envelope"]["trace_id"] != inner["trace_id"]

    @pytest.mark.parametrize("given", ["", "a b", "../x", "实验", "s" * 129, "a\0"])
    async def test_of_an_odd_id_gives_a_fresh_session(
        self, house: House, given: str
    ) -> None:
        client = await house.connect(given)

        opened, error = client.frames
        assert opened["envelope"]["session_id"].startswith("sess_")
        assert error_of(error)["code"] == "INVALID_SESSION_ID"
        assert error["envelope"]["seq"] == 2

    async def test_of_a_foreign_id_gives_a_fresh_session(self, house: House) -> None:
        """Spec: Ruling E27."""
        await (await house.hub.attach("sess_ann", ANN)).store()

        client = await house.connect("sess_ann", BOB)

        assert client.frames[0]["envelope"]["session_id"] != "sess_ann"
        assert error_of(client.last)["code"] == "SESSION_NOT_FOUND"

    async def test_does_not_replay(self, house: House, client: Client) -> None:
        await talk(client, "c1")

        second = await house.connect()

        assert second.last["payload"]["inner"]["last_seq"] == 5
        assert second.logged == []


class TestCreate:
    """Spec: Ruling E1."""

    async def test_without_an_id_answers_for_the_present_session(
        self, client: Client
    ) -> None:
        await client.send({"type": "session.create"})

        first, second = client.frames
        assert second["payload"] == first["payload"]
        assert await run_in_database(Session.objects.count) == 0

    async def test_binds_to_another_session(self, house: House, client: Client) -> None:
        await talk(client, "c1")
        other = await house.connect(None)

        await other.send({"type": "session.create", "session_id": "sess_1"})
        await talk(other, "c2")

        assert other.seqs == [6, 7, 8, 9, 10]
        assert client.seqs == list(range(1, 11))

    async def test_leaves_the_former_session(self, house: House) -> None:
        client, other = await house.connect(), await house.connect()
        await client.send({"type": "session.create", "session_id": "sess_2"})

        await talk(other, "c1")
        await talk(client, "c2")

        assert client.seqs == [1, 2, 3, 4, 5]
        assert {f["envelope"]["session_id"] for f in client.logged} == {"sess_2"}

    async def test_again_keeps_what_is_delivered(self, client: Client) -> None:
        await talk(client, "c1")
        await client.send({"type": "session.create", "session_id": "sess_1"})
        await talk(client, "c2")

        assert client.seqs == list(range(1, 11))

    async def test_of_a_foreign_session_is_refused(self, house: House) -> None:
        """Spec: Ruling E27."""
        await (await house.hub.attach("sess_ann", ANN)).store()
        client = await house.connect(None, BOB)

        await client.send({"type": "session.create", "session_id": "sess_ann"})

        assert error_of(client.last)["code"] == "SESSION_NOT_FOUND"


class TestLostRace:
    async def test_for_a_new_id_is_told_at_the_first_message(
        self, house: House
    ) -> None:
        """Spec: Ruling E27."""
        anns = await house.connect("sess_new", ANN)
        bobs = await house.connect("sess_new", BOB)
        await talk(bobs, "c1")

        await anns.say("hi", "c1")

        assert error_of(anns.last)["code"] == "SESSION_NOT_FOUND"
        assert anns.logged == []


class TestResume:
    """Spec: EMIT 2.4.1; Ruling E5."""

    @pytest.mark.parametrize("is_tail_kept", [True, False])
    @pytest.mark.parametrize("last_seq", [0, 1, 4, 9, 10])
    async def test_gives_what_is_missing(
        self, house: House, client: Client, last_seq: int, is_tail_kept: bool
    ) -> None:
        await talk(client, "c1", "c2")
        if not is_tail_kept:
            await shorten_tail(house)
        second = await house.connect()

        inner = await second.resume(last_seq)
        await talk(second, "c3")

        assert (inner["from_seq"], inner["to_seq"]) == (last_seq + 1, 10)
        assert second.seqs == list(range(last_seq + 1, 16))
        stored = await house.log()
        assert second.transport.raw[2:] == stored[last_seq:]

    async def test_of_an_empty_log_gives_nothing(self, client: Client) -> None:
        inner = await client.resume(0)
        await talk(client, "c1")

        assert (inner["from_seq"], inner["to_seq"]) == (1, 0)
        assert client.seqs == [1, 2, 3, 4, 5]

    async def test_ahead_of_the_log_is_refused(self, client: Client) -> None:
        """Case FR-05."""
        await talk(client, "c1")

        inner = await client.resume(1005)
        await talk(client, "c2")

        assert inner["reason"] == "unknown_trace"
        assert client.seqs == list(range(1, 11))

    async def test_of_what_was_pruned_is_refused(
        self, house: House, client: Client
    ) -> None:
        """Case FR-13."""
        await talk(client, "c1", "c2")
        await run_in_database(Event.objects.filter(seq__lt=5).delete)
        await shorten_tail(house)

        assert (await client.resume(2))["reason"] == "events_expired"
        assert (await client.resume(4))["from_seq"] == 5
        assert (await client.resume(0))["from_seq"] == 5

    async def test_of_a_deleted_session_is_refused(self, client: Client) -> None:
        await talk(client, "c1")
        await run_in_database(Session.objects.all().delete)

        assert (await client.resume(0))["reason"] == "session_not_found"

    async def test_of_an_unknown_trace_is_refused(
        self, house: House, client: Client
    ) -> None:
        own = client.frames[0]["envelope"]["trace_id"]
        foreign = await house.hub.attach("sess_ann", ANN)
        await foreign.store()

        for trace_id in ["tr_none", own, foreign.trace_id, "\0"]:
            assert (await client.resume(0, trace_id))["reason"] == "unknown_trace"

    async def test_by_the_trace_alone_binds_the_connection(
        self, house: House, client: Client
    ) -> None:
        await talk(client, "c1")
        second = await house.connect(None)

        inner = await second.resume(2, client.trace_id)
        await second.transport.until(lambda: len(second.frames) == 5)
        await talk(client, "c2")
        await second.until_closed("turn_c2")

        assert inner["from_seq"] == 3
        seqs = [f["envelope"]["seq"] for f in second.frames[2:]]
        assert seqs == list(range(3, 11))
        assert second.frames[1]["envelope"]["session_id"] == "sess_1"

    async def test_of_another_session_is_refused_once_one_is_named(
        self, house: House, client: Client
    ) -> None:
        await talk(client, "c1")
        second = await house.connect("sess_2")
        third = await house.connect(None)
        await talk(third, "c1")

        for other in [second, third]:
            inner = await other.resume(0, client.trace_id)
            assert inner["reason"] == "unknown_trace"


class TestSlowClient:
    """The log waits; the connection keeps its cursor."""

    async def test_gets_everything_once_it_reads(self, house: House) -> None:
        slow, fast = await house.connect(), await house.connect()
        slow.transport.room = 0

        await talk(fast, "c1", "c2")
        assert slow.logged == []
        slow.transport.drain()

        assert slow.seqs == list(range(1, 11))

    async def test_gets_answers_meanwhile(self, client: Client) -> None:
        client.transport.room = 0

        await client.send({"type": "ping"})
        await client.send({"type": "nope"})

        assert client.frames[1] == {"type": "pong"}
        assert error_of(client.last)["code"] == "UNKNOWN_FRAME_TYPE"

    async def test_reads_the_log_when_the_tail_has_gone_on(self, house: House) -> None:
        slow, fast = await house.connect(), await house.connect()
        slow.transport.room = 0
        await talk(fast, "c1", "c2")
        await shorten_tail(house)

        slow.transport.drain()
        await talk(fast, "c3")
        await slow.until_closed("turn_c3")

        assert slow.seqs == list(range(1, 16))

    async def test_may_be_slow_while_it_catches_up(self, house: House) -> None:
        slow, fast = await house.connect(), await house.connect()
        slow.transport.room = 0
        await talk(fast, "c1")
        await shorten_tail(house)

        slow.transport.drain(room=1)
        slow.transport.room = 0
        await run_in_database(int)
        await talk(fast, "c2")
        assert slow.logged == []
        slow.transport.drain()
        await slow.until_closed("turn_c2")

        assert slow.seqs == list(range(1, 11))

    async def test_is_forgotten_while_it_catches_up(self, house: House) -> None:
        slow, fast = await house.connect(), await house.connect()
        slow.transport.room = 0
        await talk(fast, "c1")
        await shorten_tail(house)
        slow.transport.drain(room=0)

        slow.transport.drain()
        slow.connection.end()
        slow.transport.drain()
        await talk(fast, "c2")

        assert slow.logged == []


class TestCatchUp:
    async def test_keeps_what_it_promised_when_the_client_asks_for_less(
        self, house: House, client: Client
    ) -> None:
        """Spec: Ruling E5: exactly the frames that `resumed` named."""
        await talk(client, "c1", "c2")
        await shorten_tail(house)
        second = await house.connect()

        await second.resume(0)
        second.transport.room = 0
        await second.resume(8)
        second.transport.drain()
        await talk(client, "c3")
        await second.until_closed("turn_c3")

        assert second.seqs == list(range(1, 16))

    async def test_ends_when_the_client_goes_to_another_session(
        self, house: House, client: Client
    ) -> None:
        await talk(client, "c1")
        await shorten_tail(house)
        second = await house.connect()
        await second.resume(0)
        second.transport.room = 0

        await second.send({"type": "session.create", "session_id": "sess_2"})
        second.transport.drain()
        await talk(second, "c1")

        assert second.seqs == [1, 2, 3, 4, 5]
        assert {f["envelope"]["session_id"] for f in second.logged} == {"sess_2"}

    async def test_goes_on_when_the_log_is_pruned_under_it(self, house: House) -> None:
        slow, fast = await house.connect(), await house.connect()
        slow.transport.room = 0
        await talk(fast, "c1")
        await run_in_database(Event.objects.all().delete)
        await shorten_tail(house)

        slow.transport.drain()
        await talk(fast, "c2")
        await slow.until_closed("turn_c2")

        assert slow.seqs == [6, 7, 8, 9, 10]

    async def test_that_fails_closes_the_socket(self, house: House) -> None:
        slow, fast = await house.connect(), await house.connect()
        slow.transport.room = 0
        await talk(fast, "c1")
        live = await shorten_tail(house)
        broken: Any = "no key"
        assert live.record is not None
        live.record = replace(live.record, pk=broken)

        slow.transport.drain()
        await slow.transport.until(lambda: slow.transport.closed)

        assert slow.transport.closed == [1011]
        assert fast.transport.closed == []


class TestClientFrames:
    """Spec: EMIT 9, 16."""

    @pytest.mark.parametrize(
        ("frame", "code"),
        [
            ({"type": "user.inject", "text": "x"}, "NO_RUNNING_TURN"),
            (
                {"type": "tool.result", "tool_use_id": "t", "status": "ok"},
                "UNKNOWN_TOOL_USE_ID",
            ),
            (
                {
                    "type": "prompt.user_response",
                    "request_id": "r",
                    "decision": "approved",
                },
                "UNKNOWN_REQUEST_ID",
            ),
            ({"type": "user.message", "content": []}, "EMPTY_MESSAGE"),
            ("[", "INVALID_JSON"),
        ],
        ids=lambda value: str(value)[:30],
    )
    async def test_that_have_no_effect_are_answered(
        self, client: Client, frame: Frame | str, code: str
    ) -> None:
        await client.send(frame)
        await talk(client, "c1")

        assert [error["code"] for error in client.errors()] == [code]

    async def test_that_fail_in_us_are_answered(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def fail(live: LiveSession, message: UserMessage) -> None:
            raise LookupError("a mistake of ours")

        monkeypatch.setattr(LiveSession, "submit", fail)

        await client.say("hi", "c2")

        error = error_of(client.last)
        assert (error["type"], error["code"]) == ("internal", "NOT_HANDLED")
        assert error["retryable"] is True

    async def test_without_a_database_are_answered(self, client: Client) -> None:
        await talk(client, "c1")

        async with without_turns():
            await client.say("hi", "c2")
        error = error_of(client.last)
        await talk(client, "c2")

        assert error["code"] == "DATABASE_UNAVAILABLE"
        assert (error["type"], error["retryable"]) == ("overloaded", True)

    async def test_before_the_greeting_are_refused(self, house: House) -> None:
        client = Client(house.hub, ANN)

        await client.interrupt()

        assert error_of(client.last)["code"] == "NOT_HANDLED"


@asynccontextmanager
async def without_turns() -> AsyncIterator[None]:
    """Take the table of turns away: every statement about them fails."""
    await run_in_database(rename_table, "cards_turn", "cards_turn_away")
    try:
        yield
    finally:
        await run_in_database(rename_table, "cards_turn_away", "cards_turn")


def rename_table(old: str, new: str) -> None:
    with database.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {old} RENAME TO {new}")


class TestTwoConnections:
    async def test_get_the_same_bytes(self, house: House) -> None:
        """Spec: Rulings E3, E26."""
        first, second = await house.connect(), await house.connect()

        await asyncio.gather(talk(first, "c1"), talk(second, "c2"))
        await asyncio.gather(
            *(client.until_closed(f"turn_{name}")
              for client in (first, second) for name in ("c1", "c2"))
        )  # fmt: skip

        stored = [msgspec.json.decode(each) for each in await house.log()]
        assert first.logged == second.logged == stored
