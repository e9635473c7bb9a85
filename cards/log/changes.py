"""The row changes that go with a frame, in the same transaction.

Table and column names are those of cards.models; the tests run them on both
databases.
"""

from datetime import datetime

from cards.log.store import RowChange


def turn_started(*, turn_pk: int, card_id: str, first_seq: int) -> RowChange:
    """Mark a queued turn running; fails when it is not queued. Spec: Ruling E9."""
    return RowChange(
        "UPDATE cards_turn SET state = 'running', card_id = %s, first_seq = %s"
        " WHERE id = %s AND state = 'queued'",
        (card_id, first_seq, turn_pk),
        1,
    )


def turn_ended(*, turn_pk: int) -> RowChange:
    """Mark a running turn ended; fails when it is not running. Spec: Ruling E12."""
    return RowChange(
        "UPDATE cards_turn SET state = 'ended' WHERE id = %s AND state = 'running'",
        (turn_pk,),
        1,
    )


def session_active(*, session_pk: int, now: datetime) -> RowChange:
    """Move the session to the front of its owner's list."""
    return RowChange(
        "UPDATE cards_session SET last_activity_at = %s WHERE id = %s",
        (now, session_pk),
        1,
    )


def session_titled(*, session_pk: int, title: str) -> RowChange:
    """Give the session a title. Spec: Ruling E29."""
    return RowChange(
        "UPDATE cards_session SET title = %s WHERE id = %s", (title, session_pk), 1
    )


def injection_taken(*, injection_pk: int) -> RowChange:
    """Remove words that are in the log now; fails when they are. Spec: Ruling E23."""
    return RowChange("DELETE FROM cards_injection WHERE id = %s", (injection_pk,), 1)
