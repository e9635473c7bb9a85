"""Which part of a file a client asks for. Spec: RFC 9110 14."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts.protocol.ranges import ByteRange, RangeUnsatisfiable, read_range


@pytest.mark.parametrize(
    ("header", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=2-4", 2, 4),
        ("bytes=2-", 2, 9),
        ("bytes=0-9", 0, 9),
        ("bytes=0-10", 0, 9),
        ("bytes=9-99999999999999999999999999", 9, 9),
        ("bytes=-1", 9, 9),
        ("bytes=-10", 0, 9),
        ("bytes=-11", 0, 9),
        ("BYTES = 3-5 ", 3, 5),
    ],
)
def test_one_range_is_read(header: str, first: int, last: int) -> None:
    assert read_range(header, 10) == ByteRange(first, last)


@pytest.mark.parametrize(
    "header",
    [
        *("", "bytes", "bytes=", "bytes=-", "bytes=1", "bytes=a-b", "bytes=5-4"),
        *("lines=0-1", "bytes=0-1,3-4", "bytes=--1", "bytes=+1-2", "bytes=1-2-3"),
        *("bytes=١-٢", "bytes=0x1-2", "bytes=" + "1" * 5000 + "-"),
    ],
)
def test_what_is_no_single_range_means_the_whole_file(header: str) -> None:
    assert read_range(header, 10) is None


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=10-20", "bytes=-0"])
def test_what_the_file_has_nothing_of_cannot_be_satisfied(header: str) -> None:
    with pytest.raises(RangeUnsatisfiable):
        read_range(header, 10)


def test_an_empty_file_has_no_first_byte() -> None:
    assert read_range("bytes=-5", 0) is None
    with pytest.raises(RangeUnsatisfiable):
        read_range("bytes=0-", 0)


@given(st.text(max_size=40), st.integers(0, 2**40))
def test_any_header_is_read_or_left(header: str, size_bytes: int) -> None:
    try:
        part = read_range(f"bytes={header}", size_bytes)
    except RangeUnsatisfiable:
        return
    assert part is None or 0 <= part.first <= part.last < size_bytes


@given(st.binary(min_size=1, max_size=50), st.integers(0, 60), st.integers(0, 60))
def test_ranges_side_by_side_are_the_whole(content: bytes, cut: int, end: int) -> None:
    """What is before a cut and what is from it on join to what is asked for."""
    size, cut = len(content), min(cut, len(content) - 1)

    def part(header: str) -> bytes:
        found = read_range(header, size)
        assert found is not None
        assert found.size_bytes == found.last - found.first + 1
        return content[found.first : found.last + 1]

    before = part(f"bytes=0-{cut - 1}") if cut else b""
    assert before + part(f"bytes={cut}-") == content
    assert part(f"bytes={cut}-{cut + end}") == content[cut : cut + end + 1]
    assert part(f"bytes=-{end + 1}") == content[-end - 1 :]
