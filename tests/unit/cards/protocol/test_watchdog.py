"""Deadlines of silent cards.

Spec: Ruling E13; cases HC-43, HC-44, HC-46, FR-51, FR-55.
"""

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from cards.protocol.card_tree import Card
from cards.protocol.kinds import TRACKED_KINDS, CardKind
from cards.protocol.watchdog import DEFAULT_WINDOWS_MS, Look, look

MINUTE = 60_000


def card(
    card_id: str, parent: str | None = None, kind: CardKind = CardKind.TOOL, at: int = 0
) -> Card:
    return Card(
        card_id=card_id,
        kind=kind,
        parent_card_id=parent,
        agent_id="main",
        agent_run_id=None,
        opened_ms=at,
        last_event_ms=at,
    )


def chain() -> list[Card]:
    """A turn, a closed message in it, and what the message called."""
    cards = [
        card("turn", None, CardKind.TURN),
        card("message", "turn", CardKind.MESSAGE),
        card("agent", "message", CardKind.AGENT),
        card("tool", "agent", CardKind.TOOL),
    ]
    cards[1].is_open = False
    return cards


def silent(cards: list[Card], now_ms: int, *waiting_at: str) -> list[str]:
    found = look(
        cards, windows_ms=DEFAULT_WINDOWS_MS, waiting_at=waiting_at, now_ms=now_ms
    )
    return [each.card_id for each in found.silent]


class TestWindows:
    @pytest.mark.parametrize(
        ("kind", "minutes"),
        [
            (CardKind.TURN, 10),
            (CardKind.AGENT, 10),
            (CardKind.PLAN, 10),
            (CardKind.MESSAGE, 5),
            (CardKind.STEP, 5),
            (CardKind.THINKING, 5),
            (CardKind.TOOL, 2),
        ],
    )
    def test_are_those_of_the_ruling(self, kind: CardKind, minutes: int) -> None:
        cards = [card("one", None, kind)]

        assert silent(cards, minutes * MINUTE - 1) == []
        assert silent(cards, minutes * MINUTE) == ["one"]

    def test_cover_the_tracked_kinds_alone(self) -> None:
        """Case HC-46."""
        assert set(DEFAULT_WINDOWS_MS) == set(TRACKED_KINDS)
        for kind in set(CardKind) - TRACKED_KINDS:
            windows = dict.fromkeys(CardKind, 1)
            found = look([card("one", None, kind)], windows_ms=windows, now_ms=MINUTE)
            assert found.silent == []

    def test_of_0_never_pass(self) -> None:
        windows = {**DEFAULT_WINDOWS_MS, CardKind.TOOL: 0}

        assert look([card("one")], windows_ms=windows, now_ms=1 << 50).silent == []


class TestSignsOfLife:
    def test_refresh_all_above_through_closed_cards(self) -> None:
        """Case HC-43."""
        cards = chain()
        for now_ms in range(0, 15 * MINUTE + 1, 90_000):
            cards[-1].last_event_ms = now_ms
            assert silent(cards, now_ms) == []

        assert silent(cards, 17 * MINUTE - 1) == []
        assert silent(cards, 17 * MINUTE) == ["tool"]

    @pytest.mark.parametrize("kind", sorted(set(CardKind) - TRACKED_KINDS))
    def test_may_come_from_a_card_that_never_expires(self, kind: CardKind) -> None:
        cards = [*chain(), card("leaf", "tool", kind)]
        cards[-1].last_event_ms = 10 * MINUTE

        assert silent(cards, 12 * MINUTE - 1) == []
        assert silent(cards, 12 * MINUTE) == ["tool"]

    def test_close_children_before_parents(self) -> None:
        """Each close refreshes those above: one after the other, once. FR-55."""
        cards = chain()
        given_up = []
        for minute in (2, 12, 22, 32, 1000):
            found = look(
                cards, windows_ms=DEFAULT_WINDOWS_MS, now_ms=minute * MINUTE
            ).silent
            given_up += [each.card_id for each in found]
            for each in found:
                each.is_open = False

        assert given_up == ["tool", "agent", "turn"]

    def test_close_siblings_the_later_first(self) -> None:
        cards = [*chain(), card("other", "agent")]

        assert silent(cards, 2 * MINUTE) == ["other", "tool"]

    def test_are_not_missed_in_a_step_that_has_not_begun(self) -> None:
        """Spec: Ruling E19."""
        step = card("step", "turn", CardKind.STEP)
        step.is_queued = True
        cards = [chain()[0], step]
        assert silent(cards, 9 * MINUTE) == []

        step.is_queued, step.last_event_ms = False, 9 * MINUTE

        assert silent(cards, 14 * MINUTE - 1) == []
        assert silent(cards, 14 * MINUTE) == ["step"]

    def test_do_not_refresh_what_is_below(self) -> None:
        cards = chain()
        cards[0].last_event_ms = 9 * MINUTE

        assert silent(cards, 10 * MINUTE) == ["tool"]


class TestWaitingPrompts:
    def test_keep_all_above_alive(self) -> None:
        """Cases HC-44, FR-51."""
        assert silent(chain(), 120 * MINUTE, "tool") == []

    def test_keep_nothing_alive_beside_them(self) -> None:
        cards = [*chain(), card("other", "turn")]

        assert silent(cards, 120 * MINUTE, "agent") == ["other", "tool"]

    def test_leave_a_full_fresh_window_behind(self) -> None:
        """Case HC-44."""
        cards = chain()
        settled = 120 * MINUTE
        assert silent(cards, settled, "tool") == []

        assert silent(cards, settled + 2 * MINUTE - 1) == []
        assert silent(cards, settled + 2 * MINUTE) == ["tool"]

    def test_leave_a_full_fresh_window_to_every_card(self) -> None:
        """Case HC-44: the tool is done, and the others had theirs from the answer."""
        cards = chain()
        settled = 120 * MINUTE
        assert silent(cards, settled, "tool") == []
        cards[-1].is_open = False

        assert silent(cards, settled + 10 * MINUTE - 1) == []
        assert silent(cards, settled + 10 * MINUTE) == ["agent"]

    def test_count_each_by_itself(self) -> None:
        cards = [*chain(), card("other", "agent")]
        assert silent(cards, 60 * MINUTE, "tool", "other") == []

        assert silent(cards, 120 * MINUTE, "other") == ["tool"]

    def test_count_each_at_the_same_card(self) -> None:
        cards = chain()
        assert silent(cards, 60 * MINUTE, "tool", "tool") == []

        assert silent(cards, 120 * MINUTE, "tool") == []

    def test_need_not_wait_at_an_open_card(self) -> None:
        """The anchor of a prompt may be a message that is closed. Case HC-44."""
        cards = chain()[:2]

        assert silent(cards, 120 * MINUTE, "message") == []


class TestNextLook:
    def test_is_when_the_first_could_expire(self) -> None:
        found = look(chain(), windows_ms=DEFAULT_WINDOWS_MS, now_ms=MINUTE)

        assert found.next_ms == 2 * MINUTE

    def test_is_not_too_late_for_what_is_opened_meanwhile(self) -> None:
        found = look(chain()[:1], windows_ms=DEFAULT_WINDOWS_MS, now_ms=MINUTE)

        assert found.next_ms == 3 * MINUTE

    def test_does_not_wait_for_a_paused_card(self) -> None:
        windows = {CardKind.AGENT: 10 * MINUTE, CardKind.TURN: 3 * MINUTE}
        cards = [*chain(), card("other", "turn", CardKind.AGENT)]

        found = look(cards, windows_ms=windows, waiting_at=["tool"], now_ms=8 * MINUTE)

        assert found == Look([], 10 * MINUTE)

    def test_is_never_when_nothing_expires(self) -> None:
        windows = {CardKind.TOOL: 0}

        assert look(chain(), windows_ms=windows, now_ms=5) == Look([], None)


class CountedCard(Card):
    """A card that counts how often anything of it is looked at."""

    looks = 0

    def __getattribute__(self, name: str) -> Any:
        CountedCard.looks += 1
        return super().__getattribute__(name)


class TestWork:
    @pytest.mark.parametrize("is_nested", [False, True], ids=["side-by-side", "nested"])
    def test_of_a_look_grows_with_the_cards(self, is_nested: bool) -> None:
        """Also when all of them are silent. Spec: Ruling E13."""
        looks = []
        for count in (100, 1000):
            cards = [
                CountedCard(
                    card_id=str(number),
                    kind=CardKind.TOOL,
                    parent_card_id=str(number - 1 if is_nested else 0),
                    agent_id="main",
                    agent_run_id=None,
                    opened_ms=1,
                )
                for number in range(count)
            ]
            CountedCard.looks = 0
            look(cards, windows_ms=DEFAULT_WINDOWS_MS, now_ms=2 * MINUTE + 1)
            looks.append(CountedCard.looks)

        assert 0 < looks[1] <= 11 * looks[0]


numbers = st.integers(0, 99)
#: Where a card is added, and of which kind.
branches = st.tuples(numbers, st.sampled_from(sorted(set(CardKind) - {CardKind.TURN})))


class Eager(RuleBasedStateMachine):
    """A turn whose every event is told to all above it at once.

    It must find at each moment what the watchdog finds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.cards: list[Card] = []
        self.heard_ms: dict[str, int] = {}
        self.waiting_at: list[str] = []
        self.enter(None, CardKind.TURN)

    def enter(self, parent: str | None, kind: CardKind) -> None:
        new = card(str(len(self.cards)), parent, kind, self.now_ms)
        self.cards.append(new)
        self.hear(new.card_id)

    def at(self, number: int) -> Card:
        return self.cards[number % len(self.cards)]

    def above(self, card_id: str | None) -> list[str]:
        """Return the card and its ancestors."""
        found = []
        while card_id is not None:
            found.append(card_id)
            card_id = self.cards[int(card_id)].parent_card_id
        return found

    def hear(self, card_id: str) -> None:
        for each in self.above(card_id):
            self.heard_ms[each] = self.now_ms

    def look(self) -> Look:
        return look(
            self.cards,
            windows_ms=DEFAULT_WINDOWS_MS,
            waiting_at=self.waiting_at,
            now_ms=self.now_ms,
        )

    @rule(passed_ms=st.sampled_from([1, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE]))
    def let_time_pass(self, passed_ms: int) -> None:
        self.now_ms += passed_ms

    @initialize(branches=st.lists(branches, min_size=3, max_size=12))
    def grow(self, branches: list[tuple[int, CardKind]]) -> None:
        for branch in branches:
            self.add(branch)

    @rule(branch=branches)
    def add(self, branch: tuple[int, CardKind]) -> None:
        number, kind = branch
        parent = self.at(number)
        if parent.kind in TRACKED_KINDS:
            self.enter(parent.card_id, kind)

    @rule(number=numbers, is_close=st.booleans())
    def emit(self, number: int, is_close: bool) -> None:
        target = self.at(number)
        if target.is_open:
            target.is_open = not is_close or target.kind not in TRACKED_KINDS
            target.last_event_ms = self.now_ms
            self.hear(target.card_id)

    @rule(number=numbers)
    def ask(self, number: int) -> None:
        self.waiting_at.append(self.at(number).card_id)

    @rule(number=numbers)
    def answer(self, number: int) -> None:
        if self.waiting_at:
            self.compare()
            self.waiting_at.pop(number % len(self.waiting_at))

    @rule()
    def compare(self) -> None:
        for anchor in self.waiting_at:
            self.hear(anchor)
        silent, due = [], [self.now_ms + 2 * MINUTE]
        for each in reversed(self.cards):
            if not each.is_open or each.kind not in TRACKED_KINDS:
                continue
            due_ms = self.heard_ms[each.card_id] + DEFAULT_WINDOWS_MS[each.kind]
            if due_ms <= self.now_ms:
                silent.append(each.card_id)
                self.hear(each.card_id)
            else:
                due.append(due_ms)

        found = self.look()

        assert [each.card_id for each in found.silent] == silent
        assert found.next_ms == min(due)
        for each in found.silent:
            each.is_open = False


TestAgainstAnEagerModel = Eager.TestCase
