from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.protocol.mentions import SPAN_LIMIT, KnownArtifacts, MentionRewriter

REPORT = {"report.md": "art_s"}
LINK = "[report.md](artifact://art_s)"

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

TOKENS = [
    *NAMES,
    *(
        "art_1",
        "re",
        "port.md",
        "foo",
        "word",
        "看",
        "，",
        "é",
        "x",
        "\u0301",
        "\u200d",
    ),
    *("`", "``", "```", "~~~", "[", "]", "(", ")", "](", "![", "!", "\\", "'", '"'),
    *("](http://x/y)", "](artifact://art_1)", "](<x y> 'z')", "<", ">", "<a href=x>"),
    *("</a>", "<http://x/", "<b", "https://h/", "/", "www.", ".", "-", "_", "*", "@"),
    *(":", "://", "&amp;", "|", "\n", "\n\n", "\r\n", "    ", "  ", "\t", " ", " "),
    *("- ", "1. ", "> ", "# ", "---", "===", "[1]: ", "[report.md]: "),
]

texts = st.lists(st.sampled_from(TOKENS), max_size=24).map("".join)


def knowing(names: Mapping[str, str]) -> KnownArtifacts:
    known = KnownArtifacts()
    for name, artifact_id in names.items():
        known.learn(artifact_id, name)
    return known


KNOWN = knowing(NAMES)


def rewrite(chunks: Sequence[str], known: KnownArtifacts = KNOWN) -> str:
    rewriter = MentionRewriter(known)
    return "".join(map(rewriter.feed, chunks)) + rewriter.flush()


class TestTable:
    """Spec: Ruling E21; EMIT 13. Cases HC-48, HC-49."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("看 report.md 就好", f"看 {LINK} 就好"),
            ("报告report.md完成", f"报告{LINK}完成"),
            ("report.md?", f"{LINK}?"),
            ('"report.md"', f'"{LINK}"'),
            ("(report.md)", f"({LINK})"),
            ("**report.md**", f"**{LINK}**"),
            ("See report.md.", f"See {LINK}."),
            ("art_s", LINK),
        ],
    )
    def test_links_a_name_that_stands_apart(self, text: str, expected: str) -> None:
        assert rewrite([text], knowing(REPORT)) == expected

    @pytest.mark.parametrize(
        "text",
        [
            "[report.md](artifact://art_s)",
            "[report.md](https://x)",
            "![report.md](a.png)",
            "[见 report.md](https://x)",
            "https://h/?f=report.md",
            "a-report.md",
            "/srv/report.md",
            "report.mdx",
            "report.md.bak",
            "REPORT.MD",
            "`report.md`",
            "```\nreport.md\n```",
        ],
    )
    def test_leaves_alone_what_is_no_mention(self, text: str) -> None:
        assert rewrite([text], knowing(REPORT)) == text


class TestRewriting:
    @given(texts, st.data())
    def test_does_not_depend_on_the_split(self, text: str, data: st.DataObject) -> None:
        """Spec: Ruling E21."""
        cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=8).map(sorted))
        chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]

        assert rewrite(chunks) == rewrite([text]) == rewrite(list(text))

    @given(texts)
    def test_changes_nothing_when_done_again(self, text: str) -> None:
        """Sample f11."""
        assert rewrite([rewrite([text])]) == rewrite([text])

    @given(texts)
    def test_has_given_out_the_same_whatever_the_split(self, text: str) -> None:
        """So does what is learnt in between."""
        rewriter = MentionRewriter(KNOWN)

        assert "".join(map(rewriter.feed, text)) == MentionRewriter(KNOWN).feed(text)

    def test_holds_back_no_more_than_its_limit(self) -> None:
        rewriter = MentionRewriter(KNOWN)
        rewriter.feed("[")
        held = len("report.md" * SPAN_LIMIT) - len(
            rewriter.feed("report.md" * SPAN_LIMIT)
        )

        assert held <= 3 * SPAN_LIMIT
