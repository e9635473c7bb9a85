"""Which cards have been silent for too long.

| a card | then |
|---|---|
| gets any frame | it and all above it start a fresh window, closed ones stepped over |
| has a prompt waiting at it or below it | it cannot expire |
| loses its last waiting prompt | it starts a fresh window |
| is open and its window has passed | it is to be closed, once |
| is a step that has not begun | it cannot expire: nobody works on it yet |

A frame only notes its time at its own card; a look hands the times on to the parents.
So a frame costs nothing, and a look walks the cards of the turn once.

Spec: Ruling E13; cases HC-43, HC-44, HC-46.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from cards.protocol.card_tree import Card
from cards.protocol.kinds import TRACKED_KINDS, CardKind

#: Milliseconds of silence after which a card of a kind is an orphan. Spec: Ruling E13.
DEFAULT_WINDOWS_MS: Final[Mapping[CardKind, int]] = {
    CardKind.TURN: 600_000,
    CardKind.AGENT: 600_000,
    CardKind.PLAN: 600_000,
    CardKind.MESSAGE: 300_000,
    CardKind.STEP: 300_000,
    CardKind.THINKING: 300_000,
    CardKind.TOOL: 120_000,
}


class Look(msgspec.Struct, frozen=True):
    """What a look at the cards of a turn found.

    Attributes:
        silent: Cards to be closed, children before parents.
        next_ms: The earliest moment at which another card could expire, one that is
            opened right after the look included; None when no kind ever does.
    """

    silent: list[Card]
    next_ms: int | None


def look(
    cards: Sequence[Card],
    *,
    windows_ms: Mapping[CardKind, int],
    waiting_at: Collection[str] = (),
    now_ms: int,
) -> Look:
    """Find the silent cards of a running turn.

    Args:
        cards: All cards of the turn, open and closed, in order of their adding, so
            that parents come before their children. Their `last_event_ms` is
            brought up to date.
        windows_ms: By kind; a kind that is absent or 0 never expires.
        waiting_at: Ids of the cards at which prompts wait. Whoever settles a prompt
            looks once before and once after it, so that the fresh window begins at
            that moment.
        now_ms: Unix time in milliseconds.

    Spec: Ruling E13.
    """
    by_id = {card.card_id: card for card in cards}
    waiting = frozenset(waiting_at)
    silent: list[Card] = []
    # A card that is opened from now on has its whole window before it.
    due = [now_ms + window_ms for window_ms in windows_ms.values() if window_ms]
    for card in reversed(cards):
        # A prompt that waits is a sign of life at every look.
        if card.card_id in waiting:
            card.last_event_ms = now_ms
        due_ms = _due_ms(card, windows_ms)
        if due_ms is not None and due_ms <= now_ms:
            silent.append(card)
            # Its close is an event like any other.
            card.last_event_ms = now_ms
        elif due_ms is not None:
            due.append(due_ms)
        parent = by_id.get(card.parent_card_id or "")
        if parent is not None:
            parent.last_event_ms = max(parent.last_event_ms, card.last_event_ms)
    return Look(silent, min(due, default=None))


def _due_ms(card: Card, windows_ms: Mapping[CardKind, int]) -> int | None:
    window_ms = windows_ms.get(card.kind, 0)
    is_at_work = card.is_open and not card.is_queued
    if not is_at_work or not window_ms or card.kind not in TRACKED_KINDS:
        return None
    return card.last_event_ms + window_ms
