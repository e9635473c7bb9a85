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


class _FoldedCard(msgspec.Struct, kw_only=True):
    """A card as far as it was folded.

    `streams` maps a channel to its blocks, each the pieces in order of their coming;
    they are joined when somebody looks.
    """

    view: CardView
    added_seq: int
    agent_run_id: str | None
    streams: dict[str, dict[int, list[str]]] = {}

    def apply(self, frame: StoredFrame) -> None:
        """Fold a frame of this card that is not its `card.add`."""
        if frame.type == "card.append":
            self._append(frame.payload)
        elif frame.type == "card.set":
            self.view.payload = self.view.payload | frame.payload
        elif frame.type == "card.close":
            self._close(frame)

    def _append(self, payload: Fields) -> None:
        text = payload.get("chunk", payload.get("partial_json", ""))
        index = payload.get("index", 0)
        channel = payload.get("channel")
        if (
            isinstance(text, str)
            and isinstance(index, int)
            and isinstance(channel, str)
        ):
            # JSON has no booleans as keys, and Python takes True for an int.
            self.streams.setdefault(channel, {}).setdefault(int(index), []).append(text)

    def _close(self, frame: StoredFrame) -> None:
        card = self.view
        card.status = str(frame.payload["status"])
        card.metrics = frame.metrics
        if "error" in frame.payload:
            card.payload = card.payload | {"error": frame.payload["error"]}
        inner = frame.payload.get("inner")
        if isinstance(inner, dict):
            card.payload = card.payload | inner

    def join_blocks(self) -> None:
        """Make one piece of each block."""
        for blocks in self.streams.values():
            for index, pieces in blocks.items():
                blocks[index] = ["".join(pieces)]

    def joined(self) -> CardView:
        """Return the card with its streams joined."""
        self.join_blocks()
        return msgspec.structs.replace(
            self.view,
            channels={
                channel: "".join(blocks[index][0] for index in sorted(blocks))
                for channel, blocks in self.streams.items()
            },
        )


class _Folded(msgspec.Struct, kw_only=True):
    """What a fold holds, in the form that is stored."""

    last_seq: int
    cards: list[_FoldedCard]


_fold_decoder = msgspec.json.Decoder(_Folded)


class CardFold:
    """Cards in order of their `card.add`, folded frame by frame."""

    def __init__(self) -> None:
        self._cards: dict[str, _FoldedCard] = {}
        self.last_seq = 0

    @classmethod
    def decode(cls, data: bytes) -> "CardFold":
        """Return a fold that was encoded, to go on behind its `last_seq`.

        Raises:
            msgspec.ValidationError: The bytes are not a fold of ours.
        """
        folded = _fold_decoder.decode(data)
        fold = cls()
        fold.last_seq = folded.last_seq
        fold._cards = {card.view.card_id: card for card in folded.cards}
        return fold

    def encode(self) -> bytes:
        """Return everything that later frames and readers need of this fold."""
        for card in self._cards.values():
            card.join_blocks()
        return msgspec.json.encode(
            _Folded(last_seq=self.last_seq, cards=list(self._cards.values()))
        )

    def apply(self, frame: StoredFrame) -> None:
        """Fold one frame; frames of unknown cards change nothing. Spec: EMIT 15.2."""
        envelope = frame.envelope
        self.last_seq = envelope.seq
        if frame.type == "card.add":
            self._cards[envelope.card_id] = _added(frame)
            return
        card = self._cards.get(envelope.card_id)
        if card is not None:
            card.apply(frame)

    def apply_all(self, frames: Iterable[bytes]) -> None:
        """Fold stored frames in their order."""
        for data in frames:
            self.apply(decode_stored(data))

    def cards(
        self, *, after_seq: int = 0, up_to_seq: int | None = None
    ) -> list[CardView]:
        """Return the cards in order of their `card.add`, streams joined.

        Args:
            after_seq: Only cards that were added behind this seq.
            up_to_seq: Only cards that were added up to this seq; None for all.
        """
        return [
            card.joined()
            for card in self._cards.values()
            if card.added_seq > after_seq
            and (up_to_seq is None or card.added_seq <= up_to_seq)
        ]

    def agent_run_id(self, card_id: str) -> str | None:
        """Return the run id that the card's frames carry; None if none."""
        card = self._cards.get(card_id)
        return None if card is None else card.agent_run_id


def _added(frame: StoredFrame) -> _FoldedCard:
    envelope = frame.envelope
    return _FoldedCard(
        view=CardView(
            card_id=envelope.card_id,
            card_kind=envelope.card_kind,
            parent_card_id=envelope.parent_card_id,
            agent_id=envelope.agent_id,
            hint=frame.hint or {},
            payload=frame.payload,
        ),
        added_seq=envelope.seq,
        agent_run_id=envelope.agent_run_id,
    )
