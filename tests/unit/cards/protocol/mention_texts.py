"""Names, and texts made of what is special to them or to Markdown."""

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from cards.protocol.mentions import KnownArtifacts, MentionRewriter

#: Of all kinds: with spaces, brackets, other alphabets, one within another.
NAMES = {
    "report.md": "art_1",
    "report": "art_2",
    "annual-report.md": "art_3",
    "foo bar.md": "art_4",
    "bar.md": "art_5",
    "a[b].md": "art_6",
    "报告.md": "art_7",
    "é.txt": "art_8",
    "😀.png": "art_9",
    "_x_.md": "art_10",
    "wow!": "art_11",
    "r`s.md": "art_12",
}

MARKDOWN = [
    *("`", "``", "```", "~~~", "[", "]", "(", ")", "](", "![", "!", "\\", "'", '"'),
    *("](http://x/y)", "](artifact://art_1)", "](<x y> 'z')", "][", "[]", "<", ">"),
    *("<a href=x>", "</a>", "<code>", "<http://x/", "<b", "<!--", "-->", "-", "_"),
    *("https://h/", "/", "www.", ".", "*", "@", ":", "://", "&amp;", "|", "|--|\n"),
    *("\n", "\n", "\n\n", "\r\n", "    ", "  ", "\t", " ", " ", " ", "- ", "1. "),
    *("2) ", "> ", "# ", "---", "===", "***", "[1]: ", "[report.md]: "),
]

WORDS = ["re", "port.md", "foo", "word", "看", "，", "é", "x", "\u0301", "\u200d", "🏽"]


def texts(*tokens: str, most: int = 24) -> st.SearchStrategy[str]:
    """Return texts of up to so many tokens."""
    return st.lists(st.sampled_from(tokens), max_size=most).map("".join)


def knowing(names: Mapping[str, str]) -> KnownArtifacts:
    """Return artifacts, given as ids by name."""
    known = KnownArtifacts()
    for name, artifact_id in names.items():
        known.learn(artifact_id, name)
    return known


def rewrite(chunks: Sequence[str], known: KnownArtifacts) -> str:
    """Return all that comes out for the chunks of a text."""
    rewriter = MentionRewriter(known)
    return "".join(map(rewriter.feed, chunks)) + rewriter.flush()


def split(text: str, places: Sequence[int]) -> list[str]:
    """Cut a text at places of it, in any order."""
    cuts = sorted(place % (len(text) + 1) for place in places)
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
