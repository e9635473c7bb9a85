import pytest
from hypothesis import given

from cards.protocol.markdown_lines import LINE_LIMIT, Line, MarkdownLines
from tests.unit.cards.protocol.mention_texts import MARKDOWN, texts

CODE = Line()


def verdicts(text: str) -> list[Line | None]:
    lines = MarkdownLines()
    return [lines.read(line, is_whole=True) for line in text.split("\n")]


def shape(text: str) -> str:
    """Return a letter for each line: t text, c that goes on, s single, . no text."""
    letters = ""
    for line in verdicts(text):
        assert line is not None
        letters += (
            "."
            if line.text_at is None
            else "c"
            if line.is_continued
            else "s"
            if line.is_single
            else "t"
        )
    return letters


class TestRead:
    """Spec: CommonMark 0.31, 3 to 5."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a\nb\n\nc", "tc.t"),
            ("a\n    b", "tc"),
            ("a\n\n    b\n\n\tc", "t..." + "."),
            ("```\na\n```\nb", "...t"),
            ("````\n```\n````\nb", "...t"),
            ("~~~ `x`\na\n```\n~~~\nb", "....t"),
            ("``` `x`\na", "tc"),
            ("a\n```\nb", "t.."),
            ("# a\nb", "st"),
            ("#a\nb", "tc"),
            ("a\n# b\nc", "tst"),
            ("a\n===\nb", "t.t"),
            ("a\n---\nb", "t.t"),
            ("===\na", "tc"),
            ("***\na", ".t"),
            ("a\n* * *\nb", "t.t"),
            ("> a\n> b\nc\n\nd", "tcc.t"),
            ("> a\n>\n> b", "t.t"),
            ("> a\n\n> b", "t.t"),
            ("> a\n>> b", "tt"),
            ("> ```\n> a\nb", "..t"),
            ("- a\n- b\n  c\nd", "ttcc"),
            ("- a\n\n  b\n\nc", "t.t.t"),
            ("- a\n\n      b", "t.."),
            ("-     a", "."),
            ("-\n  a", ".t"),
            ("-\n\n      a", "..."),
            ("- ```\n  a\n  ```\n  b", "...t"),
            ("- ```\n  a\nb", "..t"),
            ("1. a\n2. b", "tt"),
            ("a\n1. b", "tt"),
            ("a\n1986. b", "tc"),
            ("a\n-\n", "t.."),
            ("a\n*\n", "tc."),
            ("> - a\n> - b\n>   c", "ttc"),
            ("| a | b |\n|---|:-:|\n| c | d |\ne\n\nf", "t.ss.t"),
            ("a | b\n--|--\nc | d\n# e\nf", "t.sst"),
            ("|---|\n|---|", "t."),
            ("\ta", "."),
            ("a\r\nb\r\n\r\nc", "tc.t"),
        ],
    )
    def test_tells_what_lines_are(self, text: str, expected: str) -> None:
        assert shape(text) == expected

    @pytest.mark.parametrize(
        ("line", "text_at"),
        [
            ("a", 0),
            ("   a", 3),
            ("> a", 2),
            (">a", 1),
            ("- 1.\t> a", 7),
            ("-\ta", 2),
            ("10) a b", 4),
            ("## a", 0),
        ],
    )
    def test_tells_where_the_text_begins(self, line: str, text_at: int) -> None:
        [verdict] = verdicts(line)

        assert verdict
        assert verdict.text_at == text_at

    @pytest.mark.parametrize(
        ("line", "label"),
        [
            ("[a]: b", "a"),
            ("[ A\tß ]: <b c> 'd'", "a ss"),
            ('   [a\\]b]: c "d"', "a\\]b"),
            ("[a]: b (c)  ", "a"),
            ("[a]: b c", ""),
            ("[a]:", ""),
            ("[a] : b", ""),
            ("[^1]: b", ""),
            ("[]: b", ""),
        ],
    )
    def test_tells_what_is_defined(self, line: str, label: str) -> None:
        """Spec: CommonMark 0.31, 4.7."""
        [verdict] = verdicts(line)

        assert verdict
        assert verdict.label == label
        assert (verdict.text_at is None) == bool(label)

    def test_takes_no_definition_within_a_paragraph(self) -> None:
        assert shape("a\n[b]: c") == "tc"

    @pytest.mark.parametrize(
        "line",
        [
            *("", " ", "  > ", "- ", "1", "12.", "1. ", "-", "--", "* *", "_"),
            *("#", "######", "`", "``", "```", "```x y", "~", "~~~ ", "=", "== "),
            *("|", "|--", ":", "[", "[a", "[a]", "[a]: b", "[a]: b 'c", "> [a"),
        ],
    )
    def test_waits_where_it_must(self, line: str) -> None:
        assert MarkdownLines().read(line, is_whole=False) is None

    @pytest.mark.parametrize(
        "line",
        [
            *("a", "  a", "> a", "- a", "1a", "1.a", "-a", "---a", "**a", "#a", "# "),
            *("``a", "~~a", "=a", "|a", "[a] ", "[a](", "[^", "[a]: b c", "```x`"),
        ],
    )
    def test_waits_nowhere_else(self, line: str) -> None:
        assert MarkdownLines().read(line, is_whole=False) is not None

    @pytest.mark.parametrize("piece", [" ", "> ", "- ", "1", "`", "~", "[", "|", "="])
    def test_waits_no_longer_than_its_limit(self, piece: str) -> None:
        line = piece * LINE_LIMIT

        assert MarkdownLines().read(line, is_whole=False) is not None

    @given(texts("a", *MARKDOWN))
    def test_never_takes_back_a_verdict(self, text: str) -> None:
        early, late = MarkdownLines(), MarkdownLines()

        for line in text.split("\n"):
            verdict = None
            for end in range(len(line) + 1):
                verdict = early.read(line[:end], is_whole=end == len(line))
                if verdict is not None:
                    break
            assert verdict == late.read(line, is_whole=True)
