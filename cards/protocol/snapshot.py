"""Folding a session's frames into the cards that a client would show.

The same rules as a client's reducer: a snapshot equals what a client that saw
every frame has.

Spec: EMIT 15.2; Ruling E5.
"""

from collections.abc import Iterable

import msgspec

from cards.protocol.json_form import JSONValue

Fields = dict[str, JSONValue]


class StoredEnvelope(msgspec.Struct, frozen=True):
    """The part of a stored envelope that folding needs."""

    card_id: str
    card_kind: str
    seq: int
    parent_card_id: str | None = None
    agent_id: str | None = None
    agent_run_id: str | None = None


class StoredFrame(msgspec.Struct, frozen=True):
    """A frame as it is read back from the log."""

    type: str
    envelope: StoredEnvelope
    payload: Fields
    hint: Fields | None = None
    metrics: Fields | None = None


class CardView(msgspec.Struct, kw_only=True):
    """One card after all its frames; `status` is `open` until it closes.

    `channels` maps a channel to its joined text, blocks in order of their index.
    """

    card_id: str
    card_kind: str
    parent_card_id: str | None
    agent_id: str | None
    status: str = "open"
    hint: Fields
    payload: Fields
    channels: dict[str, str] = {}
    metrics: Fields | None = None


_decoder = msgspec.json.Decoder(StoredFrame)


def decode_stored(data: bytes) -> StoredFrame:
    """Return a stored frame, to be folded.

    Raises:
        msgspec.ValidationError: The bytes are not a frame of ours.
    """
    return _decoder.decode(data)


class CardFold:
    """Cards in order of their `card.add`, folded frame by frame."""

    def __init__(self) -> None:
        self._cards: dict[str, CardView] = {}
        self._streams: dict[tuple[str, str], dict[int, list[str]]] = {}
        self._runs: dict[str, str | None] = {}
        self.last_seq = 0

    def apply(self, frame: StoredFrame) -> None:
        """Fold one frame; frames of unknown cards change nothing. Spec: EMIT 15.2."""
        self.last_seq = frame.envelope.seq
        if frame.type == "card.add":
            self._add(frame)
            return
        card = self._cards.get(frame.envelope.card_id)
        if card is None:
            return
        if frame.type == "card.append":
            self._append(card, frame.payload)
        elif frame.type == "card.set":
            card.payload = card.payload | frame.payload
        elif frame.type == "card.close":
            self._close(card, frame)

    def apply_all(self, frames: Iterable[bytes]) -> None:
        """Fold stored frames in their order."""
        for data in frames:
            self.apply(decode_stored(data))

    def _add(self, frame: StoredFrame) -> None:
        envelope = frame.envelope
        self._runs[envelope.card_id] = envelope.agent_run_id
        self._cards[envelope.card_id] = CardView(
            card_id=envelope.card_id,
            card_kind=envelope.card_kind,
            parent_card_id=envelope.parent_card_id,
            agent_id=envelope.agent_id,
            hint=frame.hint or {},
            payload=frame.payload,
        )

    def _append(self, card: CardView, payload: Fields) -> None:
        text = payload.get("chunk", payload.get("partial_json", ""))
        index = payload.get("index", 0)
        channel = payload.get("channel")
        if (
            isinstance(text, str)
            and isinstance(index, int)
            and isinstance(channel, str)
        ):
            blocks = self._streams.setdefault((card.card_id, channel), {})
            blocks.setdefault(index, []).append(text)

    def _close(self, card: CardView, frame: StoredFrame) -> None:
        card.status = str(frame.payload["status"])
        card.metrics = frame.metrics
        if "error" in frame.payload:
            card.payload = card.payload | {"error": frame.payload["error"]}
        inner = frame.payload.get("inner")
        if isinstance(inner, dict):
            card.payload = card.payload | inner

    def cards(self) -> list[CardView]:
        """Return the cards in order of their `card.add`, streams joined."""
        for (card_id, channel), blocks in self._streams.items():
            self._cards[card_id].channels = self._cards[card_id].channels | {
                channel: "".join("".join(blocks[index]) for index in sorted(blocks))
            }
        return list(self._cards.values())

    def agent_run_id(self, card_id: str) -> str | None:
        """Return the run id that the card's frames carry; None if none."""
        return self._runs.get(card_id)
