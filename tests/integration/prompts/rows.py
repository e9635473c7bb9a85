"""Prompts that wait without anybody in the process, for REST and the admin."""

from typing import Any

from cards.clock import utc_now
from cards.models import Session
from cards.models import Turn as TurnRow
from cards.ports import NewWait
from cards.protocol.codec import encode_event
from cards.protocol.events import PromptUser
from cards.protocol.kinds import PromptKind
from cards.protocol.payloads import PromptUserPayload
from config.wiring import prompt_book
from prompts.models import PendingWait, SettledPrompt
from tests.unit.cards.protocol.frames import make_envelope

QUESTION = {"question": "which?", "allow_custom": True}
FAILED_STEP = {"scope": "step", "step_id": "s1", "reason": "no room"}


def open_prompt(
    session: Session,
    request_id: str = "req_1",
    *,
    kind: PromptKind = PromptKind.QUESTION,
    inner: dict[str, Any] = QUESTION,
    **changes: Any,
) -> PendingWait:
    """Have a prompt wait in a session, as the log's writer shows it."""
    turn, _ = TurnRow.objects.get_or_create(
        session=session,
        turn_no=1,
        defaults={
            "event_id": "c1",
            "card_id": "turn_c1",
            "run_id": "run_1",
            "state": "running",
            "message": {"text": "hi", "content": []},
            "accepted_at": utc_now(),
        },
    )
    prompt_book().open_wait(
        NewWait(
            request_id=request_id,
            session_pk=session.pk,
            turn_pk=turn.pk,
            kind=kind,
            created_at=utc_now(),
            timeout_ms=0,
        )
    )
    payload = PromptUserPayload(
        request_id=request_id, kind=kind, inner=inner, timeout_ms=0
    )
    frame = encode_event(PromptUser(envelope=make_envelope(), payload=payload))
    PendingWait.objects.filter(request_id=request_id).update(
        **{"state": "pending", "frame": frame, "seq": 2} | changes
    )
    return PendingWait.objects.get(request_id=request_id)


def note_settled(session: Session, request_id: str, decision: str) -> None:
    """Note that a prompt was settled, as its reply does."""
    SettledPrompt.objects.create(
        request_id=request_id,
        session=session,
        decision=decision,
        settled_at=utc_now(),
    )
