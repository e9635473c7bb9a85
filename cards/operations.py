"""Writes to sessions and turns; the event log itself is written by cards.log."""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Max

from cards.models import Session, Turn
from cards.principals import Principal
from cards.queries import AcceptedMessage, SessionRecord, TurnRecord


class SessionTaken(Exception):
    """The session id belongs to somebody else. Spec: Ruling E27."""


class MessageConflict(Exception):
    """The event_id was used for another message. Spec: Ruling E8."""


class QueueFull(Exception):
    """Too many messages wait in the session. Spec: Ruling E9."""


def open_session(
    *, session_id: str, trace_id: str, principal: Principal, now: datetime
) -> SessionRecord:
    """Return the session of that id, made now if there was none.

    Args:
        trace_id: Trace of the session if it is made.

    Raises:
        SessionTaken: Another principal owns the session.

    Spec: Rulings E1, E27.
    """
    row, _ = Session.objects.get_or_create(
        session_id=session_id,
        defaults={
            "trace_id": trace_id,
            "principal": principal,
            "created_at": now,
            "last_activity_at": now,
        },
    )
    if row.principal != principal:
        raise SessionTaken(session_id)
    return SessionRecord.of(row)


def accept_message(
    *,
    session_pk: int,
    event_id: str,
    card_id: str,
    run_id: str,
    message: AcceptedMessage,
    queue_limit: int,
    now: datetime,
) -> tuple[TurnRecord, bool]:
    """Store a user message as a queued turn, once.

    Args:
        queue_limit: Most turns that may wait behind the running one.

    Returns:
        The turn, and whether it is new; an old one was accepted before under the
        same event_id.

    Raises:
        MessageConflict: The event_id stands for another message.
        QueueFull: As many messages wait already.

    Spec: Rulings E8, E9.
    """
    known = _turn_of(session_pk, event_id, message)
    if known is not None:
        return known, False
    try:
        with transaction.atomic(durable=True):
            turns = Turn.objects.filter(session_id=session_pk)
            if turns.exclude(state=Turn.State.ENDED).count() > queue_limit:
                raise QueueFull
            last = turns.aggregate(last=Max("turn_no"))["last"] or 0
            row = Turn.objects.create(
                session_id=session_pk,
                turn_no=last + 1,
                event_id=event_id,
                card_id=card_id,
                run_id=run_id,
                message=message,
                accepted_at=now,
            )
    except IntegrityError:
        # Another connection was faster, with the same event_id or the same number.
        known = _turn_of(session_pk, event_id, message)
        if known is None:
            raise
        return known, False
    return TurnRecord.of(row), True


def _turn_of(
    session_pk: int, event_id: str, message: AcceptedMessage
) -> TurnRecord | None:
    row = Turn.objects.filter(session_id=session_pk, event_id=event_id).first()
    if row is None:
        return None
    if row.message != message:
        raise MessageConflict(event_id)
    return TurnRecord.of(row)


def name_session(*, session_pk: int, title: str) -> None:
    """Set the title of a session that has none. Spec: Ruling E29."""
    Session.objects.filter(pk=session_pk, title="").update(title=title)
