from collections.abc import Callable

import pytest

from cards.protocol.markdown_spans import PENDING, read_angle, read_label, read_target

Read = Callable[[str, int, int], int | None]


def verdict(read: Read, text: str) -> int | None:
    """Read a span behind something else, and before what does not belong to it."""
    found = read(f"xy{text}) > ]", 2, 2 + len(text))
    return found if found is None or found == PENDING else found - 2


def check(read: Read, span: str) -> None:
    """Check a span, and that each beginning of it may become one."""
    assert verdict(read, span) == verdict(read, f"{span} x") == len(span)
    for end in range(1, len(span)):
        assert verdict(read, span[:end]) == PENDING


class TestReadTarget:
    """Spec: CommonMark 0.31, 6.3."""

    @pytest.mark.parametrize(
        "span",
        [
            "()",
            "(a)",
            "( a\n)",
            "(a(b)(c(d)))",
            "(a\\)\\()",
            "(<a b> )",
            "(<a\\>b>)",
            '(a "b")',
            "(a 'b\"\\'' )",
            "(a (b\\)c))",
            "(\\\\)",
            "(<>)",
        ],
    )
    def test_reads_a_target(self, span: str) -> None:
        check(read_target, span)

    @pytest.mark.parametrize(
        "text",
        [
            "(a b",
            "(a(b ",
            "(a \x01",
            "(a\\ b",
            "(<a\n",
            "(<a<",
            "(<a>b",
            '(<a>"b',
            '(a "b" c',
            "(a (b(",
            "(" + "(" * 17,
            "(" + "()" * 17,
        ],
    )
    def test_reads_nothing_else(self, text: str) -> None:
        assert verdict(read_target, text) is None


class TestReadLabel:
    """Spec: CommonMark 0.31, 6.3."""

    @pytest.mark.parametrize("span", ["[]", "[a b]", "[a\\]b]", "[a\\\\]"])
    def test_reads_a_label(self, span: str) -> None:
        check(read_label, span)

    def test_reads_no_label_within_another(self) -> None:
        assert verdict(read_label, "[a[") is None


class TestReadAngle:
    """Spec: CommonMark 0.31, 6.5 and 6.6."""

    @pytest.mark.parametrize(
        "span",
        [
            "<http://a(b>",
            "<a+b-c.d:>",
            "<a.b@c-d.e>",
            "<a>",
            "<a/>",
            "<br />",
            "</a >",
            "<a b>",
            "<a b=c d = 'e>' f=\"g\n>\" h>",
            "<a\nb:c.d=e/f />",
            "<!-- a > b -- c -->",
            "<!---->",
            "<!DOCTYPE html>",
        ],
    )
    def test_reads_links_tags_and_comments(self, span: str) -> None:
        check(read_angle, span)

    @pytest.mark.parametrize(
        "text",
        [
            *("< ", "<1 ", "<a.b ", "<a, ", "<a b, ", "<a b=`", "<a b='c'd", "</ "),
            *("</a b", "<a:b ", "<a /x", "<!", "<!-a", "<!1", "<?", "<a:<", "<a@b@"),
        ],
    )
    def test_reads_nothing_else(self, text: str) -> None:
        assert verdict(read_angle, f"{text}\n") is None
