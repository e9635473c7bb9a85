from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.protocol.name_sieve import NameSieve
from tests.unit.cards.protocol.mention_texts import MARKDOWN, NAMES, WORDS, texts

#: More first characters than are told apart, and more seconds of one of them.
MANY = [chr(0x4E00 + n) for n in range(300)]
MANY_SECONDS = [f"q{chr(0x61 + n)}{n}" for n in range(20)]

FORMS = [
    *(*NAMES, "Dockerfile", "README", "q", "foo bar baz", "实验 记录", ".env", "[x]y"),
    *("_a b", "!x", "a.b", "/x", "\\x"),
]


def sieve_of(forms: Sequence[str]) -> NameSieve:
    sieve = NameSieve()
    for form in forms:
        sieve.add(form)
    return sieve


class TestIsQuiet:
    @pytest.mark.parametrize(
        "chunk",
        [
            *("lorem ipsum", "a word. ", "", " ", "3.", "Well! ", "x]", "see: (a)"),
            *("foo", "food bar", "rested", "re po", "看见", "Dock er", "barn."),
        ],
    )
    def test_lets_pass_what_names_nothing(self, chunk: str) -> None:
        assert sieve_of(["report.md", "Dockerfile", "x y"]).is_quiet(chunk)

    @pytest.mark.parametrize(
        "chunk",
        [
            *("a\n", "`", "[", "<", "\\", "/", "Well!", "r", "see (r", "report", "x y"),
            *("see report.md now", "a Dockerfile b", "x ", "Dock", "看report", "x.y"),
        ],
    )
    def test_stops_at_what_may(self, chunk: str) -> None:
        assert not sieve_of(["report.md", "Dockerfile", "x y"]).is_quiet(chunk)

    @given(
        st.lists(st.sampled_from(FORMS), min_size=1, max_size=6),
        texts(*FORMS, *WORDS, *MARKDOWN, most=4),
        texts(*FORMS, *WORDS, *MARKDOWN, most=4),
        st.integers(1, 12),
    )
    def test_stops_at_each_name_and_its_beginning(
        self, forms: list[str], before: str, after: str, length: int
    ) -> None:
        sieve = sieve_of(forms)

        for form in forms:
            if not before or not before[-1].isalnum():
                assert not sieve.is_quiet(f"{before}{form}{after}")
                assert not sieve.is_quiet(f"{before}{form[:length]}")

    @pytest.mark.parametrize("forms", [MANY, MANY_SECONDS], ids=["firsts", "seconds"])
    def test_stops_at_each_of_very_many(self, forms: list[str]) -> None:
        sieve = sieve_of(forms)

        assert all(not sieve.is_quiet(f"see {form} and") for form in forms)
        assert all(sieve.beginnings.search(f"see {form}") for form in forms)
        assert sieve.is_quiet("see this and")

    def test_knows_nothing_at_first(self) -> None:
        sieve = NameSieve()

        assert sieve.is_quiet("report.md")
        assert not sieve.is_quiet("`")
        assert not sieve.beginnings.search("report.md")


class TestMayBegin:
    @pytest.mark.parametrize(
        "text", ["report.md", "re", "report\\.md", "r\\", "repor!"]
    )
    def test_tells_what_may_become_a_name(self, text: str) -> None:
        is_one = not text.endswith("!")

        assert sieve_of(["report.md"]).may_begin(text, 0, len(text)) == is_one

    def test_looks_at_less_of_all_when_a_short_name_comes(self) -> None:
        sieve = sieve_of(["report.md", "ab"])

        assert sieve.may_begin("rest", 0, 4)
        assert sieve.may_begin("abc", 0, 3)
        assert not sieve.may_begin("act", 0, 3)

    @given(
        st.lists(st.sampled_from(FORMS), min_size=1, max_size=6),
        texts(*FORMS, *WORDS, most=4),
    )
    def test_is_so_wherever_a_name_is(self, forms: list[str], text: str) -> None:
        sieve = sieve_of(forms)

        for place in range(len(text)):
            if text.startswith(tuple(forms), place):
                assert sieve.may_begin(text, place, len(text))
