"""The rewriter beside a reader who has the whole text and much time."""

import html
import re

from hypothesis import given
from markdown_it import MarkdownIt

from tests.unit.cards.protocol.mention_model import mentions_in
from tests.unit.cards.protocol.mention_texts import knowing, rewrite, texts

NAMES = {
    "report.md": "art1",
    "notes.md": "art2",
    "foo bar.md": "art3",
    "bar.md": "art4",
    "report": "art5",
    "foo": "art6",
    "报告.md": "art7",
    "é.txt": "art8",
    "x y": "art9",
}
KNOWN = knowing(NAMES)

PLAIN = [
    *NAMES,
    *("re", "port.md", "word", "看", "，", "é", "x", "y", "\u0301", "\u200d", "🏽"),
    *(" ", " ", " ", ".", ".", "-", "@", ":", "(", ")", "'", '"', "+", "=", "a", "\n"),
]
MARKS = [
    *("`", "``", "```\n", "[", "]", "](http://q)", "![", "<b>", "\n\n"),
    *("- ", "> ", "1. ", "# ", "    "),
]

READER = MarkdownIt("commonmark").disable("html_block")


def plain_parts(text: str) -> list[str]:
    """Return what of a text is shown outside of links and code."""
    shown = re.sub(r"<(a|code)\b.*?</\1>", "\0", READER.render(text), flags=re.DOTALL)
    return [html.unescape(part) for part in re.split(r"\0|<[^>]*>", shown)]


class TestRewriting:
    @given(texts(*PLAIN, "_", "/", "://", most=16))
    def test_finds_in_plain_text_what_a_slow_reader_finds(self, text: str) -> None:
        """Spec: Ruling E21."""
        text = f"w{text}".replace("\n\n", "\n")
        expected, place = "", 0
        for begin, name in mentions_in(text, NAMES):
            expected += f"{text[place:begin]}[{name}](artifact://{NAMES[name]})"
            place = begin + len(name)

        assert rewrite([text], KNOWN) == expected + text[place:]

    @given(texts(*PLAIN, *MARKS, most=12).filter(lambda text: "]:" not in text))
    def test_finds_as_many_beside_links_and_code(self, text: str) -> None:
        """Spec: Ruling E21; CommonMark 0.31."""
        expected = sum(len(mentions_in(part, NAMES)) for part in plain_parts(text))

        found = READER.render(rewrite([text], KNOWN)).count('<a href="artifact://art')
        assert found == expected
