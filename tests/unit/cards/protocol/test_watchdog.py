"""Deadlines of silent cards.

Spec: Ruling E13; cases HC-43, HC-44, HC-46, FR-51.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
        for minute in range(1, 16):
            cards[-1].last_event_ms = minute * MINUTE
            assert silent(cards, minute * MINUTE) == []

        assert silent(cards, 17 * MINUTE) == ["tool"]

    def test_close_children_before_parents(self) -> None:
        assert silent(chain(), 60 * MINUTE) == ["tool", "agent", "turn"]

    def test_do_not_refresh_what_is_below(self) -> None:
        cards = chain()
        cards[0].last_event_ms = 9 * MINUTE

        assert silent(cards, 10 * MINUTE) == ["tool", "agent"]

    def test_do_not_include_being_given_up(self) -> None:
        """A turn is not kept alive by its cards' being closed as orphans."""
        cards = chain()
        for each in look(
            cards, windows_ms=DEFAULT_WINDOWS_MS, now_ms=2 * MINUTE
        ).silent:
            each.is_open = False

        assert silent(cards, 10 * MINUTE) == ["agent", "turn"]


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
        assert silent(cards, settled + 10 * MINUTE - 1) == ["tool"]
        assert silent(cards, settled + 10 * MINUTE) == ["tool", "agent", "turn"]

    def test_count_each_by_itself(self) -> None:
        cards = [*chain(), card("other", "agent")]
        assert silent(cards, 60 * MINUTE, "tool", "other") == []

        assert silent(cards, 120 * MINUTE, "other") == ["tool"]


class TestNextLook:
    def test_is_when_the_first_could_expire(self) -> None:
        found = look(chain(), windows_ms=DEFAULT_WINDOWS_MS, now_ms=MINUTE)

        assert found.next_ms == 2 * MINUTE

    def test_is_not_too_late_for_what_is_opened_meanwhile(self) -> None:
        found = look(chain()[:1], windows_ms=DEFAULT_WINDOWS_MS, now_ms=MINUTE)

        assert found.next_ms == 3 * MINUTE

    def test_is_never_when_nothing_expires(self) -> None:
        windows = {CardKind.TOOL: 0}

        assert look(chain(), windows_ms=windows, now_ms=5) == Look([], None)


@dataclass
class Eager:
    """The same rules, walked upwards at every event."""

    parents: dict[str, str | None] = field(default_factory=dict)
    kinds: dict[str, CardKind] = field(default_factory=dict)
    heard: dict[str, int] = field(default_factory=dict)
    is_open: dict[str, bool] = field(default_factory=dict)

    def above(self, card_id: str | None) -> list[str]:
        found = []
        while card_id is not None:
            found.append(card_id)
            card_id = self.parents[card_id]
        return found

    def event(self, card_id: str, now_ms: int) -> None:
        for each in self.above(card_id):
            self.heard[each] = max(self.heard[each], now_ms)

    def silent(self, waiting_at: set[str], now_ms: int) -> set[str]:
        paused = {each for anchor in waiting_at for each in self.above(anchor)}
        for each in paused:
            self.heard[each] = now_ms
        return {
            each
            for each, kind in self.kinds.items()
            if self.is_open[each]
            and each not in paused
            and self.heard[each] + DEFAULT_WINDOWS_MS[kind] <= now_ms
        }


steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "event", "close", "wait", "settle", "look"]),
        st.integers(0, 7),
        st.sampled_from(sorted(TRACKED_KINDS)),
        st.integers(0, 4 * MINUTE),
    ),
    max_size=60,
)


class TestAgainstAnEagerModel:
    @given(steps)
    def test_finds_the_same(self, steps: list[tuple[str, int, CardKind, int]]) -> None:
        cards = [card("0", None, CardKind.TURN)]
        model = Eager({"0": None}, {"0": CardKind.TURN}, {"0": 0}, {"0": True})
        waiting: set[str] = set()
        now_ms = 0
        for action, number, kind, passed_ms in steps:
            now_ms += passed_ms
            target = cards[number % len(cards)]
            if action == "add":
                new = card(str(len(cards)), target.card_id, kind, now_ms)
                cards.append(new)
                model.parents[new.card_id] = target.card_id
                model.kinds[new.card_id] = kind
                model.heard[new.card_id] = now_ms
                model.is_open[new.card_id] = True
                model.event(new.card_id, now_ms)
            elif action in {"event", "close"}:
                target.last_event_ms = now_ms
                model.event(target.card_id, now_ms)
                if action == "close":
                    target.is_open = model.is_open[target.card_id] = False
            elif action == "wait":
                waiting.add(target.card_id)
            else:
                found = look(
                    cards,
                    windows_ms=DEFAULT_WINDOWS_MS,
                    waiting_at=waiting,
                    now_ms=now_ms,
                )
                ids = [each.card_id for each in found.silent]
                assert set(ids) == model.silent(waiting, now_ms)
                assert ids == sorted(ids, key=int, reverse=True)
                assert found.next_ms is not None
                assert now_ms < found.next_ms <= now_ms + 2 * MINUTE
                if action == "settle":
                    waiting.discard(target.card_id)
