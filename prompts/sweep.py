"""Removing waits that nobody answered in their time, in batches.

A running server lapses what has expired, and the owner of each session, or whoever
takes it, says so to its clients. The command does the same without a server: it takes
each session for a moment, logs the replies of a whole batch in one transaction, and
gives the sessions back. What a living worker owns is left to that worker, which finds
the lapsed waits within a second.

| row | what becomes of it |
|---|---|
| a prompt that has expired | `prompt.reply{timeout}`, and gone |
| one that lapsed for an owner that died before its reply | likewise |
| a wait that was never shown, an hour old | gone |
| a client's tool whose turn has ended | gone |
| the note that a prompt was settled, as old as a prompt may get | gone |

Servers, clients and other sweeps go on meanwhile. So a batch is looked at again once
its sessions are locked, and what somebody else has answered, swept or deleted since
is theirs.

Spec: EMIT 2.4.2; Ruling E17; interfaces.md, Commands; cases HC-26, FR-17, FR-167.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Model, Q, QuerySet
from msgspec import UNSET

from cards.builder import Builder
from cards.clock import now_ms
from cards.database import run_in_database
from cards.live.visiting import VisitingWorker
from cards.log.store import EntryRefused, OwnerReplaced
from cards.log.writer import LogWriteFailed, SessionWriter
from cards.ownership import Hold, ThisWorker, abandon_session, take_session
from cards.protocol.card_tree import CardTree
from cards.protocol.payloads import PromptReplyPayload
from cards.queries import SessionRecord, find_session_by_pk, newest_seqs
from prompts.book import CLIENT_TOOL, StoredPromptBook
from prompts.models import PendingWait, SettledPrompt

logger = logging.getLogger(__name__)

State = PendingWait.State

#: Waits that one transaction settles.
BATCH_WAITS = 500

#: Seconds between two batches. SQLite has no queue: whoever wants to write looks
#: every 100 ms, and so finds the database free once.
PAUSE_S = 0.12

#: How long a wait that was stored may take to be shown; its worker died in between.
UNSEEN_AFTER = timedelta(hours=1)


@dataclass(slots=True, kw_only=True)
class Swept:
    """What a sweep settled or removed, or would have.

    Attributes:
        expired: Prompts whose time was over, settled or replied to.
        sessions: That they belonged to.
        unseen: Waits that no client could answer any more.
        forgotten: Notes of settled prompts.
        refused: Public ids of sessions whose replies the log refused; their prompts
            are settled, and wait for a reply.
    """

    expired: int = 0
    sessions: set[int] = field(default_factory=set)
    unseen: int = 0
    forgotten: int = 0
    refused: list[str] = field(default_factory=list)


_LAPSED = Q(state=State.SETTLED, is_lapsed=True)


def expired_waits(now: datetime) -> QuerySet[PendingWait]:
    """Return the prompts whose time is over, those without their reply among them.

    Spec: Ruling E17.
    """
    is_over = Q(expires_at__lte=now) | Q(deadline_at__lte=now)
    rows = PendingWait.objects.filter((Q(state=State.PENDING) & is_over) | _LAPSED)
    return rows.exclude(kind=CLIENT_TOOL)


def unseen_waits(now: datetime) -> QuerySet[PendingWait]:
    """Return the waits that no client can answer any more."""
    return PendingWait.objects.filter(
        Q(state=State.OPENING, created_at__lte=now - UNSEEN_AFTER)
        | Q(kind=CLIENT_TOOL, turn__state="ended")
    )


@dataclass(frozen=True, slots=True)
class _Taken:
    """What one transaction made of a batch.

    Attributes:
        holds: Of the sessions that are ours now.
        owed: Waits of these that are lapsed, and wait for their reply.
        expired: Keys of the sessions of all waits that are lapsed now by our doing
            or owed, one for each wait.
    """

    holds: dict[int, Hold]
    owed: list[PendingWait]
    expired: list[int]


class WaitSweep:
    """One run of the sweep.

    Args:
        worker: Owns the sessions while their waits are settled.
        time_to_live: Of a prompt, and of the note that it was settled; None for ever.
    """

    def __init__(
        self, worker: VisitingWorker, *, time_to_live: timedelta | None
    ) -> None:
        self._membership = worker.membership
        self._committer = worker.committer
        self._writes = worker.writes
        self._entropy = worker.entropy
        self._time_to_live = time_to_live
        self._swept = Swept()

    async def run(self, now: datetime, *, is_dry_run: bool) -> Swept:
        """Sweep everything whose time is over.

        Args:
            is_dry_run: Only count.

        Raises:
            django.db.Error: The database is away; what was swept stays swept.
            LogWriteFailed: The log cannot be written; likewise.
        """
        if is_dry_run:
            await run_in_database(self._count, now)
            return self._swept
        behind: PendingWait | None = None
        while waits := await run_in_database(_next_batch, now, behind):
            behind = waits[-1]
            await self._settle(waits, now)
            await asyncio.sleep(PAUSE_S)
        self._swept.unseen = await self._delete(unseen_waits(now))
        self._swept.forgotten = await self._delete(self._settled_notes(now))
        return self._swept

    def _count(self, now: datetime) -> None:
        rows = expired_waits(now)
        self._swept.expired = rows.count()
        pks = rows.order_by("session_id").values_list("session_id", flat=True)
        self._swept.sessions.update(pks.distinct().iterator(chunk_size=BATCH_WAITS))
        self._swept.unseen = unseen_waits(now).count()
        self._swept.forgotten = self._settled_notes(now).count()

    def _settled_notes(self, now: datetime) -> QuerySet[SettledPrompt]:
        if self._time_to_live is None:
            return SettledPrompt.objects.none()
        return SettledPrompt.objects.filter(settled_at__lte=now - self._time_to_live)

    async def _settle(self, waits: Sequence[PendingWait], now: datetime) -> None:
        await self._membership.join()
        # A long sweep outlives a lease.
        await self._membership.renew()
        taken = await self._writes.run(
            None, _lapse_and_take, waits, self._membership.me, now
        )
        self._swept.expired += len(taken.expired)
        self._swept.sessions.update(taken.expired)
        try:
            await self._reply(taken, now)
        finally:
            await self._writes.run(None, _give_back, taken.holds)

    async def _reply(self, taken: _Taken, now: datetime) -> None:
        owed = {wait.session_id for wait in taken.owed}
        newest = await run_in_database(newest_seqs, list(owed))
        records: dict[int, SessionRecord] = {}
        builders: dict[int, Builder] = {}
        for session_pk in owed:
            record = await run_in_database(find_session_by_pk, session_pk)
            if record is not None and session_pk in newest:
                hold = taken.holds[session_pk]
                records[session_pk] = record
                builders[session_pk] = self._builder(record, hold, newest[session_pk])
        for wait in taken.owed:
            builder = builders.get(wait.session_id)
            if builder is not None:
                builder.prompt_reply(
                    PromptReplyPayload(
                        request_id=wait.request_id,
                        decision="timeout",
                        reason=wait.reason or UNSET,
                    ),
                    changes=StoredPromptBook.wait_removed(
                        wait.session_id, wait.request_id, "timeout", now
                    ),
                )
        for session_pk, builder in builders.items():
            await self._flush(builder.writer, records[session_pk].session_id)

    async def _flush(self, writer: SessionWriter, session_id: str) -> None:
        """Wait until the replies are durable, unless the session cannot have them.

        Raises:
            LogWriteFailed: The log is away.
        """
        try:
            await writer.flush()
        except LogWriteFailed as error:
            if isinstance(error.__cause__, OwnerReplaced):
                # It was deleted, or its new owner replies.
                logger.info("a session was left to its new owner: %s", error)
            elif isinstance(error.__cause__, EntryRefused):
                # The others do not wait for what is wrong with this one.
                self._swept.refused.append(session_id)
            else:
                raise

    def _builder(self, record: SessionRecord, hold: Hold, newest: int) -> Builder:
        writer = SessionWriter(
            session_pk=record.pk,
            fence=hold.fence,
            newest_seq=newest,
            committer=self._committer,
            on_committed=lambda frames: None,
            on_failed=lambda failure: None,
        )
        return Builder(
            session_id=record.session_id,
            trace_id=record.trace_id,
            writer=writer,
            tree=CardTree(),
            now_ms=now_ms,
            entropy=self._entropy,
            tick_interval_ms=0,
        )

    async def _delete(self, rows: QuerySet[Model]) -> int:
        count = 0
        while deleted := await self._writes.run(None, _delete_batch, rows):
            count += deleted
            await asyncio.sleep(PAUSE_S)
        return count


def _next_batch(now: datetime, behind: PendingWait | None) -> list[PendingWait]:
    """Return the next waits, so that none comes twice whatever becomes of it."""
    rows = expired_waits(now).only("pk", "session_id")
    if behind is not None:
        is_later = Q(session_id=behind.session_id, pk__gt=behind.pk)
        rows = rows.filter(Q(session_id__gt=behind.session_id) | is_later)
    return list(rows.order_by("session_id", "pk")[:BATCH_WAITS])


def _lapse_and_take(
    waits: Sequence[PendingWait], me: ThisWorker, now: datetime
) -> _Taken:
    """Settle the waits that are still open, and take what sessions may be taken."""
    holds: dict[int, Hold] = {}
    # In this order, like whoever else locks several sessions.
    for session_pk in sorted({wait.session_id for wait in waits}):
        try:
            hold = take_session(session_pk, me, now)
        except ObjectDoesNotExist:
            # Deleted since, with its waits.
            continue
        if hold is not None:
            holds[session_pk] = hold
    pks = [wait.pk for wait in waits]
    lapsed = set(StoredPromptBook.lapse_all(pks, now))
    owed = PendingWait.objects.filter(_LAPSED, pk__in=pks, session_id__in=holds)
    owed = owed.defer("frame", "answer").order_by("session_id", "seq", "pk")
    found = list(owed)
    counted = lapsed.union(wait.pk for wait in found)
    return _Taken(
        holds, found, [wait.session_id for wait in waits if wait.pk in counted]
    )


def _give_back(holds: dict[int, Hold]) -> None:
    for session_pk, hold in sorted(holds.items()):
        abandon_session(session_pk, fence=hold.fence)


def _delete_batch(rows: QuerySet[Model]) -> int:
    # In one order, or two sweeps would wait for each other in a circle.
    locked = rows.only("pk").order_by("pk").select_for_update(of=("self",))
    pks = [row.pk for row in locked[:BATCH_WAITS]]
    count, _ = rows.model._default_manager.filter(pk__in=pks).delete()
    return count
