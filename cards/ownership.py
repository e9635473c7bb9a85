"""Who may write a session's log: workers, their leases and the fence.

A session has at most one owner. Taking it raises its fence, and the log refuses
whoever holds an older one, so an owner that was paused and replaced can do no harm.

| the owner is | then the session may be taken |
|---|---|
| nobody | by any worker |
| a worker with a running lease | by nobody |
| a worker whose lease has expired | by any worker |
| a worker on the same kernel whose lock file stands unlocked | at once |
| a worker without a row | by any worker |

Each function is one operation; those that write open a transaction, or a savepoint
in one that is open.

Spec: Ruling E14; design.md 4; docs/decisions/0004-a-lease-per-worker.md.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from django.db import transaction

from cards.models import Injection, Session, Turn, Worker
from cards.process_lock import is_abandoned, remove_abandoned
from cards.queries import TurnRecord, unfinished_turns
from cards.statements import has_work, lock_owner, set_owner

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThisWorker:
    """What a worker says of itself.

    Attributes:
        worker_id: Made anew by each process.
        kernel_id: See `cards.process_lock`; "" when unknown.
        lock_dir: Where the workers of this kernel keep their lock files.
        lease: How long the others wait for a sign of life.
    """

    worker_id: str
    kernel_id: str
    lock_dir: Path
    lease: timedelta


@dataclass(frozen=True, slots=True)
class Hold:
    """That this worker owns a session.

    Attributes:
        fence: Goes with everything it writes.
        is_new: Whether the session was taken just now.
    """

    fence: int
    is_new: bool


def renew_lease(me: ThisWorker, now: datetime) -> None:
    """Say that this worker lives; makes its row if there is none."""
    Worker.objects.update_or_create(
        worker_id=me.worker_id,
        defaults={"lease_expires_at": now + me.lease},
        create_defaults={
            "kernel_id": me.kernel_id,
            "started_at": now,
            "lease_expires_at": now + me.lease,
        },
    )


def retire(me: ThisWorker) -> None:
    """Take this worker's row away; its sessions may be taken at once."""
    Worker.objects.filter(worker_id=me.worker_id).delete()


def gone_workers(me: ThisWorker, now: datetime) -> list[str]:
    """Return the other workers that own sessions or have a row, and are gone."""
    rows = {row.worker_id: row for row in Worker.objects.all()}
    owners = Session.objects.exclude(owner="").values_list("owner", flat=True)
    return [
        worker_id
        for worker_id in sorted({*rows, *owners.distinct()} - {me.worker_id})
        if _is_gone(me, rows.get(worker_id), now)
    ]


def _is_gone(me: ThisWorker, row: Worker | None, now: datetime) -> bool:
    if row is None or row.lease_expires_at <= now:
        return True
    is_neighbour = bool(me.kernel_id) and row.kernel_id == me.kernel_id
    return is_neighbour and is_abandoned(me.lock_dir, row.worker_id)


def forget_workers(me: ThisWorker, worker_ids: Iterable[str]) -> None:
    """Remove gone workers that own nothing any more."""
    for worker_id in worker_ids:
        with transaction.atomic():
            if not Session.objects.filter(owner=worker_id).exists():
                Worker.objects.filter(worker_id=worker_id).delete()
                remove_abandoned(me.lock_dir, worker_id)


def sessions_owned_by(worker_ids: list[str], *, limit: int) -> list[int]:
    """Return sessions of these workers, the longest unchanged first."""
    rows = Session.objects.filter(owner__in=worker_ids)
    return list(rows.order_by("pk").values_list("pk", flat=True)[:limit])


def owners_replaced(me: ThisWorker, fences: Mapping[int, int]) -> list[int]:
    """Return the sessions that others have taken since this worker did.

    Args:
        fences: Session → fence of this worker's hold.
    """
    taken = Session.objects.filter(pk__in=list(fences)).exclude(owner=me.worker_id)
    return [pk for pk, fence in taken.values_list("pk", "fence") if fence > fences[pk]]


def lost_sessions(gone: list[str]) -> list[int]:
    """Return the sessions of gone workers, and those in a turn that nobody runs."""
    owned = Session.objects.filter(owner__in=gone)
    running = Turn.objects.filter(state=Turn.State.RUNNING, session__owner="")
    return sorted(
        {
            *owned.values_list("pk", flat=True),
            *running.values_list("session_id", flat=True),
        }
    )


def unowned_with_work(*, limit: int) -> list[int]:
    """Return sessions that nobody owns although turns of theirs are unfinished.

    An owner that stopped in good order leaves its queue like this.
    """
    rows = Turn.objects.exclude(state=Turn.State.ENDED).filter(session__owner="")
    pks = rows.order_by("session_id").values_list("session_id", flat=True)
    return list(pks.distinct()[:limit])


def take_session(session_pk: int, me: ThisWorker, now: datetime) -> Hold | None:
    """Make this worker the owner if it may be; None if a living one is.

    The session's row stays locked until the transaction ends, so that an owner does
    not give the session back between a look at it and what is stored because of it.

    Spec: Ruling E14.
    """
    with transaction.atomic():
        found = lock_owner(session_pk)
        if found is None:
            raise Session.DoesNotExist(session_pk)
        owner, fence = found
        if owner == me.worker_id:
            return Hold(fence, is_new=False)
        if owner:
            row = Worker.objects.filter(worker_id=owner).first()
            if not _is_gone(me, row, now):
                return None
        set_owner(session_pk, owner=me.worker_id, fence=fence + 1)
        return Hold(fence + 1, is_new=True)


def lock_session(session_pk: int) -> None:
    """Keep others from changing who owns the session until the transaction ends."""
    if lock_owner(session_pk) is None:
        raise Session.DoesNotExist(session_pk)


class NotTheOwner(Exception):
    """Another worker owns the session, or it is gone. Spec: Ruling E14."""


def write_as_owner(session_pk: int, fence: int, write: Callable[[], R]) -> R:
    """Store something that only the owner of a session may store.

    The session's row is locked meanwhile.

    Raises:
        NotTheOwner: The hold of that fence is over; nothing is stored.
        Exception: Whatever the write raises.
    """
    with transaction.atomic():
        found = lock_owner(session_pk)
        if found is None or found[1] != fence:
            raise NotTheOwner(f"session {session_pk} has another owner")
        return write()


def give_back_session(
    session_pk: int, *, fence: int, has_more: Callable[[int], bool]
) -> list[TurnRecord] | None:
    """Give a session back if nothing is left to do in it.

    Words that came too late for the turn they were meant for become a turn of their
    own: nothing that was accepted is lost.

    Args:
        has_more: Told the session; whether there is more to do than turns.

    Returns:
        The unfinished turns, if any; None when the session was given back, or was
        lost to another owner before.

    Spec: Rulings E9, E14, E23.
    """
    with transaction.atomic():
        # The row's lock keeps an acceptance out until it is clear who runs it.
        found = lock_owner(session_pk)
        if found is None or found[1] != fence:
            return None
        if not has_work(session_pk) and not has_more(session_pk):
            set_owner(session_pk, owner="", fence=fence)
            return None
        _queue_late_injections(session_pk)
        return unfinished_turns(session_pk)


def abandon_session(session_pk: int, *, fence: int) -> None:
    """Give a session back although turns wait in it: this worker stops.

    Words that came too late for their turn wait in a turn of their own.

    Spec: Ruling E23; design.md 1, crash-only.
    """
    with transaction.atomic():
        found = lock_owner(session_pk)
        if found is not None and found[1] == fence:
            set_owner(session_pk, owner="", fence=fence)
            _queue_late_injections(session_pk)


def _queue_late_injections(session_pk: int) -> None:
    late = Injection.objects.filter(
        turn__session_id=session_pk, turn__state=Turn.State.ENDED
    )
    for injection in late.order_by("pk"):
        newest = Turn.objects.filter(session_id=session_pk).latest("turn_no")
        Turn.objects.create(
            session_id=session_pk,
            turn_no=newest.turn_no + 1,
            event_id=f"inject_{injection.pk}",
            card_id=f"turn_inject_{injection.pk}",
            run_id=f"run_{injection.pk:016x}",
            message={
                "text": injection.text,
                "content": [{"type": "text", "text": injection.text}],
                "coordinator_mode": None,
                "plan_confirmation": None,
            },
            accepted_at=injection.accepted_at,
        )
        injection.delete()
