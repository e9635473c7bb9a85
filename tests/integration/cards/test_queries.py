"""Reads of the log."""

import pytest

from cards.log.store import Entry, LogStore
from cards.models import Session
from cards.principals import Principal
from cards.queries import log_bounds, newest_seq, own_sessions, read_page
from tests.integration.cards.conftest import NOW, make_session


@pytest.fixture
def log(store: LogStore, session_row: Session) -> Session:
    store.write([Entry(session_row.pk, 0, seq, b"%03d" % seq) for seq in range(1, 101)])
    return session_row


class TestReadPage:
    def test_starts_behind_the_cursor(self, log: Session) -> None:
        page = read_page(log.pk, after_seq=10, max_rows=3)

        assert (page.first_seq, page.last_seq) == (11, 13)
        assert page.frames == [b"011", b"012", b"013"]

    def test_ends_at_the_wanted_seq(self, log: Session) -> None:
        assert read_page(log.pk, after_seq=95, up_to_seq=97).last_seq == 97

    def test_ends_with_the_row_that_reaches_the_bytes(self, log: Session) -> None:
        assert len(read_page(log.pk, after_seq=0, max_bytes=7).frames) == 3

    def test_holds_at_least_one_row(self, log: Session) -> None:
        assert len(read_page(log.pk, after_seq=0, max_bytes=1).frames) == 1

    def test_is_empty_at_the_end(self, log: Session) -> None:
        page = read_page(log.pk, after_seq=100)

        assert (page.frames, page.last_seq) == ([], 100)


class TestLogBounds:
    def test_of_a_log(self, log: Session) -> None:
        assert log_bounds(log.pk) == (1, 100)
        assert newest_seq(log.pk) == 100

    def test_of_an_empty_log(self, session_row: Session) -> None:
        assert log_bounds(session_row.pk) == (1, 0)

    def test_of_no_session(self, session_row: Session) -> None:
        assert log_bounds(session_row.pk + 1000) is None


class TestOwnSessions:
    def test_pages_by_activity_and_owner(self, transactional_db: None) -> None:
        """Spec: Ruling E27."""
        for number in range(5):
            make_session(f"sess_{number}", principal="user:1")
        make_session("sess_other", principal="user:2")
        owner = Principal("user:1")

        first = own_sessions(owner, before=None, limit=2)
        rest = own_sessions(owner, before=(NOW, first[-1].pk), limit=9)

        ids = [record.session_id for record in first + rest]
        assert ids == ["sess_4", "sess_3", "sess_2", "sess_1", "sess_0"]
