"""From what a user says to the turn that is stored, and to what its engine is told.

Spec: Rulings E7, E15, E28, E29.
"""

from datetime import datetime

from cards.engine import Continuation, TurnInput
from cards.operations import NewTurn
from cards.ports import Settlement
from cards.protocol.client_messages import UserMessage, blocks_of, text_of
from cards.protocol.hints import shorten
from cards.protocol.ids import (
    RandomHex,
    is_safe_id,
    mint_card_id,
    mint_event_id,
    mint_run_id,
)
from cards.protocol.json_form import JSONValue, json_form
from cards.protocol.kinds import CardKind
from cards.queries import AcceptedAnswer, AcceptedMessage, TurnRecord

#: Longest automatic title in characters. Spec: Ruling E29.
TITLE_CHARS = 80


def turn_of_message(
    message: UserMessage, *, random_hex: RandomHex, now: datetime
) -> NewTurn:
    """Return the turn of a checked user message. Spec: Ruling E7."""
    given = message.event_id
    wanted = f"turn_{given}" if given is not None and is_safe_id(given) else None
    accepted = accepted_message(message)
    return NewTurn(
        event_id=given or mint_event_id(random_hex),
        card_id=wanted or mint_card_id(CardKind.TURN, random_hex),
        run_id=mint_run_id(random_hex),
        message=accepted,
        title=shorten(accepted["text"], TITLE_CHARS),
        accepted_at=now,
    )


def accepted_message(message: UserMessage) -> AcceptedMessage:
    """Return a checked user message in the form that is stored."""
    content = [
        {"type": block.type, "text": json_form(block.text)}
        for block in blocks_of(message)
    ]
    return AcceptedMessage(
        text=text_of(message),
        content=content,
        coordinator_mode=message.coordinator_mode,
        plan_confirmation=message.plan_confirmation,
    )


def turn_of_answer(
    settlement: Settlement,
    *,
    text: str,
    prompt: dict[str, JSONValue],
    random_hex: RandomHex,
    now: datetime,
) -> NewTurn:
    """Return the turn that goes on with an answer.

    Its event_id is made of the prompt's, so that it is stored once.

    Args:
        text: Question and answer for the model.
        prompt: The inner of the prompt.

    Spec: Ruling E15.
    """
    message = AcceptedMessage(
        text=text,
        content=[{"type": "text", "text": text}],
        coordinator_mode=None,
        plan_confirmation=None,
        continuation=AcceptedAnswer(
            kind=settlement.kind,
            request_id=settlement.request_id,
            decision=settlement.decision,
            payload=settlement.payload,
            prompt=prompt,
        ),
    )
    return NewTurn(
        event_id=f"answer_{settlement.request_id}",
        card_id=f"turn_{settlement.request_id}",
        run_id=mint_run_id(random_hex),
        message=message,
        title=shorten(text, TITLE_CHARS),
        accepted_at=now,
    )


def turn_input(record: TurnRecord) -> TurnInput:
    """Return what an engine gets to know of an accepted message."""
    message = record.message
    return TurnInput(
        text=message["text"],
        blocks=message["content"],
        event_id=record.event_id,
        coordinator_mode=message["coordinator_mode"],
        plan_confirmation=message["plan_confirmation"],
        continuation=Continuation(**message["continuation"])
        if "continuation" in message
        else None,
    )
