"""`manage.py prune_events`: logs go, cards and numbers stay.

Spec: interfaces.md, Commands; Ruling E5.
"""

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from io import StringIO
from itertools import count, pairwise
from pathlib import Path
from threading import Barrier
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from django.core.management import CommandError, call_command
from django.db import connections
from django.db.models import F, QuerySet
from django.test import Client as HttpClient
from django.utils import timezone

from cards import pruning, queries
from cards.database import run_in_database
from cards.models import Event, LogBase, Session, Turn
from cards.protocol.ids import MAIN_AGENT
from cards.protocol.snapshot import CardView
from cards.pruning import PrunedEvents, prune_cutoff, prune_events
from cards.queries import (
    LogPage,
    fold_cards,
    fold_turn,
    log_bounds,
    newest_seq,
    newest_seqs,
    read_history,
    read_page,
)
from tests.integration.cards.admin_pages import (
    chunk,
    frame,
    make_session,
    make_turn,
    store,
    turn_frames,
)
from tests.integration.cards.house import (
    PATIENCE_S,
    Client,
    House,
    running_house,
)
from tests.services import PROJECT

NOW = datetime(2026, 12, 31, tzinfo=UTC)
CUTOFF = NOW - timedelta(days=7)
OLD = CUTOFF - timedelta(seconds=1)

#: Frames that `turn_frames` makes of a turn.
TURN = 6


def prune(*, is_dry_run: bool = False) -> tuple[int, int]:
    """Prune and return how many sessions lost how many events."""
    pruned = prune_events(now=NOW, cutoff=CUTOFF, is_dry_run=is_dry_run)
    assert pruned.unreadable == []
    return pruned.sessions, pruned.events


def make_log(session_id: str, turns: int = 2, **fields: Any) -> Session:
    """Store a session with ended turns of six frames each."""
    session = make_session(session_id, **{"last_activity_at": OLD, **fields})
    for turn_no in range(1, turns + 1):
        add_turn(session, turn_no)
    return session


def add_turn(session: Session, turn_no: int) -> Turn:
    first_seq = TURN * (turn_no - 1) + 1
    store(session, turn_frames(turn_no, first_seq, f"words {turn_no}"), first_seq)
    return make_turn(session, turn_no, first_seq=first_seq)


def rows_of(session: Session) -> list[int]:
    rows = Event.objects.filter(session=session).order_by("seq")
    return list(rows.values_list("seq", flat=True))


def cards_of(session: Session) -> list[CardView]:
    return fold_cards(session.pk).cards()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "PAUSE_S", 0)


@pytest.fixture(name="session")
def _session(transactional_db: None) -> Session:
    """A session of twelve frames that nobody has used for long."""
    return make_log("sess_old")


@pytest.fixture(name="dies_in_the_middle")
def _dies_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Run until the first chunk of five rows is gone, then die."""

    def die() -> None:
        chunks = count(1)

        def measure(rows: QuerySet[Event], **bounds: int) -> tuple[int, int] | None:
            if next(chunks) > 1:
                raise KeyboardInterrupt
            return queries.seqs_within(rows, **bounds)

        with monkeypatch.context() as patch:
            patch.setattr(pruning, "CHUNK_ROWS", 5)
            patch.setattr(pruning, "seqs_within", measure)
            with pytest.raises(KeyboardInterrupt):
                prune()

    return die


class TestWhatIsPruned:
    def test_is_the_whole_log_of_an_old_session(self, session: Session) -> None:
        assert prune() == (1, 12)
        assert rows_of(session) == []
        base = LogBase.objects.get(session=session)
        assert (base.last_seq, base.pruned_at) == (12, NOW)

    @pytest.mark.parametrize(
        "fields",
        [
            pytest.param({"last_activity_at": CUTOFF}, id="active since"),
            pytest.param({"owner": "w_1"}, id="owned"),
        ],
    )
    def test_is_not_what_is_in_use(
        self, transactional_db: None, fields: dict[str, Any]
    ) -> None:
        session = make_log("sess_used", **fields)

        assert prune() == (0, 0)
        assert len(rows_of(session)) == 12
        assert not LogBase.objects.exists()

    @pytest.mark.parametrize("state", [Turn.State.QUEUED, Turn.State.RUNNING])
    def test_is_not_where_a_turn_is_unfinished(
        self, session: Session, state: Turn.State
    ) -> None:
        make_turn(session, 3, state=state)

        assert prune() == (0, 0)
        assert len(rows_of(session)) == 12

    def test_is_nothing_of_a_session_without_frames(
        self, transactional_db: None
    ) -> None:
        make_log("sess_silent", turns=0)

        assert prune() == (0, 0)
        assert not LogBase.objects.exists()

    def test_is_counted_over_all_sessions(
        self, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pruning, "BATCH_SESSIONS", 2)
        for number in range(4):
            make_log(f"sess_{number}", turns=1)
        make_log("sess_young", last_activity_at=NOW)

        assert prune(is_dry_run=True) == (5, 36)
        assert prune() == (5, 36)
        assert Event.objects.count() == 12

    def test_is_not_taken_twice(self, session: Session) -> None:
        prune()

        assert prune() == (0, 0)

    def test_is_only_told_in_a_dry_run(self, session: Session) -> None:
        assert prune(is_dry_run=True) == (1, 12)
        assert len(rows_of(session)) == 12
        assert not LogBase.objects.exists()
        session.refresh_from_db()
        assert session.fence == 0

    @pytest.mark.parametrize(("rows", "size"), [(5, 10**9), (10**9, 600)])
    def test_goes_in_bounded_transactions(
        self,
        session: Session,
        rows: int,
        size: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        seen: list[int] = []

        def measure(left: QuerySet[Event], **bounds: int) -> tuple[int, int] | None:
            seen.append(left.count())
            return queries.seqs_within(left, **bounds)

        monkeypatch.setattr(pruning, "CHUNK_ROWS", rows)
        monkeypatch.setattr(pruning, "CHUNK_BYTES", size)
        monkeypatch.setattr(pruning, "seqs_within", measure)

        assert prune() == (1, 12)
        chunks = [before - after for before, after in pairwise(seen)]
        assert len(chunks) > 2
        assert max(chunks) <= 5

    def test_is_left_alone_when_it_cannot_be_read(self, session: Session) -> None:
        broken = make_log("sess_broken", turns=1)
        store(broken, [b"no frame"], first_seq=7)
        after = make_log("sess_after", turns=1)

        for is_dry_run in (True, False):
            pruned = prune_events(now=NOW, cutoff=CUTOFF, is_dry_run=is_dry_run)

            assert pruned == PrunedEvents(
                sessions=2, events=18, unreadable=["sess_broken"]
            )
        assert len(rows_of(broken)) == 7
        assert rows_of(session) == rows_of(after) == []


class TestWhatStays:
    def test_is_the_snapshot(self, session: Session) -> None:
        before = cards_of(session)

        prune()

        assert len(before) == 6
        assert cards_of(session) == before
        assert fold_cards(session.pk).last_seq == 12

    def test_is_the_numbering(self, session: Session) -> None:
        prune()

        assert newest_seq(session.pk) == 12
        assert newest_seqs([session.pk, 0]) == {session.pk: 12}
        assert log_bounds(session.pk) == (13, 12)
        assert read_page(session.pk, after_seq=0) == LogPage(1, [])

    def test_is_what_the_next_writer_must_know(self, session: Session) -> None:
        store(
            session,
            [
                frame(
                    13,
                    "card.add",
                    card_id="gap",
                    kind="system",
                    payload={"topic": "search_capability_gap"},
                )
            ],
            first_seq=13,
        )
        before = [read_history(session.pk, turns=turns) for turns in (0, 1, 9)]

        prune()

        assert before[0].system_topics == ["search_capability_gap"]
        assert [read_history(session.pk, turns=turns) for turns in (0, 1, 9)] == before

    def test_is_what_was_said_last(self, transactional_db: None) -> None:
        session = make_session("sess_1", last_activity_at=OLD)
        for turn_no in (1, 2, 3):
            first_seq = 3 * turn_no - 2
            make_turn(session, turn_no, first_seq=first_seq)
            store(session, said_frames(turn_no, first_seq), first_seq)
        before = read_history(session.pk, turns=2).said
        prune()
        make_turn(session, 4, first_seq=10)
        store(session, said_frames(4, 10), first_seq=10)

        after = read_history(session.pk, turns=3).said

        assert [turn_no for _, _, turn_no in before] == [2, 2, 3, 3]
        assert after[:4] == before
        assert after[4:] == [("user", "ask 4", 4), ("assistant", "reply 4", 4)]
        assert read_history(session.pk, turns=1).said == after[4:]

    def test_are_the_cards_of_a_turn(self, session: Session) -> None:
        turns = list(Turn.objects.order_by("turn_no"))
        before = [fold_turn(session.pk, turn.pk) for turn in turns]

        prune()

        assert [fold_turn(session.pk, turn.pk) for turn in turns] == before
        assert [len(cards or []) for cards in before] == [6, 3]

    def test_goes_on_and_is_pruned_again(self, session: Session) -> None:
        whole = make_log("sess_whole", turns=4, last_activity_at=NOW)
        prune()
        add_turn(session, 3)
        assert log_bounds(session.pk) == (13, 18)
        assert read_page(session.pk, after_seq=4).first_seq == 13

        assert prune() == (1, 6)
        add_turn(session, 4)

        assert cards_of(session) == cards_of(whole)
        assert LogBase.objects.get(session=session).last_seq == 18
        assert log_bounds(session.pk) == (19, 24)


def said_frames(turn_no: int, first_seq: int) -> list[bytes]:
    """Return three frames: a question, a reply of the main agent, and its text."""
    turn, message = f"turn_{turn_no}", f"msg_{turn_no}"
    words = f"ask {turn_no}"
    content = [{"type": "text", "text": words}]
    reply = msgspec.json.decode(
        frame(
            first_seq + 1,
            "card.add",
            card_id=message,
            parent=turn,
            payload={"role": "assistant"},
        )
    )
    reply["envelope"]["agent_id"] = MAIN_AGENT
    return [
        frame(
            first_seq,
            "card.add",
            card_id=turn,
            kind="turn",
            payload={
                "turn_no": turn_no,
                "input": {"text": words, "content": content},
            },
        ),
        msgspec.json.encode(reply),
        chunk(first_seq + 2, f"reply {turn_no}", card_id=message),
    ]


class TestRunThatDied:
    """What it left of a log's rows is as good as gone."""

    def test_left_a_log_that_reads_as_pruned(
        self, session: Session, dies_in_the_middle: Callable[[], None]
    ) -> None:
        before = cards_of(session)

        dies_in_the_middle()

        assert rows_of(session) == [*range(6, 13)]
        assert cards_of(session) == before
        assert log_bounds(session.pk) == (13, 12)
        assert read_page(session.pk, after_seq=0).frames == []
        assert read_page(session.pk, after_seq=8, up_to_seq=10).frames == []
        assert read_history(session.pk, turns=9).newest_seq == 12

    @pytest.mark.parametrize("is_used_again", [False, True])
    def test_is_finished_by_the_next(
        self,
        session: Session,
        dies_in_the_middle: Callable[[], None],
        is_used_again: bool,
    ) -> None:
        dies_in_the_middle()
        if is_used_again:
            add_turn(session, 3)
            Session.objects.update(last_activity_at=NOW, owner="w_1")
        before = cards_of(session)

        assert prune(is_dry_run=True) == (1, 7)
        assert prune() == (1, 7)
        assert rows_of(session) == ([*range(13, 19)] if is_used_again else [])
        assert cards_of(session) == before

    def test_is_counted_once_with_what_came_after(
        self, session: Session, dies_in_the_middle: Callable[[], None]
    ) -> None:
        dies_in_the_middle()
        add_turn(session, 3)

        assert prune(is_dry_run=True) == (1, 13)
        assert prune() == (1, 13)
        assert rows_of(session) == []


class TestOthersAtTheSameTime:
    def test_keep_what_they_take_before_the_base_is_written(
        self, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Somebody came, wrote and went while the log was folded."""

        def fold_late(session_pk: int) -> Any:
            fold = fold_cards(session_pk)
            add_turn(session, 3)
            Session.objects.filter(pk=session_pk).update(fence=F("fence") + 1)
            return fold

        monkeypatch.setattr(pruning, "fold_cards", fold_late)

        assert prune() == (0, 0)
        assert len(rows_of(session)) == 18
        assert not LogBase.objects.exists()

    def test_know_by_the_fence_that_a_session_was_pruned(
        self, session: Session
    ) -> None:
        prune()

        session.refresh_from_db()
        assert (session.fence, session.owner) == (1, "")

    def test_share_the_work_of_pruning(
        self, transactional_db: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pruning, "CHUNK_ROWS", 4)
        sessions = [make_log(f"sess_{number}") for number in range(8)]
        before = [cards_of(session) for session in sessions]
        together = Barrier(2)

        def run() -> tuple[int, int]:
            together.wait()
            try:
                return prune()
            finally:
                connections.close_all()

        with ThreadPoolExecutor(2) as pool:
            counts = [future.result() for future in [pool.submit(run) for _ in "ab"]]

        assert sum(events for _, events in counts) == 8 * 12
        assert not Event.objects.exists()
        assert [cards_of(session) for session in sessions] == before

    @pytest.mark.parametrize("pages_before", [0, 1, 2])
    def test_read_a_whole_snapshot(
        self, session: Session, monkeypatch: pytest.MonkeyPatch, pages_before: int
    ) -> None:
        """The log is pruned from under a reader, between two of its pages."""
        before = cards_of(session)
        pages = count()

        def read_small_page(session_pk: int, **place: Any) -> LogPage:
            if next(pages) == pages_before:
                with monkeypatch.context() as patch:
                    patch.setattr(queries, "read_page", read_page)
                    assert prune() == (1, 12)
                add_turn(session, 3)
            return read_page(session_pk, **place, max_rows=5)

        monkeypatch.setattr(queries, "read_page", read_small_page)
        fold = fold_cards(session.pk)

        assert fold.last_seq == 18
        assert fold.cards()[:6] == before
        assert len(fold.cards()) == 9

    def test_do_not_wait_for_ever_where_frames_are_missing(
        self, session: Session
    ) -> None:
        """No pruning makes such a hole, and no snapshot may hang on one."""
        Event.objects.filter(session=session, seq__lt=5).delete()

        assert fold_cards(session.pk).last_seq == 0


class TestPruneCutoff:
    @pytest.mark.parametrize(
        ("days", "expected"),
        [
            (7, CUTOFF),
            (0.5, NOW - timedelta(hours=12)),
            (0, None),
            (10**6, None),
            (1e300, None),
        ],
    )
    def test_is_the_retention_before_now(
        self, days: float, expected: datetime | None
    ) -> None:
        assert prune_cutoff(NOW, days) == expected


def call(*arguments: str) -> str:
    out = StringIO()
    call_command("prune_events", *arguments, stdout=out)
    return out.getvalue()


class TestCommand:
    def test_says_one_line(self, session: Session, settings: Any) -> None:
        Session.objects.update(last_activity_at=timezone.now() - timedelta(hours=13))
        settings.CARDWIRE_EVENT_RETENTION_DAYS = 0.5

        assert call("--dry-run") == "prune_events: sessions=1 events=12\n"
        assert call() == "prune_events: sessions=1 events=12\n"
        assert call() == "prune_events: sessions=0 events=0\n"
        assert rows_of(session) == []

    def test_keeps_everything_without_a_retention(
        self, session: Session, settings: Any
    ) -> None:
        settings.CARDWIRE_EVENT_RETENTION_DAYS = 0.0

        assert call() == "prune_events: sessions=0 events=0\n"
        assert len(rows_of(session)) == 12

    def test_names_the_logs_that_it_cannot_read(
        self, session: Session, settings: Any
    ) -> None:
        store(session, [b"no frame"], first_seq=13)
        Session.objects.update(last_activity_at=timezone.now() - timedelta(days=2))
        settings.CARDWIRE_EVENT_RETENTION_DAYS = 1.0

        with pytest.raises(CommandError, match="left alone, of sess_old"):
            call()

    def test_ends_with_1_when_the_database_is_away(self, tmp_path: Path) -> None:
        done = subprocess.run(
            [sys.executable, "manage.py", "prune_events"],
            cwd=PROJECT,
            env={
                "CARDWIRE_DATA_DIR": str(tmp_path),
                "CARDWIRE_DEBUG": "1",
                "CARDWIRE_EVENT_RETENTION_DAYS": "1",
                "DATABASE_URL": f"sqlite:///{tmp_path}/nowhere/db.sqlite3",
            },
            capture_output=True,
            text=True,
            check=False,
        )

        assert done.returncode == 1
        assert done.stdout == ""
        assert re.fullmatch(
            r"CommandError: prune_events: unable to open database file\n", done.stderr
        )


@pytest_asyncio.fixture(name="house")
async def _house(transactional_db: None) -> AsyncIterator[House]:
    async with running_house() as house:
        yield house


async def talk(house: House, client: Client, *names: str) -> None:
    """Have turns of five frames each, and the session given back."""
    for name in names:
        await client.say("hi", name)
        await client.until_closed(f"turn_{name}")
    live = await house.live()
    async with asyncio.timeout(PATIENCE_S):
        while live.is_working:
            # Nobody is told of it; the others get on while a thread answers.
            await run_in_database(int)


async def prune_all() -> tuple[int, int]:
    """Prune as if a year had gone by."""
    now = timezone.now()
    pruned = await run_in_database(
        prune_events, now=now, cutoff=now + timedelta(days=365), is_dry_run=False
    )
    return pruned.sessions, pruned.events


async def rest(path: str) -> Any:
    """Return what a client without a cookie is told of the session."""
    address = f"/v1/sessions/sess_1{path}"
    response = await run_in_database(HttpClient().get, address)
    assert response.status_code == 200
    return msgspec.json.decode(response.content)


class TestLivingSession:
    """A worker had the session, and goes on after its log was pruned."""

    async def test_goes_on_with_the_next_number(self, house: House) -> None:
        client = await house.connect()
        await talk(house, client, "c1", "c2")

        assert await prune_all() == (1, 10)
        await talk(house, client, "c3")

        assert client.seqs == [*range(1, 16)]
        assert [*map(seq_of, await house.log())] == [*range(11, 16)]

    async def test_goes_on_at_another_worker(self, house: House) -> None:
        await talk(house, await house.connect(), "c1")
        await prune_all()

        async with running_house() as other:
            client = await other.connect()
            assert client.last["payload"]["inner"]["last_seq"] == 5
            await talk(other, client, "c2")

            assert client.seqs == [*range(6, 11)]
        snapshot = await rest("/snapshot")
        ids = [card["card_id"] for card in snapshot["cards"]]
        assert len(set(ids)) == len(ids) == 4

    async def test_knows_the_ids_of_its_pruned_cards(self, house: House) -> None:
        client = await house.connect()
        await talk(house, client, "c1")
        await prune_all()
        await client.say("hi", "c1")

        assert client.last["payload"]["inner"]["turn_card_id"] == "turn_c1"
        assert await run_in_database(Turn.objects.count) == 1
        record = (await house.live()).record
        assert record is not None
        history = await run_in_database(read_history, record.pk, turns=9)
        assert "turn_c1" in history.card_ids

    async def test_resumes_by_its_snapshot(self, house: House) -> None:
        client = await house.connect()
        await talk(house, client, "c1", "c2")
        before = await rest("/snapshot")
        await prune_all()

        async with running_house() as other:
            back = await other.connect()
            assert await back.resume(3) == {
                "trace_id": client.trace_id,
                "reason": "events_expired",
            }
            snapshot = await rest("/snapshot")
            assert snapshot == before
            assert snapshot["last_seq"] == 10
            assert (await back.resume(10))["to_seq"] == 10
            await talk(other, back, "c3")

            assert back.seqs == [*range(11, 16)]
            assert (await back.resume(9))["reason"] == "events_expired"
            assert (await back.resume(0))["from_seq"] == 11

    async def test_lists_the_events_that_are_kept(self, house: House) -> None:
        client = await house.connect()
        await talk(house, client, "c1")
        await prune_all()
        empty = await rest("/events")
        await talk(house, client, "c2")
        events = await rest("/events?after_seq=2&limit=3")

        assert empty == {"events": [], "next_after_seq": None, "last_seq": 5}
        assert [event["envelope"]["seq"] for event in events["events"]] == [6, 7, 8]
        assert (events["next_after_seq"], events["last_seq"]) == (8, 10)
        assert (await rest(""))["last_seq"] == 10


def seq_of(data: bytes) -> int:
    seq: int = msgspec.json.decode(data)["envelope"]["seq"]
    return seq
