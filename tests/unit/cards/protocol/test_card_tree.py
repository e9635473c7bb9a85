from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.protocol.card_tree import Card, CardTree
from cards.protocol.errors import LocalProtocolError
from cards.protocol.kinds import TRACKED_KINDS, CardKind, Channel

LEAVES = [
    CardKind.ARTIFACT,
    CardKind.MEMORY_OP,
    CardKind.BUDGET,
    CardKind.TODO,
    CardKind.TEAM,
    CardKind.SYSTEM,
]
INNER_KINDS = [kind for kind in CardKind if kind not in {*LEAVES, CardKind.TURN}]
UNTRACKED = [kind for kind in CardKind if kind not in TRACKED_KINDS]


class CountedCard(Card):
    """A card that counts how often anything of it is looked at.

    Attributes:
        looks: By all of them together.
    """

    looks = 0

    def __getattribute__(self, name: str) -> Any:
        CountedCard.looks += 1
        return super().__getattribute__(name)


def make_card(
    card_id: str,
    kind: CardKind,
    parent: str | None = None,
    *,
    agent_id: str = "main",
    is_open: bool = True,
    shape: type[Card] = Card,
) -> Card:
    return shape(
        card_id=card_id,
        kind=kind,
        parent_card_id=parent,
        agent_id=agent_id,
        agent_run_id=None,
        opened_ms=0,
        is_open=is_open,
    )


def grow(*cards: Card) -> CardTree:
    """Return a tree with a turn `turn_1` and these cards."""
    tree = CardTree()
    for card in (make_card("turn_1", CardKind.TURN), *cards):
        tree.add(card)
    return tree


def ids(cards: list[Card]) -> list[str]:
    return [card.card_id for card in cards]


class TestCard:
    """Spec: Ruling E13."""

    def test_was_last_heard_when_it_opened(self) -> None:
        card = Card(
            card_id="turn_1",
            kind=CardKind.TURN,
            parent_card_id=None,
            agent_id="main",
            agent_run_id=None,
            opened_ms=7,
        )

        assert card.last_event_ms == 7

    def test_may_have_been_heard_later(self) -> None:
        card = Card(
            card_id="turn_1",
            kind=CardKind.TURN,
            parent_card_id=None,
            agent_id="main",
            agent_run_id=None,
            opened_ms=7,
            last_event_ms=9,
        )

        assert card.last_event_ms == 9


class TestCards:
    def test_are_all_of_the_turn_in_order_of_their_adding(self) -> None:
        """Closed ones too, which hand refreshes on. Spec: Ruling E13."""
        message = make_card("msg_1", CardKind.MESSAGE, "turn_1")
        tree = grow(
            message,
            make_card("a", CardKind.TOOL, "msg_1"),
            make_card("b", CardKind.TODO, "turn_1"),
        )
        tree.close(message)

        assert ids(tree.cards) == ["turn_1", "msg_1", "a", "b"]

    def test_are_not_the_tree_itself(self) -> None:
        tree = grow()

        tree.cards.clear()

        assert ids(tree.cards) == ["turn_1"]

    def test_are_none_after_the_turn(self) -> None:
        tree = grow()
        tree.forget_turn()

        assert tree.cards == []


class TestIsFree:
    def test_is_true_of_an_id_that_no_card_had(self) -> None:
        assert CardTree().is_free("turn_1")

    def test_is_false_of_an_id_in_the_log(self) -> None:
        """Spec: Ruling E7."""
        assert not CardTree(["turn_1"]).is_free("turn_1")

    def test_is_false_of_a_card_that_was_added(self) -> None:
        """Spec: Ruling E7."""
        assert not grow().is_free("turn_1")

    def test_stays_false_after_the_turn(self) -> None:
        """A card id is used once per session. Spec: Ruling E7."""
        tree = grow()
        tree.forget_turn()

        assert not tree.is_free("turn_1")


class TestAdd:
    def test_takes_the_hierarchy_of_plan_mode(self) -> None:
        """Spec: EMIT 5, 10, 14.4."""
        tree = grow(
            make_card("msg_1", CardKind.MESSAGE, "turn_1"),
            make_card("tool_1", CardKind.TOOL, "msg_1"),
            make_card("sub_y", CardKind.AGENT, "tool_1", agent_id="sub_y"),
            make_card("plan_1", CardKind.PLAN, "sub_y", agent_id="sub_y"),
            make_card("step_1", CardKind.STEP, "plan_1", agent_id="sub_y"),
            make_card("sub_z", CardKind.AGENT, "step_1", agent_id="sub_z"),
            make_card("tool_2", CardKind.TOOL, "sub_z", agent_id="sub_z"),
        )

        found = tree.find("tool_2")
        assert found is not None
        assert found.parent_card_id == "sub_z"

    def test_refuses_an_id_that_was_used(self) -> None:
        """Spec: Ruling E7."""
        tree = CardTree(["turn_1"])

        with pytest.raises(LocalProtocolError, match="'turn_1' was used before"):
            tree.add(make_card("turn_1", CardKind.TURN))

    def test_refuses_an_id_of_the_same_turn(self) -> None:
        """Spec: Ruling E7."""
        tree = grow(make_card("msg_1", CardKind.MESSAGE, "turn_1"))

        with pytest.raises(LocalProtocolError, match="'msg_1' was used before"):
            tree.add(make_card("msg_1", CardKind.TOOL, "turn_1"))

    def test_keeps_the_id_of_a_refused_card_free(self) -> None:
        tree = CardTree()
        with pytest.raises(LocalProtocolError):
            tree.add(make_card("msg_1", CardKind.MESSAGE))

        assert tree.is_free("msg_1")
        assert tree.find("msg_1") is None

    def test_refuses_a_turn_with_a_parent(self) -> None:
        """Spec: EMIT 5."""
        with pytest.raises(LocalProtocolError, match="turn card has no parent"):
            grow().add(make_card("turn_2", CardKind.TURN, "turn_1"))

    @pytest.mark.parametrize(
        "kind",
        [kind for kind in CardKind if kind not in {CardKind.TURN, CardKind.SYSTEM}],
    )
    def test_refuses_any_other_card_without_a_parent(self, kind: CardKind) -> None:
        """Spec: EMIT 5."""
        with pytest.raises(LocalProtocolError, match=f"a {kind} card needs a parent"):
            grow().add(make_card("new", kind))

    def test_takes_a_system_card_without_a_parent(self) -> None:
        """Spec: EMIT 5."""
        tree = CardTree()

        tree.add(make_card("card_1", CardKind.SYSTEM))

        assert tree.find("card_1") is not None

    @pytest.mark.parametrize("parent", ["nobody", "msg_1"], ids=["unknown", "itself"])
    def test_refuses_a_parent_that_was_not_added_before(self, parent: str) -> None:
        """Spec: EMIT 5."""
        with pytest.raises(LocalProtocolError, match="not a card of the running turn"):
            grow().add(make_card("msg_1", CardKind.MESSAGE, parent))

    def test_refuses_a_parent_of_a_turn_that_ended(self) -> None:
        """Spec: EMIT 5."""
        tree = grow()
        tree.forget_turn()

        with pytest.raises(LocalProtocolError, match="not a card of the running turn"):
            tree.add(make_card("msg_1", CardKind.MESSAGE, "turn_1"))

    def test_takes_a_parent_that_is_closed(self) -> None:
        """A message closes before the tools that it calls. Spec: EMIT 14.2."""
        message = make_card("msg_1", CardKind.MESSAGE, "turn_1")
        tree = grow(message)
        tree.close(message)

        tree.add(make_card("tool_1", CardKind.TOOL, "msg_1"))

        assert tree.find("tool_1") is not None

    @pytest.mark.parametrize("leaf", LEAVES)
    def test_refuses_a_child_of_a_leaf(self, leaf: CardKind) -> None:
        """Spec: EMIT 5."""
        tree = grow(make_card("leaf", leaf, "turn_1"))

        with pytest.raises(LocalProtocolError, match=f"a {leaf} card has no children"):
            tree.add(make_card("tool_1", CardKind.TOOL, "leaf"))

    @pytest.mark.parametrize("kind", [k for k in INNER_KINDS if k != CardKind.PLAN])
    def test_refuses_a_step_outside_a_plan(self, kind: CardKind) -> None:
        """Spec: EMIT 5."""
        tree = CardTree()
        tree.adopt(make_card("parent", kind))

        with pytest.raises(LocalProtocolError, match="parent of a step is a plan"):
            tree.add(make_card("step_1", CardKind.STEP, "parent"))

    @pytest.mark.parametrize("agent_id", ["main", "sub_2"])
    def test_refuses_an_agent_under_another_id_than_its_own(
        self, agent_id: str
    ) -> None:
        """Spec: EMIT 3.2."""
        with pytest.raises(LocalProtocolError, match="agent_id of an agent"):
            grow().add(make_card("sub_1", CardKind.AGENT, "turn_1", agent_id=agent_id))

    @pytest.mark.parametrize(
        "agent_id", ["sub_1", "turn_1", ""], ids=["unknown", "no-agent", "empty"]
    )
    def test_refuses_a_card_of_an_agent_that_is_none(self, agent_id: str) -> None:
        """Spec: EMIT 3.2."""
        with pytest.raises(LocalProtocolError, match=f"no agent '{agent_id}'"):
            grow().add(make_card("t", CardKind.TOOL, "turn_1", agent_id=agent_id))


class TestAdopt:
    def test_makes_an_open_card_known(self) -> None:
        tree = CardTree()

        tree.adopt(make_card("turn_1", CardKind.TURN))
        tree.adopt(make_card("msg_1", CardKind.MESSAGE, "turn_1"))

        assert not tree.is_free("msg_1")
        assert ids(tree.open_below("turn_1")) == ["msg_1"]

    def test_leaves_a_closed_card_closed(self) -> None:
        tree = CardTree()

        tree.adopt(make_card("turn_1", CardKind.TURN))
        tree.adopt(make_card("msg_1", CardKind.MESSAGE, "turn_1", is_open=False))

        assert tree.open_below("turn_1") == []

    def test_never_counts_an_untracked_card_as_open(self) -> None:
        """Spec: Ruling E13."""
        tree = CardTree()

        tree.adopt(make_card("turn_1", CardKind.TURN))
        tree.adopt(make_card("todo_1", CardKind.TODO, "turn_1"))

        assert tree.open_below("turn_1") == []


class TestFind:
    def test_gives_none_for_an_unknown_card(self) -> None:
        assert CardTree().find("msg_1") is None

    def test_gives_a_closed_card(self) -> None:
        message = make_card("msg_1", CardKind.MESSAGE, "turn_1")
        tree = grow(message)
        tree.close(message)

        assert tree.find("msg_1") is message


LEGAL = {
    (CardKind.MESSAGE, Channel.TEXT),
    (CardKind.MESSAGE, Channel.TOOL_INPUT),
    (CardKind.THINKING, Channel.THINKING),
}
STREAMS = [(kind, channel) for kind in CardKind for channel in Channel]


class TestCheckAppend:
    @pytest.mark.parametrize(("kind", "channel"), sorted(LEGAL), ids=str)
    def test_takes_the_streams_of_a_kind(
        self, kind: CardKind, channel: Channel
    ) -> None:
        """Spec: EMIT 6.3."""
        card = make_card("c", kind, "turn_1")

        CardTree().check_append(card, channel)

        assert card.is_open

    @pytest.mark.parametrize(
        ("kind", "channel"), [each for each in STREAMS if each not in LEGAL], ids=str
    )
    def test_refuses_all_others(self, kind: CardKind, channel: Channel) -> None:
        """Spec: EMIT 6.3."""
        with pytest.raises(LocalProtocolError, match=f"{kind} card has no channel"):
            CardTree().check_append(make_card("c", kind), channel)


class TestClose:
    @pytest.mark.parametrize("kind", sorted(TRACKED_KINDS))
    def test_closes_an_open_card(self, kind: CardKind) -> None:
        """Spec: EMIT 6.5; Ruling E13."""
        card = make_card("c", kind)
        tree = CardTree()
        tree.adopt(card)

        assert tree.close(card)
        assert not card.is_open

    def test_tells_that_a_card_was_closed_before(self) -> None:
        """A card closes once. Spec: Ruling E12."""
        card = make_card("msg_1", CardKind.MESSAGE, "turn_1")
        tree = grow(card)
        tree.close(card)

        assert not tree.close(card)

    @pytest.mark.parametrize("kind", UNTRACKED)
    def test_refuses_a_kind_that_is_never_closed(self, kind: CardKind) -> None:
        """Spec: EMIT 10.9; Ruling E13."""
        card = make_card("leaf", kind, "turn_1")
        tree = grow(card)

        with pytest.raises(LocalProtocolError, match=f"a {kind} card is never closed"):
            tree.close(card)
        assert card.is_open


class TestOpenBelow:
    def test_gives_children_before_parents_and_later_siblings_first(self) -> None:
        """Spec: Ruling E10."""
        tree = grow(
            make_card("msg_1", CardKind.MESSAGE, "turn_1"),
            make_card("tool_1", CardKind.TOOL, "msg_1"),
            make_card("tool_2", CardKind.TOOL, "msg_1"),
            make_card("think_1", CardKind.THINKING, "turn_1"),
        )

        assert ids(tree.open_below("turn_1")) == [
            "think_1",
            "tool_2",
            "tool_1",
            "msg_1",
        ]

    def test_leaves_out_cards_that_hang_elsewhere(self) -> None:
        tree = grow(
            make_card("msg_1", CardKind.MESSAGE, "turn_1"),
            make_card("tool_1", CardKind.TOOL, "msg_1"),
            make_card("tool_2", CardKind.TOOL, "turn_1"),
        )

        assert ids(tree.open_below("msg_1")) == ["tool_1"]

    def test_leaves_out_closed_and_untracked_cards(self) -> None:
        """Spec: Rulings E10, E13."""
        closed = make_card("tool_1", CardKind.TOOL, "turn_1")
        tree = grow(closed, make_card("todo_1", CardKind.TODO, "turn_1"))
        tree.close(closed)

        assert tree.open_below("turn_1") == []

    def test_finds_an_open_card_below_a_closed_one(self) -> None:
        """Spec: Ruling E10."""
        message = make_card("msg_1", CardKind.MESSAGE, "turn_1")
        tree = grow(message, make_card("tool_1", CardKind.TOOL, "msg_1"))
        tree.close(message)

        assert ids(tree.open_below("turn_1")) == ["tool_1"]

    def test_gives_nothing_below_an_unknown_card(self) -> None:
        assert grow().open_below("nobody") == []

    def test_ends_at_a_parent_that_is_not_known(self) -> None:
        """An adopted card may hang under one of an older turn."""
        tree = grow()
        tree.adopt(make_card("tool_1", CardKind.TOOL, "gone"))

        assert tree.open_below("turn_1") == []

    def test_finds_what_was_adopted_before_its_parent(self) -> None:
        tree = CardTree()

        tree.adopt(make_card("tool_1", CardKind.TOOL, "msg_1"))
        tree.adopt(make_card("msg_1", CardKind.MESSAGE, "turn_1", is_open=False))

        assert ids(tree.open_below("turn_1")) == ["tool_1"]

    def test_finds_what_is_added_below_cards_that_are_all_closed(self) -> None:
        """Sub-agents may go on below what is closed. Spec: Ruling E10."""
        cards = [
            make_card("msg_1", CardKind.MESSAGE, "turn_1"),
            make_card("tool_1", CardKind.TOOL, "msg_1"),
            make_card("msg_2", CardKind.MESSAGE, "turn_1"),
        ]
        tree = grow(*cards)
        for each in cards[:2]:
            tree.close(each)
        assert ids(tree.open_below("turn_1")) == ["msg_2"]

        late = make_card("tool_2", CardKind.TOOL, "tool_1")
        tree.add(late)
        assert ids(tree.open_below("turn_1")) == ["tool_2", "msg_2"]

        tree.close(late)
        assert ids(tree.open_below("turn_1")) == ["msg_2"]

    @given(
        st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.booleans())),
    )
    def test_finds_what_a_walk_up_from_each_card_finds(
        self, steps: list[tuple[int, bool, bool]]
    ) -> None:
        """Whatever is added and closed in whatever order. Spec: Ruling E10."""
        tree = CardTree()
        cards = [make_card("turn_1", CardKind.TURN)]
        tree.add(cards[0])
        for number, is_close, is_tracked in steps:
            chosen = cards[number % len(cards)]
            if is_close and chosen.kind in TRACKED_KINDS:
                tree.close(chosen)
            elif not is_close and chosen.kind in TRACKED_KINDS:
                kind = CardKind.TOOL if is_tracked else CardKind.TODO
                cards.append(make_card(f"c{len(cards)}", kind, chosen.card_id))
                tree.add(cards[-1])

        for each in cards:
            assert tree.open_below(each.card_id) == [
                card
                for card in reversed(cards)
                if card.is_open
                and card.kind in TRACKED_KINDS
                and is_below(card, each, tree)
            ]


def is_below(card: Card, ancestor: Card, tree: CardTree) -> bool:
    while card.parent_card_id is not None:
        parent = tree.find(card.parent_card_id)
        assert parent is not None
        if parent is ancestor:
            return True
        card = parent
    return False


def counted(tree: CardTree, count: int, *, is_nested: bool) -> list[Card]:
    """Add tools that count the looks, under each other or all under the turn."""
    cards: list[Card] = []
    for number in range(count):
        parent = f"c{number - 1}" if is_nested and number else "turn_1"
        cards.append(make_card(f"c{number}", CardKind.TOOL, parent, shape=CountedCard))
        tree.add(cards[-1])
    CountedCard.looks = 0
    return cards


def looks_at_closing(count: int, *, is_nested: bool, from_above: bool) -> int:
    """Return how often cards are looked at while all of a turn are closed.

    Each is closed as a block does it: first what is open below it, then itself. From
    above, what is below stays open and closes after it.
    """
    tree = grow()
    cards = counted(tree, count, is_nested=is_nested)
    for each in cards if from_above else reversed(cards):
        if not from_above:
            assert tree.open_below(each.card_id) == []
        tree.close(each)
    assert tree.open_below("turn_1") == []
    return CountedCard.looks


class TestWork:
    """Closing many cards costs each card the same.

    Spec: issue "Liveness and ownership", Interrupt; Ruling E10.
    """

    @pytest.mark.parametrize("is_nested", [False, True], ids=["side-by-side", "nested"])
    @pytest.mark.parametrize("from_above", [False, True], ids=["below", "above"])
    def test_of_closing_grows_with_the_cards(
        self, is_nested: bool, from_above: bool
    ) -> None:
        few = looks_at_closing(100, is_nested=is_nested, from_above=from_above)
        many = looks_at_closing(1000, is_nested=is_nested, from_above=from_above)

        assert few >= 100
        assert many <= 11 * few

    def test_of_a_card_does_not_grow_with_those_above(self) -> None:
        looks = []
        for depth in (10, 500):
            tree = grow()
            counted(tree, depth, is_nested=True)
            last = make_card("last", CardKind.TOOL, f"c{depth - 1}", shape=CountedCard)
            CountedCard.looks = 0
            tree.add(last)
            tree.close(last)
            looks.append(CountedCard.looks)

        assert looks[0] == looks[1] > 0


class TestForgetTurn:
    def test_drops_every_card(self) -> None:
        tree = grow(make_card("msg_1", CardKind.MESSAGE, "turn_1"))

        tree.forget_turn()

        assert tree.find("msg_1") is None
        assert tree.open_below("turn_1") == []
