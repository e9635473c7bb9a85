"""The recent frames in memory."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from cards.log.tail import Tail


def listed(frames: Sequence[bytes]) -> list[bytes]:
    return list(frames)


class TestTail:
    def test_is_empty_behind_a_log(self) -> None:
        tail = Tail(7, listed)

        assert (tail.newest_seq, tail.oldest_seq) == (7, 8)
        assert tail.after(6) is None

    def test_gives_what_lies_beyond_a_cursor(self) -> None:
        tail = Tail(0, listed)
        tail.extend([b"1", b"2", b"3"])

        assert tail.after(0) == [b"1", b"2", b"3"]
        assert tail.after(2) == [b"3"]

    def test_joins_once_for_followers_in_step(self) -> None:
        tail = Tail(0, listed)
        tail.extend([b"1"])

        assert tail.after(0) is tail.after(0)

    def test_forgets_the_oldest_above_its_bound(self) -> None:
        tail = Tail(0, listed, max_bytes=10)
        tail.extend([b"x" * 4] * 3)

        assert tail.newest_seq == 3
        assert tail.after(0) is None
        assert tail.after(2) == [b"xxxx"]

    def test_keeps_one_frame_however_large(self) -> None:
        tail = Tail(0, listed, max_bytes=10)
        tail.extend([b"x" * 100])

        assert tail.after(0) == [b"x" * 100]

    @given(
        batches=st.lists(st.lists(st.binary(max_size=6), max_size=8), max_size=20),
        cursor=st.integers(min_value=0, max_value=60),
    )
    def test_never_gives_a_wrong_frame(
        self, batches: list[list[bytes]], cursor: int
    ) -> None:
        tail = Tail(0, listed, max_bytes=12)
        log: list[bytes] = []
        for batch in batches:
            tail.extend(batch)
            log.extend(batch)

        if cursor < len(log):
            assert tail.after(cursor) in (None, log[cursor:])
        assert tail.newest_seq == len(log)
