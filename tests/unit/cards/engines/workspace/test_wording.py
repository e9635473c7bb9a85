"""Chunks, sizes, titles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.engines.workspace.wording import (
    chunks_of,
    counted,
    in_code,
    sized,
    timed,
    title_of,
    unquoted,
)


class TestChunksOf:
    @given(st.text())
    def test_loses_nothing(self, text: str) -> None:
        chunks = chunks_of(text)

        assert "".join(chunks) == text
        assert all(chunks)

    def test_cuts_between_words(self) -> None:
        chunks = chunks_of("Let me look into the workspace.")

        assert chunks == ["Let me look ", "into the workspace."]


class TestTitleOf:
    @given(st.text())
    def test_is_one_short_line(self, text: str) -> None:
        title = title_of(text)

        assert len(title) <= 60
        assert "\n" not in title

    def test_cuts_between_words(self) -> None:
        assert title_of("word " * 20) == "word " * 10 + "word…"


class TestSized:
    @pytest.mark.parametrize(
        ("size", "text"),
        [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 * 1024**2, "3.0 MiB")],
    )
    def test_chooses_its_unit(self, size: int, text: str) -> None:
        assert sized(size) == text


def test_counted_agrees_in_number() -> None:
    assert counted(1, "file") == "1 file"
    assert counted(2000, "match", "matches") == "2,000 matches"


def test_timed_is_to_the_second() -> None:
    assert timed(0.9) == "1970-01-01 00:00:00 UTC"


@pytest.mark.parametrize(
    ("text", "bare"),
    [("`a b`", "a b"), ('"a"', "a"), ("'a' or 'b'", "'a' or 'b'"), ("'", "'")],
)
def test_unquoted_takes_off_one_pair(text: str, bare: str) -> None:
    assert unquoted(text) == bare


def test_in_code_holds_any_backticks() -> None:
    assert in_code("a") == "`a`"
    assert in_code("a`b``c") == "```a`b``c```"
    assert in_code("`") == "`` ` ``"
