"""Writes to sessions and turns; the event log itself is written by cards.log.

Each opens a transaction, or a savepoint in one that is open.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction

from cards.models import Injection, Session, Turn
from cards.ownership import Hold, ThisWorker, lock_session, take_session
from cards.principals import ANONYMOUS, Principal
from cards.protocol.json_form import JSONValue
from cards.protocol.user_blocks import stored_source_of
from cards.queries import (
    AcceptedMessage,
    SessionRecord,
    TurnRecord,
    newest_seq,
    unfinished_turns,
)
from cards.statements import count_turns, find_turn


class SessionTaken(Exception):
    """The session id belongs to somebody else. Spec: Ruling E27."""


class MessageConflict(Exception):
    """The event_id was used for another message. Spec: Ruling E8."""


class QueueFull(Exception):
    """Too many messages wait in the session. Spec: Ruling E9."""


class TooManySessions(Exception):
    """The principal owns as many sessions as it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTurn:
    """What is stored of a user message when it is accepted.

    Attributes:
        title: Of the session, if this is its first message. Spec: Ruling E29.
        keep_files: Stores the rows of its files in the session of that key, within
            the same transaction; None when it brings none.
    """

    event_id: str
    card_id: str
    run_id: str
    message: AcceptedMessage
    title: str
    accepted_at: datetime
    keep_files: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A session, old or new.

    Attributes:
        turn: The first one, if it was stored with the session.
        hold: That the session is ours to run it.
    """

    record: SessionRecord
    turn: TurnRecord | None
    hold: Hold | None


@dataclass(frozen=True, slots=True)
class AcceptedTurn:
    """The turn of a message.

    Attributes:
        is_new: False when the message was accepted before under its event_id.
        hold: That the session is ours; None when another worker is to run the turn.
    """

    turn: TurnRecord
    is_new: bool
    hold: Hold | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequest:
    """What a client wants stopped.

    Attributes:
        turn_card_id: The turn that is meant, running or waiting; None for the one
            that the client saw running, or about to.
        clear_queue: Stop those that wait as well.
        seen_seq: Up to where the client was shown the session's log.

    Spec: Rulings E9, E10.
    """

    turn_card_id: str | None = None
    clear_queue: bool = False
    seen_seq: int

    def may_mean_next(self, *, shown_before: int) -> bool:
        """Tell whether a turn may be meant although it is not named.

        Somebody who was not shown all that came before it may want an earlier one
        stopped, and has not seen that it ended.

        Args:
            shown_before: Seq of the last frame before the turn's first one.
        """
        return self.clear_queue or self.seen_seq >= shown_before


@dataclass(frozen=True, slots=True, kw_only=True)
class StopOutcome:
    """What became of a wish to stop.

    Attributes:
        is_stopped: False when there was nothing to stop.
        is_running: Whether any turn ran or waited, on whichever worker.
    """

    is_stopped: bool
    is_running: bool


NOTHING_TO_STOP = StopOutcome(is_stopped=False, is_running=False)


def open_session(
    *,
    session_id: str,
    trace_id: str,
    principal: Principal,
    now: datetime,
    session_limit: int,
    first_turn: NewTurn | None = None,
    me: ThisWorker | None = None,
) -> OpenedSession:
    """Return the session of that id, made now if there was none.

    Args:
        trace_id: Trace of the session if it is made.
        session_limit: Most sessions that a principal may own; 0 for any number.
        first_turn: Stored in the same transaction if the session is made; one
            commit instead of two, because most sessions begin with a message.
        me: Becomes the owner if the session is made with a turn; None leaves the
            turn to whoever takes the session.

    Raises:
        SessionTaken: Another principal owns the session.
        TooManySessions: The principal may own no more.

    Spec: Rulings E1, E27.
    """
    with transaction.atomic():
        is_owned = first_turn is not None and me is not None
        row, is_new = Session.objects.get_or_create(
            session_id=session_id,
            defaults={
                "trace_id": trace_id,
                "principal": principal,
                "title": first_turn.title if first_turn else "",
                "created_at": now,
                "last_activity_at": now,
                "owner": me.worker_id if me and is_owned else "",
                "fence": int(is_owned),
            },
        )
        if is_new:
            _check_session_count(principal, session_limit)
        turn = _create_turn(row.pk, 1, first_turn) if first_turn and is_new else None
    if row.principal != principal:
        raise SessionTaken(session_id)
    hold = Hold(row.fence, is_new=True) if turn and me else None
    return OpenedSession(SessionRecord.of(row), turn, hold)


def _check_session_count(principal: Principal, limit: int) -> None:
    # Scripts without cookie and token are many and share one principal.
    if not limit or principal == ANONYMOUS:
        return
    # The one just made is among them.
    if Session.objects.filter(principal=principal)[limit : limit + 1]:
        raise TooManySessions


def accept_message(
    *,
    session_pk: int,
    turn: NewTurn,
    queue_limit: int,
    me: ThisWorker | None,
) -> AcceptedTurn:
    """Store a user message as a queued turn, once, and see to it that it is run.

    Args:
        queue_limit: Most turns that may wait behind the running one.
        me: Takes the session if it may be taken; None leaves the turn to whoever
            takes it.

    Raises:
        MessageConflict: The event_id stands for another message.
        QueueFull: As many messages wait already.

    Spec: Rulings E8, E9, E14.
    """
    with transaction.atomic():
        # Locks the session's row, so messages come one after the other.
        hold = take_session(session_pk, me, turn.accepted_at) if me else None
        if me is None:
            lock_session(session_pk)
        known = _turn_of(session_pk, turn.event_id, turn.message)
        if known is not None:
            return AcceptedTurn(known, is_new=False, hold=hold)
        last, unfinished = count_turns(session_pk)
        if unfinished > queue_limit:
            raise QueueFull
        if last == 0:
            Session.objects.filter(pk=session_pk, title="").update(title=turn.title)
        record = _create_turn(session_pk, last + 1, turn)
    return AcceptedTurn(record, is_new=True, hold=hold)


def settle_wait(
    *,
    session_pk: int,
    claim: Callable[[], None],
    now: datetime,
    me: ThisWorker | None,
) -> Hold | None:
    """Settle what somebody waits for, and see to it that somebody goes on with it.

    Args:
        claim: Settles it, or raises and changes nothing.
        me: Takes the session if it may be taken; None leaves it to whoever takes it.

    Returns:
        That the session is ours; None when another worker is to go on.

    Raises:
        Exception: Whatever the claim raises.

    Spec: Rulings E14, E15; design.md 5.
    """
    with transaction.atomic():
        # The row's lock keeps the owner from giving the session back meanwhile.
        hold = take_session(session_pk, me, now) if me else None
        if me is None:
            lock_session(session_pk)
        claim()
    return hold


def continue_session(
    *,
    session_pk: int,
    is_due: Callable[[], bool],
    asking_turn_pk: int,
    turn: NewTurn,
) -> TurnRecord | None:
    """Store the turn that goes on with an answer, once.

    It is worked on in the way that was wished for the turn that asked, and with the
    files of that one.

    Args:
        is_due: Whether the answer was not used yet.

    Returns:
        The turn, now or earlier stored; None when it is not due.

    Spec: Ruling E15.
    """
    with transaction.atomic():
        lock_session(session_pk)
        if not is_due():
            return None
        event_id = turn.event_id
        while (found := find_turn(session_pk, event_id)) is not None:
            if _answers_as(found[1], turn.message):
                return TurnRecord.of(Turn.objects.get(pk=found[0]))
            # A client gave its message that name: no reason to lose the answer.
            event_id += "_"
        asked = Turn.objects.get(pk=asking_turn_pk).message
        message = turn.message | {
            "coordinator_mode": asked["coordinator_mode"],
            "plan_confirmation": asked["plan_confirmation"],
        }
        files = _files_of(asked)
        if files:
            message["carried_files"] = files
        last, _ = count_turns(session_pk)
        due = replace(turn, event_id=event_id, message=message)
        return _create_turn(session_pk, last + 1, due)


def _answers_as(stored: object, message: AcceptedMessage) -> bool:
    """Tell whether a stored message goes on with the same answer."""
    known = stored.get("continuation") if isinstance(stored, dict) else None
    return isinstance(known, dict) and (
        known.get("request_id") == message["continuation"]["request_id"]
    )


def stop_turns(session_pk: int, request: StopRequest) -> StopOutcome:
    """Mark turns as stopped by their user, for whoever runs them.

    Spec: Rulings E9, E10.
    """
    with transaction.atomic():
        lock_session(session_pk)
        unfinished = unfinished_turns(session_pk)
        meant = _turns_meant(session_pk, unfinished, request)
        waiting = unfinished[1:] if request.clear_queue else []
        stopped = {turn.pk for turn in (*meant, *waiting)}
        Turn.objects.filter(pk__in=stopped).update(is_stopped=True)
    return StopOutcome(is_stopped=bool(stopped), is_running=bool(unfinished))


def _turns_meant(
    session_pk: int, unfinished: list[TurnRecord], request: StopRequest
) -> list[TurnRecord]:
    if request.turn_card_id is not None:
        return [turn for turn in unfinished if turn.card_id == request.turn_card_id]
    if not unfinished:
        return []
    first_seq = Turn.objects.values_list("first_seq", flat=True).get(
        pk=unfinished[0].pk
    )
    before = newest_seq(session_pk) if first_seq is None else first_seq - 1
    return unfinished[:1] if request.may_mean_next(shown_before=before) else []


def store_injection(*, session_pk: int, text: str, now: datetime) -> bool:
    """Keep words for the running turn; False when none runs. Spec: Ruling E23."""
    with transaction.atomic():
        lock_session(session_pk)
        running = Turn.objects.filter(session_id=session_pk, state=Turn.State.RUNNING)
        turn = running.first()
        if turn is not None:
            Injection.objects.create(turn=turn, text=text, accepted_at=now)
    return turn is not None


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
    if turn.keep_files is not None:
        turn.keep_files(session_pk)
    return TurnRecord.of(row)


def _files_of(message: AcceptedMessage) -> list[dict[str, JSONValue]]:
    own = [block for block in message["content"] if stored_source_of(block)]
    return own + message.get("carried_files", [])


def _turn_of(
    session_pk: int, event_id: str, message: AcceptedMessage
) -> TurnRecord | None:
    found = find_turn(session_pk, event_id)
    if found is None:
        return None
    turn_pk, accepted = found
    if not _is_same(accepted, message):
        raise MessageConflict(event_id)
    return TurnRecord.of(Turn.objects.get(pk=turn_pk))


def _is_same(accepted: object, message: AcceptedMessage) -> bool:
    # What a message with files refers to may have changed since it came first.
    fingerprint = message.get("fingerprint")
    if fingerprint is not None and isinstance(accepted, dict):
        return accepted.get("fingerprint") == fingerprint
    return accepted == message
