"""The log's writer on the real database: SQLite, or PostgreSQL by TEST_DATABASE_URL."""

from datetime import UTC, datetime

import pytest

from cards.log.changes import (
    session_active,
    session_titled,
    turn_ended,
    turn_started,
)
from cards.log.store import Entry, EntryRefused, LogStore
from cards.models import Event, Session, Turn
from tests.integration.cards.conftest import NOW


def entries(session: Session, *seqs: int) -> list[Entry]:
    return [Entry(session.pk, 0, seq, b"frame %d" % seq) for seq in seqs]


def stored(session: Session) -> list[tuple[int, bytes]]:
    rows = Event.objects.filter(session=session).order_by("seq")
    return [(row.seq, bytes(row.data)) for row in rows]


def queued_turn(session: Session) -> Turn:
    return Turn.objects.create(
        session=session,
        turn_no=1,
        event_id="c1",
        card_id="turn_c1",
        run_id="run_1",
        message={},
        accepted_at=NOW,
    )


class TestLogStore:
    @pytest.mark.parametrize("count", [1, 7, 8, 9, 63, 64, 65, 512, 513, 1200])
    def test_stores_batches_of_any_size(
        self, store: LogStore, session_row: Session, count: int
    ) -> None:
        seqs = range(1, count + 1)

        store.write(entries(session_row, *seqs))

        assert stored(session_row) == [(seq, b"frame %d" % seq) for seq in seqs]

    def test_keeps_bytes_as_they_are(
        self, store: LogStore, session_row: Session
    ) -> None:
        """Spec: Ruling E3."""
        data = "实验😀\\u0000".encode() + bytes(range(256))

        store.write([Entry(session_row.pk, 0, 1, data)])

        assert stored(session_row) == [(1, data)]

    def test_refuses_a_seq_twice_and_stores_nothing_of_the_batch(
        self, store: LogStore, session_row: Session
    ) -> None:
        """Spec: Ruling E2; design 3."""
        store.write(entries(session_row, 1, 2))

        with pytest.raises(EntryRefused):
            store.write(entries(session_row, 3, 2))

        assert [seq for seq, _ in stored(session_row)] == [1, 2]
        store.write(entries(session_row, 3))

    def test_knows_what_it_holds(self, store: LogStore, session_row: Session) -> None:
        first, second = entries(session_row, 1, 2)
        store.write([first])

        assert store.holds(first)
        assert not store.holds(second)
        assert not store.holds(Entry(session_row.pk, 0, 1, b"another"))
        assert not store.holds(Entry(session_row.pk + 1, 0, 1, first.data))
        store.write([second])
        assert store.holds(second)

    def test_refuses_events_of_a_session_that_is_gone(
        self, store: LogStore, session_row: Session
    ) -> None:
        gone = Entry(session_row.pk + 1000, 0, 1, b"x")

        with pytest.raises(EntryRefused):
            store.write([gone])

    def test_changes_rows_in_the_same_transaction(
        self, store: LogStore, session_row: Session
    ) -> None:
        turn = queued_turn(session_row)
        later = datetime(2026, 12, 1, 11, 30, 0, 123000, tzinfo=UTC)
        start = (
            turn_started(turn_pk=turn.pk, card_id="turn_1", first_seq=1),
            session_active(session_pk=session_row.pk, now=later),
            session_titled(session_pk=session_row.pk, title="A title"),
        )
        store.write([Entry(session_row.pk, 0, 1, b"x", start)])
        turn.refresh_from_db()
        session_row.refresh_from_db()
        assert (turn.state, turn.first_seq) == ("running", 1)
        assert session_row.last_activity_at == later
        assert session_row.title == "A title"

        store.write([Entry(session_row.pk, 0, 2, b"y", (turn_ended(turn_pk=turn.pk),))])

        turn.refresh_from_db()
        assert turn.state == "ended"

    def test_refuses_a_change_that_finds_another_state(
        self, store: LogStore, session_row: Session
    ) -> None:
        turn = queued_turn(session_row)
        too_early = (turn_ended(turn_pk=turn.pk),)

        with pytest.raises(EntryRefused):
            store.write([Entry(session_row.pk, 0, 1, b"x", too_early)])

        assert stored(session_row) == []

    def test_checkpoints_beside_the_writer(
        self, store: LogStore, session_row: Session
    ) -> None:
        store.write(entries(session_row, 1))
        store.checkpoint()
        store.write(entries(session_row, 2))

        assert len(stored(session_row)) == 2
