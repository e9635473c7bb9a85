from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.protocol.throttle import Key, TickThrottle

KEY = ("tool_1", "progress")


class TestTickThrottle:
    def test_refuses_a_negative_interval(self) -> None:
        with pytest.raises(ValueError, match="-1"):
            TickThrottle[str](-1)


class TestOffer:
    def test_lets_the_first_tick_through(self) -> None:
        assert TickThrottle[str](250).offer(KEY, "a", now_ms=1000) == "a"

    def test_holds_a_tick_that_comes_too_early(self) -> None:
        """Spec: EMIT 6.4; Ruling E20."""
        throttle = TickThrottle[str](250)
        throttle.offer(KEY, "a", now_ms=1000)

        assert throttle.offer(KEY, "b", now_ms=1249) is None

    def test_lets_a_tick_through_when_the_interval_is_over(self) -> None:
        throttle = TickThrottle[str](250)
        throttle.offer(KEY, "a", now_ms=1000)

        assert throttle.offer(KEY, "b", now_ms=1250) == "b"

    def test_keeps_the_newest_of_those_that_wait(self) -> None:
        """Spec: Ruling E20."""
        throttle = TickThrottle[str](250)
        throttle.offer(KEY, "a", now_ms=1000)
        throttle.offer(KEY, "b", now_ms=1100)
        throttle.offer(KEY, "c", now_ms=1200)

        assert throttle.take(KEY, now_ms=1250) == "c"

    def test_forgets_an_older_waiting_tick_when_a_newer_one_goes_out(self) -> None:
        throttle = TickThrottle[str](250)
        throttle.offer(KEY, "a", now_ms=1000)
        throttle.offer(KEY, "b", now_ms=1100)
        throttle.offer(KEY, "c", now_ms=1300)

        assert throttle.take(KEY, now_ms=1300) is None

    @pytest.mark.parametrize(
        "other",
        [("tool_1", "heartbeat"), ("tool_2", "progress")],
        ids=["other-kind", "other-card"],
    )
    def test_counts_each_card_and_kind_by_itself(self, other: Key) -> None:
        """Spec: Ruling E20."""
        throttle = TickThrottle[str](250)
        throttle.offer(KEY, "a", now_ms=1000)

        assert throttle.offer(other, "b", now_ms=1000) == "b"

    def test_lets_everything_through_without_an_interval(self) -> None:
        throttle = TickThrottle[str](0)
        throttle.offer(KEY, "a", now_ms=1000)

        assert throttle.offer(KEY, "b", now_ms=1000) == "b"

    def test_holds_ticks_when_the_clock_goes_back(self) -> None:
        throttle = TickThrottle[str](250)
        throttle.offer(KEY, "a", now_ms=1000)

        assert throttle.offer(KEY, "b", now_ms=500) is None


class TestDueMs:
    def test_is_none_when_nothing_waits(self) -> None:
        throttle = TickThrottle[str](250)
        throttle.offer(KEY, "a", now_ms=1000)

        assert throttle.due_ms(KEY) is None

    def test_is_the_end_of_the_interval(self) -> None:
        throttle = TickThrottle[str](250)
        throttle.offer(KEY, "a", now_ms=1000)
        throttle.offer(KEY, "b", now_ms=1100)

        assert throttle.due_ms(KEY) == 1250


class TestTake:
    def test_gives_none_when_nothing_waits(self) -> None:
        assert TickThrottle[str](250).take(KEY, now_ms=1000) is None

    def test_gives_a_tick_once(self) -> None:
        throttle = TickThrottle[str](250)
        throttle.offer(KEY, "a", now_ms=1000)
        throttle.offer(KEY, "b", now_ms=1100)
        throttle.take(KEY, now_ms=1250)

        assert throttle.take(KEY, now_ms=1250) is None

    def test_starts_a_new_interval(self) -> None:
        throttle = TickThrottle[str](250)
        throttle.offer(KEY, "a", now_ms=1000)
        throttle.offer(KEY, "b", now_ms=1100)
        throttle.take(KEY, now_ms=1260)

        assert throttle.offer(KEY, "c", now_ms=1509) is None
        assert throttle.due_ms(KEY) == 1510


class TestDrain:
    def test_gives_the_waiting_ticks_of_every_kind(self) -> None:
        """The newest value is sent before the close. Spec: Ruling E20."""
        throttle = TickThrottle[str](250)
        for kind, tick in [("progress", "p"), ("heartbeat", "h"), ("progress", "q")]:
            throttle.offer(("tool_1", kind), tick, now_ms=1000)
        throttle.offer(("tool_1", "heartbeat"), "i", now_ms=1001)

        assert throttle.drain("tool_1") == ["q", "i"]

    def test_leaves_other_cards_alone(self) -> None:
        throttle = TickThrottle[str](250)
        throttle.offer(("tool_2", "progress"), "a", now_ms=1000)
        throttle.offer(("tool_2", "progress"), "b", now_ms=1001)

        assert throttle.drain("tool_1") == []
        assert throttle.take(("tool_2", "progress"), now_ms=1250) == "b"

    def test_forgets_the_card(self) -> None:
        throttle = TickThrottle[str](250)
        throttle.offer(KEY, "a", now_ms=1000)
        throttle.drain("tool_1")

        assert throttle.due_ms(KEY) is None
        assert throttle.offer(KEY, "b", now_ms=1001) == "b"


OFFERS = st.lists(
    st.tuples(
        st.sampled_from(["tool_1", "tool_2"]),
        st.sampled_from(["progress", "heartbeat"]),
        st.integers(0, 120),
    ),
    max_size=40,
)


class Run:
    """A throttle fed with offers; takes what is due before each one."""

    def __init__(self, offers: list[tuple[str, str, int]], interval_ms: int) -> None:
        self.throttle = TickThrottle[int](interval_ms)
        self.sent: dict[Key, list[tuple[int, int]]] = defaultdict(list)
        self.newest: dict[Key, int] = {}
        now_ms = 0
        for number, (card_id, kind, wait_ms) in enumerate(offers):
            now_ms += wait_ms
            key = (card_id, kind)
            due_ms = self.throttle.due_ms(key)
            if due_ms is not None and due_ms <= now_ms:
                self._note(key, due_ms, self.throttle.take(key, now_ms=due_ms))
            self._note(key, now_ms, self.throttle.offer(key, number, now_ms=now_ms))
            self.newest[key] = number

    def _note(self, key: Key, now_ms: int, tick: int | None) -> None:
        if tick is not None:
            self.sent[key].append((now_ms, tick))


class TestAnyRun:
    @given(OFFERS, st.integers(0, 300))
    def test_keeps_the_interval_between_ticks_of_a_key(
        self, offers: list[tuple[str, str, int]], interval_ms: int
    ) -> None:
        """Spec: EMIT 6.4; Ruling E20."""
        run = Run(offers, interval_ms)

        for sent in run.sent.values():
            times = [at_ms for at_ms, _ in sent]
            gaps = [after - at for at, after in pairwise(times)]
            assert all(gap >= interval_ms for gap in gaps)

    @given(OFFERS, st.integers(0, 300))
    def test_sends_ticks_in_their_order(
        self, offers: list[tuple[str, str, int]], interval_ms: int
    ) -> None:
        run = Run(offers, interval_ms)

        for sent in run.sent.values():
            numbers = [number for _, number in sent]
            assert numbers == sorted(set(numbers))

    @given(OFFERS, st.integers(0, 300))
    def test_never_loses_the_newest_tick(
        self, offers: list[tuple[str, str, int]], interval_ms: int
    ) -> None:
        """It was sent, or draining the card gives it. Spec: Ruling E20."""
        run = Run(offers, interval_ms)

        drained = run.throttle.drain("tool_1") + run.throttle.drain("tool_2")

        out = {number for sent in run.sent.values() for _, number in sent}
        assert set(run.newest.values()) <= out | set(drained)
        assert out.isdisjoint(drained)


class ComparedId(str):
    """An id that counts how often it is compared."""

    __slots__ = ()
    comparisons = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        ComparedId.comparisons += 1
        return str.__eq__(self, other)


class TestWork:
    def test_looks_at_the_keys_of_this_card_alone(self) -> None:
        """Thousands of cards may close together. Spec: Ruling E10."""
        throttle = TickThrottle[str](250)
        for number in range(1000):
            throttle.offer((f"tool_{number}", "progress"), "a", now_ms=0)
            throttle.offer((f"tool_{number}", "progress"), "b", now_ms=1)
        wanted = ComparedId("tool_700")

        assert throttle.drain(wanted) == ["b"]
        assert ComparedId.comparisons <= 10
