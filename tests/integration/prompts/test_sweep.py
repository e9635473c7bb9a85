"""Prompts that nobody answered in their time."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta, timezone
from io import StringIO
from typing import Any

import pytest
import pytest_asyncio
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction
from django.db.models import F

import prompts.sweep
from cards.clock import utc_now
from cards.database import run_in_database
from cards.engine import PromptTimeout, Turn
from cards.models import Session, Worker
from cards.models import Turn as TurnRow
from cards.ports import PromptBook
from cards.queries import newest_seqs, read_page
from config.wiring import prompt_book
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


#: What somebody else does between the sweep's look at a batch and its locks.
Meanwhile = Callable[[], object]


@pytest.fixture(name="meanwhile")
def _meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Meanwhile], None]:
    """Have something done once, as soon as a sweep has read its first batch."""
    real = prompts.sweep._next_batch

    def install(do: Meanwhile) -> None:
        def next_batch(*given: Any) -> list[PendingWait]:
            batch = real(*given)
            monkeypatch.setattr(prompts.sweep, "_next_batch", real)
            do()
            return batch

        monkeypatch.setattr(prompts.sweep, "_next_batch", next_batch)

    return install


def replies_in_log() -> list[tuple[str, str]]:
    """Return which prompts were replied to, and how, in the order of the log."""
    found = []
    for pk in Session.objects.order_by("pk").values_list("pk", flat=True):
        for frame in read_page(pk, after_seq=0).frames:
            payload = json.loads(frame)["payload"]
            found.append((payload["request_id"], payload["decision"]))
    return found


class TestSweepBesideOthers:
    """It never fails, and each prompt gets one reply. Spec: Rulings E15, E17."""

    def test_replies_for_a_server_that_lapsed_them(
        self, transactional_db: None, meanwhile: Callable[[Meanwhile], None]
    ) -> None:
        """Whoever owns the session replies, whoever was first to see the time."""
        session = make_session("sess_1")
        make_waits(make_turn(session), 3)
        book = prompt_book()
        meanwhile(lambda: lapse_as_a_server_does(book))

        assert sweep() == "sweep_waits: expired=3 sessions=1 unseen=0 forgotten=0\n"

        assert replies_in_log() == [
            (f"req_{session.pk}_{number}", "timeout") for number in range(3)
        ]
        assert not PendingWait.objects.exists()

    def test_leaves_what_was_replied_to(
        self, transactional_db: None, meanwhile: Callable[[Meanwhile], None]
    ) -> None:
        session = make_session("sess_1")
        make_waits(make_turn(session), 2)
        told: list[str] = []
        meanwhile(lambda: told.append(sweep()))

        told.append(sweep())

        counts = [line.split()[1] for line in told]
        assert counts == ["expired=2", "expired=0"]
        assert len(replies_in_log()) == 2

    def test_leaves_what_was_answered(
        self, transactional_db: None, meanwhile: Callable[[Meanwhile], None]
    ) -> None:
        """Spec: design.md 5."""
        session = make_session("sess_1")
        make_waits(make_turn(session), 2)
        answered = PendingWait.objects.filter(request_id=f"req_{session.pk}_1")
        meanwhile(
            lambda: answered.update(state="settled", decision="denied", answer={})
        )

        assert sweep().split()[1] == "expired=1"

        assert replies_in_log() == [(f"req_{session.pk}_0", "timeout")]
        assert answered.get().decision == "denied"

    def test_leaves_what_was_deleted(
        self, transactional_db: None, meanwhile: Callable[[Meanwhile], None]
    ) -> None:
        gone, kept = make_session("sess_1"), make_session("sess_2")
        for session in (gone, kept):
            make_waits(make_turn(session), 1)
        meanwhile(gone.delete)

        assert sweep() == "sweep_waits: expired=1 sessions=1 unseen=0 forgotten=0\n"

        assert replies_in_log() == [(f"req_{kept.pk}_0", "timeout")]

    @pytest.mark.parametrize("is_deleted", [True, False])
    def test_leaves_a_session_that_it_lost(
        self,
        transactional_db: None,
        monkeypatch: pytest.MonkeyPatch,
        is_deleted: bool,
    ) -> None:
        """Spec: Ruling E14."""
        lost, kept = make_session("sess_1"), make_session("sess_2")
        for session in (lost, kept):
            make_waits(make_turn(session), 1)
        row = Session.objects.filter(pk=lost.pk)

        def lose(pks: list[int]) -> dict[int, int]:
            newest = newest_seqs(pks)
            if is_deleted:
                row.delete()
            else:
                row.update(owner="another", fence=F("fence") + 1)
            return newest

        monkeypatch.setattr("prompts.sweep.newest_seqs", lose)

        assert sweep() == "sweep_waits: expired=2 sessions=2 unseen=0 forgotten=0\n"

        assert replies_in_log() == [(f"req_{kept.pk}_0", "timeout")]
        left = PendingWait.objects.values_list("state", "session__owner")
        assert list(left) == ([] if is_deleted else [("settled", "another")])

    def test_goes_on_beside_a_log_that_refuses(
        self, transactional_db: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One session's broken log keeps no other's prompts from their replies."""
        sessions = [make_session(f"sess_{number}") for number in range(3)]
        for session in sessions:
            make_waits(make_turn(session), 2)
        broken = sessions[1]
        waits = PendingWait.objects.filter(session=broken)

        def one_is_wrong(pks: list[int]) -> dict[int, int]:
            return {pk: -2 if pk == broken.pk else 0 for pk in newest_seqs(pks)}

        monkeypatch.setattr("prompts.sweep.newest_seqs", one_is_wrong)
        output = StringIO()

        with pytest.raises(CommandError, match=r"sweep_waits: .* of sess_1$"):
            call_command("sweep_waits", stdout=output)

        line = "sweep_waits: expired=6 sessions=3 unseen=0 forgotten=0\n"
        assert output.getvalue() == line
        assert len(replies_in_log()) == 4
        assert set(waits.values_list("state", flat=True)) == {"settled"}
        assert set(Session.objects.values_list("owner", flat=True)) == {""}

        monkeypatch.undo()
        assert sweep() == "sweep_waits: expired=2 sessions=1 unseen=0 forgotten=0\n"
        assert not PendingWait.objects.exists()

    def test_replies_for_one_that_was_killed(self, transactional_db: None) -> None:
        """Nothing stays settled without a reply. Spec: design.md 1, crash-only."""
        session = make_session("sess_1")
        make_waits(make_turn(session), 2)
        lapse_as_a_server_does(prompt_book())
        PendingWait.objects.filter(seq=1).update(reason="expired by olga")
        Session.objects.update(owner="wrk_killed", fence=1)
        counted = "sweep_waits: expired=2 sessions=1 unseen=0 forgotten=0\n"

        assert [sweep("--dry-run"), sweep()] == [counted] * 2

        assert len(replies_in_log()) == 2
        first, _ = read_page(session.pk, after_seq=0).frames
        assert json.loads(first)["payload"]["reason"] == "expired by olga"
        assert set(Session.objects.values_list("owner", flat=True)) == {""}

    async def test_shares_the_work_with_servers_and_sweeps(
        self, transactional_db: None
    ) -> None:
        async with running_house() as first, running_house() as second:
            await run_in_database(make_many_waits, 40)
            for house in (first, second):
                house.hub.start()

            told = await asyncio.gather(
                *(asyncio.to_thread(sweep_in_thread) for _ in range(2)),
                *(sweep_as_a_server_does(house) for house in (first, second)),
            )
            while await states():
                for house in (first, second):
                    await house.hub.find_the_lost()
                    await until_at_rest(house)

        assert [line and line.split()[0] for line in told] == [
            *["sweep_waits:"] * 2,
            *[None] * 2,
        ]
        replies = await run_in_database(replies_in_log)
        assert len(replies) == len(set(replies)) == 40 * 5
        assert {decision for _, decision in replies} == {"timeout"}


def lapse_as_a_server_does(book: PromptBook) -> None:
    with transaction.atomic():
        book.lapse_expired(NOW, limit=1000)


def make_many_waits(sessions: int) -> None:
    for number in range(sessions):
        make_waits(make_turn(make_session(f"sess_{number}")), 5)


def sweep_in_thread() -> str:
    try:
        return sweep()
    finally:
        connections.close_all()


async def sweep_as_a_server_does(house: House) -> None:
    await house.hub.sweep_waits()
    await house.hub.find_the_lost()


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
