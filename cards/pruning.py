"""Dropping the logs of sessions that nobody has used for long.

What a log amounted to is kept as its base, so that a snapshot stays whole and the
numbers go on. The base is written first, in one transaction; the rows go after it, a
few thousand at a time. A run that dies in between leaves rows at or below a base:
nobody reads them, and the next run removes them.

Spec: interfaces.md, prune_events; Ruling E5; docs/operations.md.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec
from django.db import connection, transaction
from django.db.models import Exists, F, Model, OuterRef, QuerySet
from django.db.models.functions import Coalesce

from cards.models import Event, LogBase, Session, Turn
from cards.queries import fold_cards, kept_events, seqs_within

Row = TypeVar("Row", bound=Model)

#: Rows and bytes that one transaction deletes, whichever comes first.
CHUNK_ROWS = 5000
CHUNK_BYTES = 16 * 1024 * 1024

#: Seconds between the transactions of a long run. SQLite has no queue: whoever wants
#: to write looks every 100 ms, and so finds the database free once.
PAUSE_S = 0.12

#: Sessions that are looked up at once.
BATCH_SESSIONS = 500


@dataclass(slots=True, kw_only=True)
class PrunedEvents:
    """What a run dropped, or would have.

    Attributes:
        sessions: How many lost events.
        unreadable: Public ids of those that were left alone, because their log
            cannot be folded.
    """

    sessions: int = 0
    events: int = 0
    unreadable: list[str] = field(default_factory=list)


def prune_cutoff(now: datetime, retention_days: float) -> datetime | None:
    """Return since when a session must have been active to keep its log.

    None keeps everything: a retention of 0, or one beyond the calendar.
    """
    if not retention_days:
        return None
    try:
        return now - timedelta(days=retention_days)
    except OverflowError:
        return None


def prune_events(
    *, now: datetime, cutoff: datetime | None, is_dry_run: bool
) -> PrunedEvents:
    """Drop the logs of sessions without activity since the cutoff.

    Safe to run twice, at the same time, and beside running workers.

    Args:
        cutoff: None keeps everything.
        is_dry_run: Count, and change nothing.

    Raises:
        django.db.Error: The database is away; what was dropped until then is whole.

    Spec: interfaces.md, Commands.
    """
    run = _Run(now, is_dry_run=is_dry_run)
    if cutoff is not None:
        run.remove_leftovers()
        run.prune_sessions(cutoff)
    return run.pruned


class _Run:
    """One run of the command, and what it has dropped so far."""

    def __init__(self, now: datetime, *, is_dry_run: bool) -> None:
        self.pruned = PrunedEvents()
        self._now = now
        self._is_dry_run = is_dry_run
        self._left_over: set[int] = set()
        self._rows_since_pause = 0

    def remove_leftovers(self) -> None:
        """Remove the rows that an earlier run did not come to."""
        for base in _in_batches(_bases_with_rows()):
            rows = _rows_up_to(base.session_id, base.last_seq)
            count = rows.count() if self._is_dry_run else self._delete(rows)
            self._note(base.session_id, count)
            if count:
                self._left_over.add(base.session_id)

    def prune_sessions(self, cutoff: datetime) -> None:
        """Drop the logs of the sessions that nobody used since the cutoff."""
        for session in _in_batches(_sessions_with_log(cutoff)):
            self._note(session.pk, self._prune(session, cutoff))

    def _note(self, session_pk: int, events: int) -> None:
        self.pruned.events += events
        # Each session counts once, however it lost its events.
        if events and session_pk not in self._left_over:
            self.pruned.sessions += 1

    def _prune(self, session: Session, cutoff: datetime) -> int:
        try:
            fold = fold_cards(session.pk)
            cards = fold.encode()
        except (msgspec.MsgspecError, KeyError, RecursionError):
            self.pruned.unreadable.append(session.session_id)
            return 0
        if self._is_dry_run:
            return kept_events(session.pk).count()
        base = LogBase(
            session=session, last_seq=fold.last_seq, cards=cards, pruned_at=self._now
        )
        if not _write_base(session, base, cutoff):
            return 0
        return self._delete(_rows_up_to(session.pk, fold.last_seq))

    def _delete(self, rows: QuerySet[Event]) -> int:
        """Delete rows in order of their seq, in short transactions."""
        deleted = 0
        while True:
            span = seqs_within(rows, max_rows=CHUNK_ROWS, max_bytes=CHUNK_BYTES)
            if span is None:
                return deleted
            if deleted or self._rows_since_pause >= CHUNK_ROWS:
                self._pause()
            count, _ = rows.filter(seq__lte=span[1]).delete()
            deleted += count
            self._rows_since_pause += count

    def _pause(self) -> None:
        self._rows_since_pause = 0
        if connection.vendor == "sqlite":
            _checkpoint()
            time.sleep(PAUSE_S)


def _write_base(session: Session, base: LogBase, cutoff: datetime) -> bool:
    """Store what a log amounts to; False if the session is in use again."""
    with transaction.atomic():
        # Locked before it is judged: who accepts a message locks it, too.
        list(Session.objects.select_for_update().only("pk").filter(pk=session.pk))
        # The fence from before the log was folded: nobody has written since. Raised,
        # so that a worker that held the session once reads the log anew.
        is_unused = (
            _unused_sessions(cutoff)
            .filter(pk=session.pk, fence=session.fence)
            .update(fence=F("fence") + 1)
        )
        if is_unused:
            LogBase.objects.bulk_create(
                [base],
                update_conflicts=True,
                unique_fields=["session"],
                update_fields=["last_seq", "cards", "pruned_at"],
            )
    return bool(is_unused)


def _unused_sessions(cutoff: datetime) -> QuerySet[Session]:
    unfinished = Turn.objects.filter(session_id=OuterRef("pk")).exclude(
        state=Turn.State.ENDED
    )
    return Session.objects.filter(
        ~Exists(unfinished), owner="", last_activity_at__lt=cutoff
    )


def _sessions_with_log(cutoff: datetime) -> QuerySet[Session]:
    kept = Event.objects.filter(
        session_id=OuterRef("pk"), seq__gt=Coalesce(OuterRef("log_base__last_seq"), 0)
    )
    rows = _unused_sessions(cutoff).filter(Exists(kept))
    return rows.only("pk", "session_id", "fence")


def _bases_with_rows() -> QuerySet[LogBase]:
    rows = Event.objects.filter(
        session_id=OuterRef("session_id"), seq__lte=OuterRef("last_seq")
    )
    return LogBase.objects.filter(Exists(rows)).only("last_seq")


def _rows_up_to(session_pk: int, last_seq: int) -> QuerySet[Event]:
    return Event.objects.filter(session_id=session_pk, seq__lte=last_seq)


def _in_batches(rows: QuerySet[Row]) -> Iterator[Row]:
    """Return rows in order of their key; each comes once, whatever becomes of it."""
    last_pk = 0
    while batch := list(rows.filter(pk__gt=last_pk).order_by("pk")[:BATCH_SESSIONS]):
        yield from batch
        last_pk = batch[-1].pk


def _checkpoint() -> None:
    # Django's connections leave the write-ahead log alone, and it grows meanwhile.
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")
