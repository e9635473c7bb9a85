"""Deleting a session with everything that belongs to it.

At once and for everybody it is nobody's: its names are free again, nothing of it waits
or runs, and whoever still owns it may write no more. Then its rows go, a part at a
time, because a long log would keep others from writing; files go with their rows. A
process that dies in between leaves a session of nobody; the next deletion removes it,
or `cleanup_orphans`.

Spec: interfaces.md, REST; design.md 1, crash-only.
"""

import time
from collections.abc import Sequence
from functools import partial
from typing import Final

from django.db import connection, transaction
from django.db.models import F

from cards.models import Event, Session, Turn
from cards.principals import NOBODY
from cards.pruning import CHUNK_BYTES, CHUNK_ROWS, PAUSE_S
from cards.queries import seqs_within
from cards.signals import session_deleted
from cards.statements import lock_owner

#: In front of the names of what is being deleted; none that clients choose or that we
#: mint begins so.
_DELETED: Final = "~"

#: Sessions that one query looks for.
_BATCH: Final = 1000


def delete_session(session_pk: int) -> bool:
    """Delete a session; False when somebody else has done so.

    Opens transactions of its own. What is left over of others goes as well.

    Raises:
        django.db.Error: The database is away. The session is still there, or deleted
            for everybody.
    """
    is_deleted = _take_away(session_pk)
    remove_deleted()
    return is_deleted


def _take_away(session_pk: int) -> bool:
    with transaction.atomic(durable=True):
        # Locked as by everybody who accepts something for it.
        if lock_owner(session_pk) is None:
            return False
        name = f"{_DELETED}{session_pk}"
        rows = Session.objects.filter(pk=session_pk).exclude(principal=NOBODY)
        is_taken = rows.update(
            principal=NOBODY,
            session_id=name,
            trace_id=name,
            title="",
            owner="",
            fence=F("fence") + 1,
        )
        if is_taken:
            # With what they wait for: workers look for unfinished turns.
            Turn.objects.filter(session_id=session_pk).delete()
            # Robust: it is deleted, whoever fails to hear of it.
            transaction.on_commit(
                partial(
                    session_deleted.send_robust, sender=Session, session_pk=session_pk
                )
            )
    return bool(is_taken)


def remove_deleted(*, is_dry_run: bool = False) -> int:
    """Remove the rows of deleted sessions; return of how many sessions.

    Args:
        is_dry_run: Count them, and change nothing.

    Raises:
        django.db.Error: The database is away; what is removed stays removed.
    """
    pks = Session.objects.filter(principal=NOBODY).values_list("pk", flat=True)
    count = 0
    for session_pk in list(pks):
        if not is_dry_run:
            _remove_events(session_pk)
            Session.objects.filter(pk=session_pk).delete()
        count += 1
    return count


def deleted_among(session_pks: Sequence[int]) -> set[int]:
    """Return those of these sessions that are deleted, wherever that was done."""
    there: set[int] = set()
    for begin in range(0, len(session_pks), _BATCH):
        rows = Session.objects.filter(pk__in=session_pks[begin : begin + _BATCH])
        there.update(rows.exclude(principal=NOBODY).values_list("pk", flat=True))
    return set(session_pks) - there


def _remove_events(session_pk: int) -> None:
    rows = Event.objects.filter(session_id=session_pk)
    while True:
        span = seqs_within(rows, max_rows=CHUNK_ROWS, max_bytes=CHUNK_BYTES)
        if span is None:
            return
        count, _ = rows.filter(seq__lte=span[1]).delete()
        if count >= CHUNK_ROWS:
            _pause()


def _pause() -> None:
    # Others find the database free once; PostgreSQL has a place for everybody.
    if connection.vendor == "sqlite":
        time.sleep(PAUSE_S)
