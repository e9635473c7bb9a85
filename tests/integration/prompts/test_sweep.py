"""Prompts that nobody answered in their time."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from io import StringIO

import pytest
import pytest_asyncio
from django.core.management import CommandError, call_command
from django.db import connection

from cards.clock import utc_now
from cards.database import run_in_database
from cards.engine import PromptTimeout, Turn
from cards.models import Session, Worker
from cards.models import Turn as TurnRow
from cards.queries import read_page
from prompts.models import PendingWait, SettledPrompt
from prompts.sweep import BATCH_WAITS
from tests.integration.cards.conftest import make_session
from tests.integration.cards.house import House, running_house, until_at_rest
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

NOW = utc_now()
DAY = timedelta(days=1)


@pytest_asyncio.fixture
async def lost(transactional_db: None) -> AsyncIterator[tuple[House, House]]:
    """A worker that the other one takes for lost, although it still breathes."""
    async with running_house(lease_s=0) as lost, running_house() as heir:
        yield lost, heir


def make_turn(session: Session, state: str = "ended") -> TurnRow:
    return TurnRow.objects.create(
        session=session,
        turn_no=1,
        event_id="c1",
        card_id="turn_c1",
        run_id="run_1",
        state=state,
        message={"text": "hi", "content": []},
        accepted_at=NOW,
    )


def make_waits(
    turn: TurnRow, count: int, *, name: str = "req", **fields: object
) -> None:
    PendingWait.objects.bulk_create(
        PendingWait(
            **{
                "request_id": f"{name}_{turn.session_id}_{number}",
                "session_id": turn.session_id,
                "turn": turn,
                "kind": "question",
                "state": "pending",
                "seq": number + 1,
                "created_at": NOW - 16 * DAY,
                "expires_at": NOW - DAY,
            }
            | fields
        )
        for number in range(count)
    )


def sweep(*arguments: str) -> str:
    output = StringIO()
    call_command("sweep_waits", *arguments, stdout=output)
    return output.getvalue()


class TestSweepWaits:
    def test_settles_what_has_expired(self, transactional_db: None) -> None:
        """Spec: Ruling E17; cases HC-26, FR-159, FR-167."""
        sessions = [make_session(f"sess_{number}") for number in range(3)]
        for session in sessions:
            make_waits(make_turn(session), BATCH_WAITS // 2)
        turn = TurnRow.objects.first()
        assert turn is not None
        make_waits(turn, 1, name="young", expires_at=NOW + DAY)
        make_waits(turn, 1, name="endless", expires_at=None)
        make_waits(turn, 1, name="late", expires_at=None, deadline_at=NOW - DAY)
        expected = f"sweep_waits: expired={3 * BATCH_WAITS // 2 + 1} sessions=3"

        assert sweep("--dry-run") == f"{expected} unseen=0 forgotten=0\n"
        assert PendingWait.objects.count() == 3 * BATCH_WAITS // 2 + 3
        assert sweep() == f"{expected} unseen=0 forgotten=0\n"

        kept = PendingWait.objects.order_by("pk").values_list("request_id", flat=True)
        assert [each.split("_")[0] for each in kept] == ["young", "endless"]
        for session in sessions:
            frames = read_page(session.pk, after_seq=0).frames
            assert len(frames) >= BATCH_WAITS // 2
            assert all(b'"decision":"timeout"' in frame for frame in frames)
        assert set(Session.objects.values_list("owner", flat=True)) == {""}
        assert not Worker.objects.exists()
        assert sweep() == "sweep_waits: expired=0 sessions=0 unseen=0 forgotten=0\n"

    def test_removes_what_nobody_can_answer(self, transactional_db: None) -> None:
        session = make_session("sess_1")
        turn = make_turn(session)
        running = make_turn(make_session("sess_2"), "running")
        make_waits(turn, 2, name="unseen", state="opening", expires_at=None)
        make_waits(turn, 1, name="new", state="opening", created_at=NOW)
        make_waits(turn, 1, name="tool", kind="client_tool", expires_at=None)
        make_waits(running, 1, name="call", kind="client_tool")
        for number, age in enumerate((14 * DAY, 16 * DAY)):
            SettledPrompt.objects.create(
                request_id=f"req_{number}",
                session=session,
                decision="approved",
                settled_at=NOW - age,
            )
        counted = "sweep_waits: expired=0 sessions=0 unseen=3 forgotten=1\n"

        assert [sweep("--dry-run"), sweep()] == [counted] * 2

        kept = PendingWait.objects.order_by("pk").values_list("request_id", flat=True)
        assert [each.split("_")[0] for each in kept] == ["new", "call"]
        assert list(SettledPrompt.objects.values_list("request_id", flat=True)) == [
            "req_0"
        ]

    @pytest.mark.parametrize(
        ("expires_at", "is_kept"),
        [
            (datetime(1, 1, 2, tzinfo=UTC), False),
            (datetime(9999, 12, 30, tzinfo=UTC), True),
            ((NOW - DAY).astimezone(timezone(timedelta(hours=8))), False),
            ((NOW + DAY).astimezone(timezone(-timedelta(hours=11))), True),
        ],
    )
    def test_compares_moments(
        self, transactional_db: None, expires_at: datetime, is_kept: bool
    ) -> None:
        """Spec: case FR-165."""
        make_waits(make_turn(make_session("sess_1")), 1, expires_at=expires_at)

        sweep()

        assert PendingWait.objects.exists() == is_kept

    def test_says_why_it_failed(self, transactional_db: None) -> None:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE prompts_pendingwait RENAME TO elsewhere")
        try:
            with pytest.raises(CommandError, match="sweep_waits: "):
                sweep()
        finally:
            with connection.cursor() as cursor:
                cursor.execute("ALTER TABLE elsewhere RENAME TO prompts_pendingwait")


class TestExpiredPrompt:
    async def test_is_neither_shown_nor_answered(
        self, lost: tuple[House, House]
    ) -> None:
        """Spec: Ruling E17; cases HC-26, FR-17."""
        house, heir = lost

        async def play(turn: Turn) -> None:
            await turn.ask("which?")

        house.engine.plays["ask"] = play
        client = await house.connect()
        await client.say("ask", "c1")
        request_id = request_of(await until_asked(client))
        await expire_all()

        again = await heir.connect()
        await again.until_closed("turn_c1")
        assert prompts_of(again) == []
        for _ in range(3):
            await answer(again, request_id, "approved", custom_text="late")
        await run_in_database(sweep)
        await answer(again, request_id, "approved", custom_text="late")

        late = [error for error in again.errors() if error["code"] != "WORKER_LOST"]
        assert [error["code"] for error in late] == ["UNKNOWN_REQUEST_ID"] * 4
        assert not any(error["retryable"] for error in late)
        again.connection.pong()
        await again.transport.until(lambda: replies_of(again))
        assert replies_of(again) == [{"request_id": request_id, "decision": "timeout"}]
        third = await heir.connect()
        assert prompts_of(third) == []

    async def test_is_settled_by_a_server_alone(
        self, lost: tuple[House, House]
    ) -> None:
        """Spec: EMIT 2.4.2; Ruling E17."""
        house, heir = lost

        async def play(turn: Turn) -> None:
            await turn.ask("which?")

        house.engine.plays["ask"] = play
        client = await house.connect()
        await client.say("ask", "c1")
        await until_asked(client)
        again = await heir.connect()
        await again.until_closed("turn_c1")
        await expire_all()

        await heir.hub.sweep_waits()
        await heir.hub.find_the_lost()
        await until_at_rest(heir)

        await again.transport.until(lambda: replies_of(again))
        assert await states() == []
        assert len([f for f in again.frames if f["type"] == "card.add"]) == 0

    async def test_is_told_to_who_still_waits(self, transactional_db: None) -> None:
        async def play(turn: Turn) -> None:
            try:
                await turn.ask("which?")
            except PromptTimeout:
                await say("nobody came")(turn)

        async with running_house() as house:
            house.hub.start()
            house.engine.plays["ask"] = play
            client = await house.connect()
            await client.say("ask", "c1")
            await until_asked(client)
            await expire_all()

            # A command: the owner is alive, and goes on by itself.
            await run_in_database(sweep)
            await client.until_closed("turn_c1")

        assert text_of(client) == "nobody came"
        assert [reply["decision"] for reply in replies_of(client)] == ["timeout"]


async def expire_all() -> None:
    past = utc_now() - DAY
    await run_in_database(lambda: PendingWait.objects.update(expires_at=past))
