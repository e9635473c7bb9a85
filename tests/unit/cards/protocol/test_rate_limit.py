"""How many messages may come in a minute."""

from hypothesis import given
from hypothesis import strategies as st

from cards.protocol.rate_limit import SPAN_S, RateLimit


class TestRateLimit:
    def test_admits_so_many_in_a_minute(self) -> None:
        limit = RateLimit(2)

        assert [limit.admit(at) for at in (0, 10, 20)] == [0, 0, 40_000]
        assert limit.admit(SPAN_S) == 0
        assert limit.admit(SPAN_S + 1) == 9_000

    def test_is_idle_a_minute_after_the_last(self) -> None:
        limit = RateLimit(1)
        limit.admit(5)

        assert not limit.is_idle(64)
        assert limit.is_idle(65)

    @given(st.integers(1, 5), st.lists(st.floats(0, 40), max_size=60))
    def test_never_admits_more_and_always_says_when(
        self, most: int, waits: list[float]
    ) -> None:
        limit = RateLimit(most)
        now, admitted = 0.0, []
        for wait in waits:
            now += wait
            wait_ms = limit.admit(now)
            if wait_ms == 0:
                admitted.append(now)
            else:
                assert 0 < wait_ms <= SPAN_S * 1000
        for start in admitted:
            assert sum(start <= at < start + SPAN_S for at in admitted) <= most
