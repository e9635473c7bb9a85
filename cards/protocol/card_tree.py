"""The legality of one session's cards: what may open, change and close.

The tree judges before a frame is made; what it refuses was never legal to send.

| rule | source |
|---|---|
| a card id is used once per session | Ruling E7 |
| a turn has no parent | EMIT 5 |
| any other card but `system` has a parent that was added before | EMIT 5 |
| a step's parent is a plan | EMIT 5 |
| leaves (artifact, memory_op, budget, todo, team, system) have no children | EMIT 5 |
| an agent's agent_id is its card id; every frame inside carries it | EMIT 3.2 |
| only tracked kinds are closed, each card once | EMIT 10.9; Ruling E12 |
| only message and thinking carry streams, each its own channels | EMIT 6.3 |

Spec: EMIT 3.2, 5, 6; Rulings E7, E10, E12.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from cards.protocol.errors import LocalProtocolError
from cards.protocol.hints import HINT_REGISTRY
from cards.protocol.ids import MAIN_AGENT
from cards.protocol.kinds import (
    CHANNELS_OF_KIND,
    TRACKED_KINDS,
    CardKind,
    Channel,
    Role,
)

_LEAVES = frozenset(
    {
        CardKind.ARTIFACT,
        CardKind.MEMORY_OP,
        CardKind.BUDGET,
        CardKind.TODO,
        CardKind.TEAM,
        CardKind.SYSTEM,
    }
)

#: Children of a card that has none.
_NO_CARDS: Final[Mapping[str, "Card"]] = {}


class Card(msgspec.Struct, kw_only=True, eq=False):
    """What the writer must remember of a card while frames may come for it.

    `is_open` is False once the card is closed. An untracked card stays open for
    `card.set` until its turn is dropped.
    """

    card_id: str
    kind: CardKind
    parent_card_id: str | None
    agent_id: str
    agent_run_id: str | None
    opened_ms: int
    is_open: bool = True
    #: Time of its newest frame, and of those below it once the watchdog has looked;
    #: the opening's when not given.
    last_event_ms: int = 0
    #: A step that has not begun yet. Spec: Ruling E19.
    is_queued: bool = False
    #: Its place in the order of adding, from 1; 0 before a tree has it.
    place: int = 0
    #: Streams and role of the kind, looked up once: a card may get thousands of
    #: frames, and hashing an enum costs more than comparing it.
    channels: tuple[Channel, ...] = ()
    role: Role = Role.WORKER

    def __post_init__(self) -> None:
        self.last_event_ms = self.last_event_ms or self.opened_ms
        self.channels = CHANNELS_OF_KIND.get(self.kind, ())
        # Whatever a sub-agent does is done by a worker.
        if self.agent_id == MAIN_AGENT:
            self.role = HINT_REGISTRY[self.kind].role


class CardTree:
    """The cards of one session, as far as frames may still come for them.

    Args:
        used_ids: Ids of all cards that the session's log already holds.
    """

    def __init__(self, used_ids: Iterable[str] = ()) -> None:
        self._used = set(used_ids)
        self._cards: dict[str, Card] = {}
        # Of each card those children that are open, or have something open below
        # them: neither ten thousand closed tools nor the whole turn may be walked
        # at each close.
        self._live: dict[str, dict[str, Card]] = {}

    def is_free(self, card_id: str) -> bool:
        """Tell whether no card of the session has had this id."""
        return card_id not in self._used

    def add(self, card: Card) -> None:
        """Enter a new card.

        Raises:
            LocalProtocolError: Its id is used, or its parent or agent is illegal.

        Spec: EMIT 3.2, 5; Ruling E7.
        """
        if not self.is_free(card.card_id):
            raise LocalProtocolError(f"card id {card.card_id!r} was used before")
        self._check_parent(card)
        self._check_agent(card)
        self._enter(card)

    def adopt(self, card: Card) -> None:
        """Enter a card that the log already holds, as it stands there."""
        self._enter(card)

    def _check_parent(self, card: Card) -> None:
        if card.parent_card_id is None:
            if card.kind not in (CardKind.TURN, CardKind.SYSTEM):
                raise LocalProtocolError(f"a {card.kind} card needs a parent")
            return
        if card.kind is CardKind.TURN:
            raise LocalProtocolError("a turn card has no parent")
        parent = self._cards.get(card.parent_card_id)
        if parent is None:
            raise LocalProtocolError(
                f"parent {card.parent_card_id!r} is not a card of the running turn"
            )
        if parent.kind in _LEAVES:
            raise LocalProtocolError(f"a {parent.kind} card has no children")
        if card.kind is CardKind.STEP and parent.kind is not CardKind.PLAN:
            raise LocalProtocolError("the parent of a step is a plan")

    def _check_agent(self, card: Card) -> None:
        if card.kind is CardKind.AGENT:
            if card.agent_id != card.card_id:
                raise LocalProtocolError("the agent_id of an agent is its card id")
            return
        if card.agent_id == MAIN_AGENT:
            return
        agent = self._cards.get(card.agent_id)
        if agent is None or agent.kind is not CardKind.AGENT:
            raise LocalProtocolError(f"no agent {card.agent_id!r} in the running turn")

    @property
    def cards(self) -> list[Card]:
        """The cards of the running turn in order of their adding, closed ones too."""
        return list(self._cards.values())

    def find(self, card_id: str) -> Card | None:
        """Return a card of the running turn, open or closed; None if unknown."""
        return self._cards.get(card_id)

    def check_append(self, card: Card, channel: Channel) -> None:
        """Refuse a stream that the card's kind does not carry.

        Raises:
            LocalProtocolError: The channel belongs to another kind.

        Spec: EMIT 6.3.
        """
        if channel not in card.channels:
            raise LocalProtocolError(f"a {card.kind} card has no channel {channel}")

    def close(self, card: Card) -> bool:
        """Mark a card closed; False when it was, and nothing may be sent.

        Raises:
            LocalProtocolError: Cards of this kind are never closed.

        Spec: EMIT 10.9; Ruling E12.
        """
        if card.kind not in TRACKED_KINDS:
            raise LocalProtocolError(f"a {card.kind} card is never closed")
        was_open, card.is_open = card.is_open, False
        self._hide_above(card)
        return was_open

    def open_below(self, card_id: str) -> list[Card]:
        """Return the open tracked cards below a card, children before parents.

        The card itself is not among them. Of two siblings the later added comes
        first. The work is that of the cards that are returned, and of closed ones
        between them.

        Spec: Ruling E10.
        """
        found: list[Card] = []
        walked = [self._live.get(card_id, _NO_CARDS)]
        while walked:
            for child in walked.pop().values():
                if _may_be_closed(child):
                    found.append(child)
                below = self._live.get(child.card_id)
                if below:
                    walked.append(below)
        # A parent was added before its children.
        found.sort(key=_place, reverse=True)
        return found

    def _enter(self, card: Card) -> None:
        self._used.add(card.card_id)
        self._cards[card.card_id] = card
        card.place = len(self._cards)
        if _may_be_closed(card) or card.card_id in self._live:
            self._show_above(card)

    def _show_above(self, card: Card) -> None:
        """Have all above an open card know that something is open below them."""
        child: Card | None = card
        while child is not None and child.parent_card_id is not None:
            siblings = self._live.setdefault(child.parent_card_id, {})
            if child.card_id in siblings:
                return
            siblings[child.card_id] = child
            child = self._cards.get(child.parent_card_id)

    def _hide_above(self, card: Card) -> None:
        """Have those above a closed card forget it, and what closed before it.

        Each closed card is passed once: by the last that closes below it.
        """
        child: Card | None = card
        while child is not None and child.parent_card_id is not None:
            if _may_be_closed(child) or child.card_id in self._live:
                return
            siblings = self._live.get(child.parent_card_id, {})
            siblings.pop(child.card_id, None)
            if siblings:
                return
            self._live.pop(child.parent_card_id, None)
            child = self._cards.get(child.parent_card_id)

    def forget_turn(self) -> None:
        """Drop what is remembered of the ended turn, except that ids are used.

        No frame may come for its untracked cards any more either. Spec: Ruling E10.
        """
        for card in self._cards.values():
            card.is_open = False
        self._cards.clear()
        self._live.clear()


def _may_be_closed(card: Card) -> bool:
    return card.is_open and card.kind in TRACKED_KINDS


def _place(card: Card) -> int:
    return card.place
