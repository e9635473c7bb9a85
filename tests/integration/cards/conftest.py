"""Stores on both databases."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from django.db import connections

from cards.log.store import LogStore, open_store
from cards.models import Session

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)


@pytest.fixture
def session_row(transactional_db: None) -> Session:
    return make_session("sess_1")


def make_session(session_id: str, principal: str = "anonymous") -> Session:
    return Session.objects.create(
        session_id=session_id,
        trace_id=f"tr_{session_id}",
        principal=principal,
        created_at=NOW,
        last_activity_at=NOW,
    )


@pytest.fixture
def store(transactional_db: None) -> Iterator[LogStore]:
    opened = open_store()
    yield opened
    opened.close()
    connections.close_all()
