"""Writes to sessions and turns; the event log itself is written by cards.log.

Each opens a transaction, or a savepoint in one that is open.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Count, Max, Q

from cards.models import Session, Turn
from cards.principals import Principal
from cards.queries import AcceptedMessage, SessionRecord, TurnRecord


class SessionTaken(Exception):
    """The session id belongs to somebody else. Spec: Ruling E27."""


class MessageConflict(Exception):
    """The event_id was used for another message. Spec: Ruling E8."""


class QueueFull(Exception):
    """Too many messages wait in the session. Spec: Ruling E9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTurn:
    """What is stored of a user message when it is accepted.

    Attributes:
        title: Of the session, if this is its first message. Spec: Ruling E29.
    """

    event_id: str
    card_id: str
    run_id: str
    message: AcceptedMessage
    title: str
    accepted_at: datetime


def open_session(
    *,
    session_id: str,
    trace_id: str,
    principal: Principal,
    now: datetime,
    first_turn: NewTurn | None = None,
) -> tuple[SessionRecord, TurnRecord | None]:
    """Return the session of that id, made now if there was none.

    Args:
        trace_id: Trace of the session if it is made.
        first_turn: Stored in the same transaction if the session is made; one
            commit instead of two, because most sessions begin with a message.

    Returns:
        The session, and the turn if it was stored.

    Raises:
        SessionTaken: Another principal owns the session.

    Spec: Rulings E1, E27.
    """
    title = first_turn.title if first_turn else ""
    with transaction.atomic():
        row, is_new = Session.objects.get_or_create(
            session_id=session_id,
            defaults={
                "trace_id": trace_id,
                "principal": principal,
                "title": title,
                "created_at": now,
                "last_activity_at": now,
            },
        )
        turn = _create_turn(row.pk, 1, first_turn) if first_turn and is_new else None
    if row.principal != principal:
        raise SessionTaken(session_id)
    return SessionRecord.of(row), turn


def accept_message(
    *, session_pk: int, turn: NewTurn, queue_limit: int
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
    known = _turn_of(session_pk, turn.event_id, turn.message)
    if known is not None:
        return known, False
    try:
        with transaction.atomic():
            counts = Turn.objects.filter(session_id=session_pk).aggregate(
                last=Max("turn_no"),
                unfinished=Count("pk", filter=~Q(state=Turn.State.ENDED)),
            )
            if counts["unfinished"] > queue_limit:
                raise QueueFull
            if counts["last"] is None:
                Session.objects.filter(pk=session_pk, title="").update(title=turn.title)
            record = _create_turn(session_pk, (counts["last"] or 0) + 1, turn)
    except IntegrityError:
        # Another connection was faster, with the same event_id or the same number.
        known = _turn_of(session_pk, turn.event_id, turn.message)
        if known is None:
            raise
        return known, False
    return record, True


def _create_turn(session_pk: int, turn_no: int, turn: NewTurn) -> TurnRecord:
    row = Turn.objects.create(
        session_id=session_pk,
        turn_no=turn_no,
        event_id=turn.event_id,
        card_id=turn.card_id,
        run_id=turn.run_id,
        message=turn.message,
        accepted_at=turn.accepted_at,
    )
    return TurnRecord.of(row)


def _turn_of(
    session_pk: int, event_id: str, message: AcceptedMessage
) -> TurnRecord | None:
    row = Turn.objects.filter(session_id=session_pk, event_id=event_id).first()
    if row is None:
        return None
    if row.message != message:
        raise MessageConflict(event_id)
    return TurnRecord.of(row)
