"""The statements that every message and every turn runs, as SQL.

To word one of them takes the ORM 0.2 to 0.5 ms, many times what the database needs
to carry it out, and a hundred messages at once wait for that. So these few are
written down, with the names of cards.models; the tests run them on both databases.
All run within the caller's transaction.

Spec: docs/decisions/0005-sql-where-every-message-passes.md.
"""

import json
from typing import Any

from django.db import connection


def _fetch_one(sql: str, *parameters: int | str) -> tuple[Any, ...] | None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row


def lock_owner(session_pk: int) -> tuple[str, int] | None:
    """Return owner and fence of a session; None when it is gone.

    The row stays locked until the transaction ends.
    """
    # SQLite has one writer at a time and no locks on rows.
    lock = " FOR UPDATE" if connection.features.has_select_for_update else ""
    return _fetch_one(
        f"SELECT owner, fence FROM cards_session WHERE id = %s{lock}",  # noqa: S608
        session_pk,
    )


def set_owner(session_pk: int, *, owner: str, fence: int) -> None:
    """Write down who owns a locked session; "" for nobody."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE cards_session SET owner = %s, fence = %s WHERE id = %s",
            (owner, fence, session_pk),
        )


def has_work(session_pk: int) -> bool:
    """Tell whether turns of a session are unfinished, or words wait for one."""
    row = _fetch_one(
        "SELECT EXISTS (SELECT 1 FROM cards_turn"
        " WHERE session_id = %s AND NOT state = 'ended')"
        # In this order: hardly any words wait anywhere, and a session may have
        # thousands of turns.
        " OR EXISTS (SELECT 1 FROM cards_injection CROSS JOIN cards_turn"
        " WHERE cards_turn.id = cards_injection.turn_id"
        " AND cards_turn.session_id = %s)",
        session_pk,
        session_pk,
    )
    return row is not None and bool(row[0])


def count_turns(session_pk: int) -> tuple[int, int]:
    """Return the last turn_no of a session, 0 for none, and how many are unfinished."""
    row = _fetch_one(
        "SELECT (SELECT max(turn_no) FROM cards_turn WHERE session_id = %s),"
        " (SELECT count(*) FROM cards_turn"
        " WHERE session_id = %s AND NOT state = 'ended')",
        session_pk,
        session_pk,
    )
    last, unfinished = row or (None, 0)
    return last or 0, unfinished


def find_turn(session_pk: int, event_id: str) -> tuple[int, object] | None:
    """Return key and message of the turn of an event_id; None if there is none."""
    row = _fetch_one(
        "SELECT id, message FROM cards_turn WHERE session_id = %s AND event_id = %s",
        session_pk,
        event_id,
    )
    return None if row is None else (row[0], json.loads(row[1]))
