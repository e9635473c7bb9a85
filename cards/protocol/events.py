"""The server frames that cards, prompts and sessions are made of.

Spec: EMIT 3, 4, 6, 7, 8.
"""

import msgspec
from msgspec import UNSET, UnsetType

from cards.protocol.envelope import Envelope, Hint, Metrics
from cards.protocol.payloads import (
    AppendPayload,
    ClosePayload,
    Payload,
    PromptReplyPayload,
    PromptUserPayload,
    SessionEventPayload,
    TickPayload,
)


class Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    gc=False,
    tag_field="type",
):
    """Base of every server frame with an envelope. Spec: EMIT 3.1."""

    envelope: Envelope


class CardAdd(Event, frozen=True, kw_only=True, tag="card.add"):
    """A new card. Spec: EMIT 6.1."""

    hint: Hint
    payload: Payload


class CardSet(Event, frozen=True, kw_only=True, tag="card.set"):
    """New values for some fields of a card. Spec: EMIT 6.2."""

    payload: Payload


class CardAppend(Event, frozen=True, kw_only=True, tag="card.append"):
    """The next piece of a card's stream; never dropped. Spec: EMIT 6.3."""

    payload: AppendPayload


class CardTick(Event, frozen=True, kw_only=True, tag="card.tick"):
    """A momentary signal. Spec: EMIT 6.4."""

    payload: TickPayload


class CardClose(Event, frozen=True, kw_only=True, tag="card.close"):
    """The end of a card. Spec: EMIT 6.5."""

    metrics: Metrics | UnsetType = UNSET
    payload: ClosePayload


class PromptUser(Event, frozen=True, kw_only=True, tag="prompt.user"):
    """A question to the user. Spec: EMIT 7.1."""

    payload: PromptUserPayload


class PromptReply(Event, frozen=True, kw_only=True, tag="prompt.reply"):
    """The end of a question. Spec: EMIT 7.2."""

    payload: PromptReplyPayload


class SessionEvent(Event, frozen=True, kw_only=True, tag="session.event"):
    """Something about the session itself. Spec: EMIT 8."""

    payload: SessionEventPayload
