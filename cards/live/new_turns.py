"""From what a user says to the turn that is stored, and to what its engine is told.

Spec: Rulings E7, E15, E28, E29.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import BinaryIO

from cards.engine import Artifact, Continuation, FileBlock, TextBlock, TurnInput
from cards.engine.input import InputBlock
from cards.operations import NewTurn
from cards.ports import Settlement
from cards.protocol.client_messages import UserMessage, blocks_of, text_of
from cards.protocol.hints import shorten
from cards.protocol.ids import (
    RandomHex,
    is_safe_id,
    mint_card_id,
    mint_run_id,
)
from cards.protocol.json_form import JSONValue
from cards.protocol.kinds import CardKind
from cards.protocol.user_blocks import (
    is_file,
    stored_source_of,
    stored_text_block,
    words_of,
)
from cards.queries import AcceptedAnswer, AcceptedMessage, TurnRecord

#: Longest automatic title in characters. Spec: Ruling E29.
TITLE_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedMessage:
    """A user message whose files are there.

    Attributes:
        event_id: Given or minted.
        accepted: In the form that is stored with its turn.
        keep_files: See `NewTurn`.
    """

    event_id: str
    accepted: AcceptedMessage
    keep_files: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True)
class SubmittedTurn:
    """The turn of a message; an old one if the message was accepted before."""

    record: TurnRecord
    is_new: bool


def turn_of_message(
    message: UserMessage,
    received: ReceivedMessage,
    *,
    random_hex: RandomHex,
    now: datetime,
) -> NewTurn:
    """Return the turn of a checked user message. Spec: Ruling E7."""
    given = message.event_id
    wanted = f"turn_{given}" if given is not None and is_safe_id(given) else None
    return NewTurn(
        event_id=received.event_id,
        card_id=wanted or mint_card_id(CardKind.TURN, random_hex),
        run_id=mint_run_id(random_hex),
        message=received.accepted,
        # The names of files say little beside words.
        title=shorten(received.accepted["text"], TITLE_CHARS)
        or shorten(words_of(received.accepted["content"]), TITLE_CHARS),
        accepted_at=now,
        keep_files=received.keep_files,
    )


def accepted_message(
    message: UserMessage,
    *,
    files: Mapping[int, dict[str, JSONValue]] | None = None,
    fingerprint: str | None = None,
) -> AcceptedMessage:
    """Return a checked user message in the form that is stored.

    Args:
        files: The stored blocks of its files, by their index.
        fingerprint: Of a message with files; None for words alone.
    """
    known = files or {}
    content = [
        known[index] if index in known else stored_text_block(block.text or "")
        for index, block in enumerate(blocks_of(message))
        if index in known or not is_file(block)
    ]
    accepted = AcceptedMessage(
        text=text_of(message),
        content=content,
        coordinator_mode=message.coordinator_mode,
        plan_confirmation=message.plan_confirmation,
    )
    if fingerprint is not None:
        accepted["fingerprint"] = fingerprint
    return accepted


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


def turn_input(
    record: TurnRecord, open_file: Callable[[str, int], Awaitable[BinaryIO]]
) -> TurnInput:
    """Return what an engine gets to know of an accepted message.

    Args:
        open_file: Opens a version of an artifact of the session.
    """
    message = record.message
    blocks = [*message["content"], *message.get("carried_files", ())]
    return TurnInput(
        text=words_of(message["content"]),
        blocks=[_input_block(block, open_file) for block in blocks],
        event_id=record.event_id,
        coordinator_mode=message["coordinator_mode"],
        plan_confirmation=message["plan_confirmation"],
        continuation=Continuation(**message["continuation"])
        if "continuation" in message
        else None,
    )


def _input_block(
    block: dict[str, JSONValue],
    open_file: Callable[[str, int], Awaitable[BinaryIO]],
) -> InputBlock:
    source = stored_source_of(block)
    if source is None:
        return TextBlock(block)
    artifact = Artifact(
        artifact_id=source.artifact_id,
        name=source.name,
        version=source.version,
        type="image" if block["type"] == "image" else "file",
        mime_type=source.mime_type,
        size_bytes=source.size_bytes,
        role="",
        description="",
    )
    return FileBlock(
        block,
        artifact=artifact,
        open_file=partial(open_file, source.artifact_id, source.version),
    )
