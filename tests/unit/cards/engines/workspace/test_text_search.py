"""Hits with their neighbours."""

from cards.engines.workspace.limits import Limits
from cards.engines.workspace.text_search import TextSearch


def _search(pattern: str, text: str, **limits: int) -> TextSearch:
    search = TextSearch(pattern, Limits(**limits))
    search.look_into("f", text)
    return search


class TestTextSearch:
    def test_shows_two_lines_around_a_hit(self) -> None:
        search = _search("x", "a\nb\nc\nX\nd\ne\nf\n")

        assert search.output == ["f-2- b", "f-3- c", "f:4: X", "f-5- d", "f-6- e"]

    def test_shows_no_line_twice(self) -> None:
        search = _search("x", "x\na\nx\nb\nx\n")

        assert search.output == ["f:1: x", "f-2- a", "f:3: x", "f-4- b", "f:5: x"]

    def test_parts_what_does_not_touch(self) -> None:
        search = _search("x", "x\n1\n2\n3\n4\n5\nx\n")
        search.look_into("g", "x")

        assert search.output == [
            *("f:1: x", "f-2- 1", "f-3- 2"),
            *("--", "f-5- 4", "f-6- 5", "f:7: x"),
            *("--", "g:1: x"),
        ]

    def test_does_not_part_neighbours_that_touch(self) -> None:
        search = _search("x", "x\n1\n2\n3\n4\nx\n")

        assert "--" not in search.output

    def test_takes_the_pattern_literally(self) -> None:
        assert [hit.line for hit in _search("a.c", "abc\nA.C\n").hits] == ["A.C"]

    def test_stops_at_its_cap_and_knows_it(self) -> None:
        assert _search("x", "x\nx\nx\n", search_hits=2).is_full
        assert not _search("x", "x\nx\n", search_hits=2).is_full

    def test_cuts_long_lines(self) -> None:
        search = _search("x", "x" * 50, line_chars=10)

        assert search.output == [f"f:1: {'x' * 10}…"]
