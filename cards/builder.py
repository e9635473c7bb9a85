"""The builder: the only object that makes the frames of cards.

It joins the pure parts (tree, hints, payloads, codec, throttle) with a clock,
randomness and the session's writer. A frame that breaks a rule is refused here,
before it has a seq.

Spec: EMIT 1, 3.2, 6; Rulings E6, E7, E12, E20.
"""

import asyncio
from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import UNSET

from cards.clock import Entropy
from cards.log.store import RowChange
from cards.log.writer import SessionWriter
from cards.protocol.card_tree import Card, CardTree
from cards.protocol.codec import encode_event
from cards.protocol.envelope import Envelope, Hint, Metrics, format_timestamp
from cards.protocol.errors import ErrorInfo, LocalProtocolError
from cards.protocol.events import (
    CardAdd,
    CardAppend,
    CardClose,
    CardSet,
    CardTick,
    Event,
    PromptReply,
    PromptUser,
    SessionEvent,
)
from cards.protocol.hints import default_hint
from cards.protocol.ids import MAIN_AGENT, mint_card_id, mint_event_id
from cards.protocol.json_form import clean_text
from cards.protocol.kinds import (
    DROPPABLE_TICKS,
    SEVERITY_OF_CLOSE,
    CardKind,
    Channel,
    CloseStatus,
    Role,
    SessionEventKind,
    Severity,
)
from cards.protocol.mentions import KnownArtifacts, MentionRewriter
from cards.protocol.payloads import (
    REQUIRED_ON_ADD,
    AppendPayload,
    ClosePayload,
    MessagePayload,
    Payload,
    PromptReplyPayload,
    PromptUserPayload,
    SessionEventPayload,
    TickPayload,
)
from cards.protocol.throttle import TickThrottle


class Builder:
    """Makes the frames of one session and hands them to its writer.

    Args:
        session_id: Public id, for the envelope.
        trace_id: The session's durable trace.
        writer: Gives the seqs.
        tree: Judges what is legal.
        now_ms: The clock, in Unix milliseconds.
        entropy: Randomness for ids.
        tick_interval_ms: See `TickThrottle`.
        known: The files that messages may mention; None for none.
    """

    def __init__(
        self,
        *,
        session_id: str,
        trace_id: str,
        writer: SessionWriter,
        tree: CardTree,
        now_ms: Callable[[], int],
        entropy: Entropy,
        tick_interval_ms: int,
        known: KnownArtifacts | None = None,
    ) -> None:
        self._session_id = session_id
        self._trace_id = trace_id
        self._writer = writer
        self._tree = tree
        self._now_ms = now_ms
        self._entropy = entropy
        self._throttle: TickThrottle[TickPayload] = TickThrottle(tick_interval_ms)
        self._timers: dict[tuple[str, str], asyncio.TimerHandle] = {}
        self._known = known
        # By card, of messages that are open.
        self._rewriters: dict[str, MentionRewriter] = {}
        self._words: dict[str, list[str]] = {}
        self._stamped_ms = -1
        self._timestamp = ""
        #: Frames that came for a closed card and were not sent. Spec: Ruling E12.
        self.dropped_count = 0

    def take_dropped_count(self) -> int:
        """Return how many frames were dropped since the last call."""
        dropped, self.dropped_count = self.dropped_count, 0
        return dropped

    @property
    def writer(self) -> SessionWriter:
        """The session's writer, for flushing and back-pressure."""
        return self._writer

    def now_ms(self) -> int:
        """Return the present Unix time in milliseconds."""
        return self._now_ms()

    def random_hex(self, byte_count: int) -> str:
        """Return random hex digits, two a byte."""
        return self._entropy.hex(byte_count)

    def free_card_id(self, kind: CardKind, wanted: str | None) -> str:
        """Return the wanted id if no card has had it, else a fresh one.

        Spec: Ruling E7.
        """
        if wanted is not None and self._tree.is_free(wanted):
            return wanted
        while True:
            minted = mint_card_id(kind, self._entropy.hex)
            if self._tree.is_free(minted):
                return minted

    def is_free(self, card_id: str) -> bool:
        """Tell whether no card of the session has had this id. Spec: Ruling E7."""
        return self._tree.is_free(card_id)

    def open_below(self, card: Card) -> list[Card]:
        """Return the open cards below a card, children before parents."""
        return self._tree.open_below(card.card_id)

    def add(
        self,
        kind: CardKind,
        payload: Payload,
        *,
        card_id: str,
        parent: Card | None,
        agent_id: str = MAIN_AGENT,
        agent_run_id: str | None = None,
        hint: Hint | None = None,
        severity: Severity = Severity.INFO,
        changes: tuple[RowChange, ...] = (),
        words: list[str] | None = None,
    ) -> Card:
        """Open a card.

        Args:
            payload: Must carry what its kind requires.
            hint: None takes the default of the kind.
            changes: Rows to change in the same transaction.
            words: Gets the card's text as it is logged; None for nobody.

        Raises:
            LocalProtocolError: The card is illegal; nothing was sent.
            LogWriteFailed: The log cannot be written.

        Spec: EMIT 6.1.
        """
        missing = [
            name for name in REQUIRED_ON_ADD[kind] if getattr(payload, name) is UNSET
        ]
        if missing:
            raise LocalProtocolError(f"a new {kind} card needs {', '.join(missing)}")
        card = Card(
            card_id=card_id,
            kind=kind,
            parent_card_id=parent.card_id if parent else None,
            agent_id=agent_id,
            agent_run_id=agent_run_id,
            opened_ms=self._now_ms(),
        )
        event = CardAdd(
            envelope=self._envelope(card, severity),
            hint=hint or default_hint(kind, payload),
            payload=payload,
        )
        data = encode_event(event)
        self._tree.add(card)
        self._writer.append(data, changes)
        if words is not None:
            self._words[card_id] = words
        # What users say is theirs, to the letter.
        is_reply = isinstance(payload, MessagePayload) and payload.role != "user"
        if self._known is not None and is_reply:
            self._rewriters[card_id] = MentionRewriter(self._known)
        return card

    def set(self, card: Card, payload: Payload) -> None:
        """Change some fields of an open card. Spec: EMIT 6.2; Ruling E11."""
        if self._may_send(card):
            self._check_patch(card, payload)
            self._emit(CardSet(envelope=self._envelope(card), payload=payload))

    def append(self, card: Card, channel: Channel, text: str, index: int = 0) -> None:
        """Append to a stream of an open card; empty text sends nothing.

        The text of an assistant's message is sent as far as it can no longer become
        a mention of a file; the rest goes before the close.

        Spec: EMIT 6.3; Ruling E21.
        """
        if not text or not self._may_send(card):
            return
        self._tree.check_append(card, channel)
        text = clean_text(text)
        rewriter = self._rewriters.get(card.card_id)
        if rewriter is not None and channel is Channel.TEXT:
            # A sign of life, also when all of it is held back.
            card.last_event_ms = self._now_ms()
            text = rewriter.feed(text)
        if text:
            self._append(card, channel, text, index)

    def _append(self, card: Card, channel: Channel, text: str, index: int = 0) -> None:
        is_json = channel is Channel.TOOL_INPUT
        if channel is Channel.TEXT and card.card_id in self._words:
            self._words[card.card_id].append(text)
        self._emit(
            CardAppend(
                envelope=self._envelope(card),
                payload=AppendPayload(
                    channel=channel,
                    index=index or UNSET,
                    chunk=UNSET if is_json else text,
                    partial_json=text if is_json else UNSET,
                ),
            )
        )

    def tick(self, card: Card, tick: TickPayload) -> None:
        """Send a tick, or keep a droppable one that comes too early.

        Spec: EMIT 6.4; Ruling E20.
        """
        if not self._may_send(card):
            return
        if tick.kind not in DROPPABLE_TICKS:
            self._emit_tick(card, tick)
            return
        key = (card.card_id, str(tick.kind))
        now_ms = self._now_ms()
        ready = self._throttle.offer(key, tick, now_ms=now_ms)
        if ready is not None:
            self._emit_tick(card, ready)
        elif key not in self._timers:
            due_ms = self._throttle.due_ms(key) or now_ms
            self._timers[key] = asyncio.get_running_loop().call_later(
                (due_ms - now_ms) / 1000, self._send_waiting_tick, card, key
            )

    def _send_waiting_tick(self, card: Card, key: tuple[str, str]) -> None:
        del self._timers[key]
        tick = self._throttle.take(key, now_ms=self._now_ms())
        if tick is not None and card.is_open and self._writer.failure is None:
            self._emit_tick(card, tick)

    def _emit_tick(self, card: Card, tick: TickPayload) -> None:
        self._emit(CardTick(envelope=self._envelope(card), payload=tick))

    def close(
        self,
        card: Card,
        status: CloseStatus,
        *,
        error: ErrorInfo | None = None,
        inner: Payload | None = None,
        metrics: Metrics | None = None,
        changes: tuple[RowChange, ...] = (),
    ) -> None:
        """Close a card once; `metrics.duration_ms` is filled in.

        Spec: EMIT 6.5; Rulings E11, E12, E20.
        """
        if not self._may_send(card):
            return
        if inner is not None:
            self._check_patch(card, inner)
        duration_ms = max(0, self._now_ms() - card.opened_ms)
        payload = ClosePayload(
            status=status, error=error or UNSET, inner=inner if inner else UNSET
        )
        rewriter = self._rewriters.pop(card.card_id, None)
        if rewriter is not None and (rest := rewriter.flush()):
            self._append(card, Channel.TEXT, rest)
        for tick in self._throttle.drain(card.card_id):
            self._emit_tick(card, tick)
        event = CardClose(
            envelope=self._envelope(card, SEVERITY_OF_CLOSE[status]),
            metrics=msgspec.structs.replace(
                metrics or Metrics(), duration_ms=duration_ms
            ),
            payload=payload,
        )
        data = encode_event(event)
        self._words.pop(card.card_id, None)
        if self._tree.close(card):
            self._writer.append(data, changes)

    def session_event(
        self,
        kind: SessionEventKind,
        inner: Payload,
        *,
        severity: Severity = Severity.INFO,
        changes: tuple[RowChange, ...] = (),
    ) -> None:
        """Log something about the session. Spec: EMIT 8."""
        event = SessionEvent(
            envelope=self._bare_envelope(severity),
            payload=SessionEventPayload(kind=kind, inner=inner),
        )
        self._emit(event, changes)

    def prompt_user(
        self,
        payload: PromptUserPayload,
        *,
        agent_id: str,
        agent_run_id: str | None,
        change_of: Callable[[bytes, int], RowChange],
    ) -> None:
        """Ask the user something.

        Args:
            change_of: Told frame and seq; returns the row to change with it.

        Spec: EMIT 7.1; Ruling E15.
        """
        event = PromptUser(
            envelope=self._bare_envelope(
                Severity.INFO,
                agent_id=agent_id,
                role=Role.PERSONA if agent_id == MAIN_AGENT else Role.WORKER,
                agent_run_id=agent_run_id,
            ),
            payload=payload,
        )
        data = encode_event(event)
        self._writer.append(data, (change_of(data, self._writer.next_seq),))

    def prompt_reply(
        self, payload: PromptReplyPayload, *, changes: tuple[RowChange, ...]
    ) -> None:
        """Say how a prompt was settled. Spec: EMIT 7.2; Ruling E15."""
        self._emit(
            PromptReply(envelope=self._bare_envelope(Severity.INFO), payload=payload),
            changes,
        )

    def _emit(self, event: Event, changes: tuple[RowChange, ...] = ()) -> None:
        self._writer.append(encode_event(event), changes)

    def _may_send(self, card: Card) -> bool:
        if not card.is_open:
            self.dropped_count += 1
        return card.is_open

    def _check_patch(self, card: Card, patch: Payload) -> None:
        for name in REQUIRED_ON_ADD[card.kind]:
            if getattr(patch, name) == "":
                raise LocalProtocolError(f"a patch may not blank {name}")

    def _envelope(self, card: Card, severity: Severity = Severity.INFO) -> Envelope:
        timestamp = self._now_text()
        # A sign of life, for the watchdog. Spec: Ruling E13.
        card.last_event_ms = self._stamped_ms
        return Envelope(
            event_id=mint_event_id(self._entropy.hex),
            session_id=self._session_id,
            trace_id=self._trace_id,
            card_id=card.card_id,
            parent_card_id=card.parent_card_id or UNSET,
            card_kind=card.kind,
            seq=self._writer.next_seq,
            timestamp=timestamp,
            agent_id=card.agent_id,
            agent_role=card.role,
            agent_run_id=card.agent_run_id or UNSET,
            severity=severity,
        )

    def _bare_envelope(
        self,
        severity: Severity,
        *,
        agent_id: str = MAIN_AGENT,
        role: Role = Role.SYSTEM,
        agent_run_id: str | None = None,
    ) -> Envelope:
        no_card: Literal[""] = ""
        return Envelope(
            event_id=mint_event_id(self._entropy.hex),
            session_id=self._session_id,
            trace_id=self._trace_id,
            card_id=no_card,
            card_kind=no_card,
            seq=self._writer.next_seq,
            timestamp=self._now_text(),
            agent_id=agent_id,
            agent_role=role,
            agent_run_id=agent_run_id or UNSET,
            severity=severity,
        )

    def _now_text(self) -> str:
        now_ms = self._now_ms()
        if now_ms != self._stamped_ms:
            self._stamped_ms = now_ms
            self._timestamp = format_timestamp(now_ms)
        return self._timestamp

    def stop(self) -> None:
        """Cancel the timers of waiting ticks."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
