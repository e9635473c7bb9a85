import re
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from cards.protocol.mentions import SPAN_LIMIT, KnownArtifacts, MentionRewriter
from tests.unit.cards.protocol.mention_texts import (
    MARKDOWN,
    NAMES,
    WORDS,
    knowing,
    rewrite,
    split,
    texts,
)

REPORT = {"report.md": "art_s"}
LINK = "[report.md](artifact://art_s)"

any_text = texts(*NAMES, "art_1", *WORDS, *MARKDOWN)
places = st.lists(st.integers(0, 200), max_size=8)

KNOWN = knowing(NAMES)


def rewritten(text: str, names: dict[str, str] = REPORT) -> str:
    """Return what comes out whole, and the same character by character."""
    whole = rewrite([text], knowing(names))
    assert rewrite(list(text), knowing(names)) == whole
    assert rewrite([whole], knowing(names)) == whole
    return whole


class TestMention:
    """Spec: EMIT 13; Ruling E21. Case HC-48; emit-tables 8 with its defects mended."""

    @pytest.mark.parametrize(
        "text",
        [
            "看 {} 就好",
            "报告{}完成",
            "（{}）",
            "{}を開く",
            "{}를 열다",
            "先看 {}，再看 {}，最后 {}",
            "{}?",
            '"{}"',
            "({})",
            "**{}**",
            "*{}*",
            "_{}_",
            "__{}__",
            "~~{}~~",
            "_see {}_",
            "See {}.",
            "See {}...",
            "...{}",
            "{}: done",
            "{}, {}; {}\n{}",
            "{}'s",
            "{} - done",
            "one--{}--two",
            "A line\n{}\n",
            "- {}\n1. {}\n> {}\n# {}",
            "| {} | {} |\n|---|---|\n| {} | {} |",
            "- one\n\n     {}\n",
            "<{}>",
            "1 < 2 and {}",
            "a / {}",
            "和/或{}",
            "{}\u3000{}\xa0{}",
            "😀{}😀",
            "$x = {}$",
            "@{}",
            "{}\\\n{}",
        ],
    )
    def test_is_a_name_that_stands_apart(self, text: str) -> None:
        plain = text.replace("{}", "report.md")

        assert rewritten(plain) == text.replace("{}", LINK)

    @pytest.mark.parametrize(
        "text",
        [
            "a-report.md",
            "my_report.md",
            "annual.report.md",
            ".report.md",
            "_report.md",
            "report.mdx",
            "report.md2",
            "report.md.bak",
            "report.md-old",
            "report.md_old",
            "report.md\\_old",
            "/srv/report.md",
            "./report.md",
            "report.md/x",
            "C:\\srv\\report.md",
            "report.md\\x",
            "éreport.md",
            "xreport.md",
            "report.md\u0301",
            "report.md\ufe0f",
            "\u200dreport.md",
            "me@report.md",
            "report.md@example.org",
            "REPORT.MD",
            "report.m",
        ],
    )
    def test_is_no_part_of_a_word_a_path_or_an_address(self, text: str) -> None:
        assert rewritten(text) == text
        assert rewritten(f"看 {text} 就好") == f"看 {text} 就好"

    @pytest.mark.parametrize(
        "text",
        [
            LINK,
            "[report.md](https://x)",
            "![report.md](a.png)",
            "[![report.md](a.png) report.md](https://x)",
            "[见 report.md](https://x)",
            '[x](<report.md> "report.md")',
            "[x](a\\)report.md)",
            "[report.md]()",
            "[report.md][1]",
            "[report.md][]",
            "[1]: report.md 'report.md'\n",
            "[report.md]: https://x\n[report.md]",
            "`report.md`",
            "`` ` report.md``",
            "a `b\nreport.md` c",
            "```\nreport.md\n```",
            "```report.md",
            "~~~ report.md\nreport.md",
            "> ```\n> report.md",
            "1. x\n   ```\n   report.md\n   ```",
            "    report.md",
            "x\n\n\treport.md",
            "https://h/?f=report.md",
            "https://h/a(report.md",
            "see https://report.md.",
            "h/a=report.md",
            "artifact://report.md",
            "report.md://x",
            "<https://h/?f=report.md>",
            "<me+report.md@h.org>",
            '<img src="report.md">',
            "<a href=x>report.md</a>",
            "<code>report.md",
            "<!-- report.md -->",
        ],
    )
    def test_is_not_in_links_code_or_addresses(self, text: str) -> None:
        assert rewritten(text) == text

    @pytest.mark.parametrize(
        "text",
        [
            "`{}",
            "`` {}`",
            "`{}\n\n`",
            "- `{}\n- `{}",
            "[{}",
            "[{}] is",
            "[{}](x y)",
            "[see {}](x\n\n)",
            "[x](y) {}",
            "![{}]",
            "[a {} [x](y) b](z)",
            "\\[{}](x)",
            "\\`{}`",
            "[{}\\](x)",
            "```\nx\n```\n{}",
            "``` `\n{}",
            "> ```\n{}",
            "x\n    {}",
            "- x\n\n    {}",
            "https://h/x {}",
            "https://h/x，{}",
            "<a href=x>x</a> {}",
            "<b {}",
            "<a href=x>\n\n{}",
            "[^1]: {}",
            "[1]: x {}",
            "[1]: x\n{}",
        ],
    )
    def test_is_beside_them(self, text: str) -> None:
        plain = text.replace("{}", "report.md")

        assert rewritten(plain) == text.replace("{}", LINK)

    def test_may_be_an_id(self) -> None:
        """A reader is shown the name. Spec: EMIT 13."""
        assert rewritten("见 art_s。") == f"见 {LINK}。"

    def test_may_have_escapes(self) -> None:
        known = {"my_report.md": "art_1"}
        link = "[my_report.md](artifact://art_1)"

        assert rewritten("my\\_report\\.md", known) == link
        assert rewritten("my\\_report.md art\\_1", known) == f"{link} {link}"

    def test_may_be_decomposed(self) -> None:
        link = "[é.txt](artifact://art_1)"

        assert rewritten("e\u0301.txt é.txt", {"é.txt": "art_1"}) == f"{link} {link}"

    def test_takes_the_longest_name(self) -> None:
        """Case HC-49."""
        known = {"report.md": "art_1", "annual-report.md": "art_2"}

        link = "[annual-report.md](artifact://art_2)"
        assert rewritten("annual-report.md", known) == link

    @pytest.mark.parametrize(
        ("names", "text", "expected"),
        [
            (
                {"foo bar.md": "a", "bar.md": "b"},
                "foo bar.md, foo  bar.md",
                "[foo bar.md](artifact://a), foo  [bar.md](artifact://b)",
            ),
            (
                {"artifact.md": "9", "artifact": "1"},
                "artifact.md artifact artifact.mdx",
                "[artifact.md](artifact://9) [artifact](artifact://1) artifact.mdx",
            ),
            (
                {"a": "1", "a b": "2", "a b c d": "3"},
                "a b c a b c d",
                "[a b](artifact://2) c [a b c d](artifact://3)",
            ),
        ],
    )
    def test_is_one_link_where_names_overlap(
        self, names: dict[str, str], text: str, expected: str
    ) -> None:
        assert rewritten(text, names) == expected

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("Done!report.md", f"Done\\!{LINK}"),
            ("Done\\!report.md", f"Done\\!{LINK}"),
            ("Done! report.md", f"Done! {LINK}"),
        ],
    )
    def test_makes_no_image(self, text: str, expected: str) -> None:
        assert rewritten(text) == expected


class TestLearning:
    def test_counts_for_what_has_not_come_out(self) -> None:
        """Spec: Ruling E21."""
        known = knowing({"notes.md": "art_1"})
        rewriter = MentionRewriter(known)

        assert rewriter.feed("[see notes.md and report.md") == "[see "
        known.learn("art_s", "report.md")
        assert rewriter.feed("] ") == f"[notes.md](artifact://art_1) and {LINK}] "

    def test_changes_nothing_that_has_come_out(self) -> None:
        known = KnownArtifacts()
        rewriter = MentionRewriter(known)

        assert rewriter.feed("See rep") == "See rep"
        known.learn("art_s", "report.md")
        assert rewriter.feed("ort.md and report.md") == "ort.md and "

    def test_makes_no_image_of_what_has_come_out(self) -> None:
        known = KnownArtifacts()
        rewriter = MentionRewriter(known)

        assert rewriter.feed("Done!") == "Done!"
        known.learn("art_s", "report.md")
        assert rewriter.feed("report.md ") == "report.md "

    @pytest.mark.parametrize("begun", ["```\n", "`", "[", "x `", "https://h/", "a-"])
    def test_finds_the_text_where_it_is(self, begun: str) -> None:
        """With nothing known nothing is held back, and yet the place is known."""
        known = KnownArtifacts()
        rewriter = MentionRewriter(known)

        assert rewriter.feed(begun) == begun
        known.learn("art_s", "report.md")
        rest = "report.md`](x)"
        assert begun + rewriter.feed(rest) + rewriter.flush() == rewrite(
            [begun + rest], known
        )

    @given(any_text, any_text, places, places)
    def test_does_not_depend_on_the_split(
        self, before: str, after: str, some: list[int], others: list[int]
    ) -> None:
        results: set[str] = set()
        for cuts in ([], some, others):
            known = knowing({"word": "art_20", "x": "art_21"})
            rewriter = MentionRewriter(known)
            parts = list(map(rewriter.feed, split(before, cuts)))
            for name, artifact_id in NAMES.items():
                known.learn(artifact_id, name)
            parts += map(rewriter.feed, split(after, cuts))
            results.add("".join(parts) + rewriter.flush())

        assert len(results) == 1


class TestStream:
    @given(any_text, places)
    def test_does_not_depend_on_the_split(self, text: str, cuts: list[int]) -> None:
        """Spec: Ruling E21."""
        whole = rewrite([text], KNOWN)

        assert rewrite(split(text, cuts), KNOWN) == whole
        assert rewrite(list(text), KNOWN) == whole

    @given(any_text)
    def test_gives_out_as_much_whatever_the_split(self, text: str) -> None:
        rewriter = MentionRewriter(KNOWN)

        assert "".join(map(rewriter.feed, text)) == MentionRewriter(KNOWN).feed(text)

    @given(any_text)
    def test_changes_nothing_when_done_again(self, text: str) -> None:
        """Sample f11."""
        once = rewrite([text], KNOWN)

        assert rewrite([once], KNOWN) == once

    @given(any_text, places)
    def test_changes_nothing_with_nothing_known(
        self, text: str, cuts: list[int]
    ) -> None:
        rewriter = MentionRewriter(KnownArtifacts())

        for chunk in split(text, cuts):
            assert rewriter.feed(chunk) == chunk
        assert rewriter.flush() == ""

    def test_begins_anew_after_a_flush(self) -> None:
        rewriter = MentionRewriter(knowing(REPORT))

        assert rewriter.feed("```\nreport.md") + rewriter.flush() == "```\nreport.md"
        assert rewriter.feed("report.md ") + rewriter.flush() == f"{LINK} "

    def test_keeps_a_long_text_in_order(self) -> None:
        """Longer than what is kept of it."""
        text = "[report.md and `more` report.md! " * 400

        assert rewritten(text) == text.replace("report.md", LINK).replace(
            f"!{LINK}", f"\\!{LINK}"
        )

    def test_is_as_the_samples_say(self) -> None:
        """Sample f11."""
        text = (
            "邮件已经准备好：{}，请查收。\n"
            "已是链接：[draft-email.md](artifact://art_0001) 不动。\n"
            "行内代码 `draft-email.md` 不动。\n\n"
            "```bash\ncat draft-email.md\n```\n\n"
            "网址 https://example.org/draft-email.md 不动；"
            "my-draft-email.md.bak 也不动。\n"
        )
        link = "[draft-email.md](artifact://art_0001)"

        assert rewritten(
            text.replace("{}", "draft-email.md"), {"draft-email.md": "art_0001"}
        ) == text.replace("{}", link)


class TestHoldingBack:
    @pytest.mark.parametrize(
        ("text", "released"),
        [
            ("See re", "See "),
            ("See report", "See "),
            ("See report.md", "See "),
            ("See report.md.", "See "),
            ("See report.md. ", f"See {LINK}. "),
            ("See reports", "See reports"),
            ("See `code", "See `code"),
            ("See `code report.md", "See `code "),
            ("See `code report.md`", "See `code "),
            ("See `code report.md` ", "See `code report.md` "),
            ("See [a word", "See [a word"),
            ("See [report.md", "See ["),
            ("See [report.md]", "See ["),
            ("See [report.md](", "See ["),
            ("See [report.md](x)", "See [report.md](x)"),
            ("See `\n\nreport.md ", f"See `\n\n{LINK} "),
            ("Wow!", "Wow"),
            ("x -", "x -"),
            ("``` report.md", "``` "),
            ("``` report.md\nx", "``` report.md\nx"),
            ("[1]: report.md", "[1]: "),
            ("[1]: report.md\n", "[1]: report.md\n"),
        ],
    )
    def test_keeps_only_what_may_become_a_mention(
        self, text: str, released: str
    ) -> None:
        """Spec: Ruling E21."""
        assert MentionRewriter(knowing(REPORT)).feed(text) == released

    @pytest.mark.parametrize(
        "begun", ["`", "[", "[x](", "[x](<", "[x][", "<b a='", "![", "[a `"]
    )
    def test_ends_when_nothing_closes_what_is_open(self, begun: str) -> None:
        rewriter = MentionRewriter(knowing(REPORT))
        text = f"{begun}report.md " + "word " * (2 * SPAN_LIMIT // 5)

        released = rewriter.feed(text)

        assert len(released) >= len(text) - len("word ")

    @given(texts(*NAMES, *WORDS, *MARKDOWN, most=12), st.integers(1, 400))
    def test_is_bounded(self, piece: str, times: int) -> None:
        text = piece * times
        rewriter = MentionRewriter(KNOWN)
        shorter_by = [
            fed - given
            for fed, given in zip(
                accumulate(1 for _ in text),
                accumulate(len(rewriter.feed(each)) for each in text),
                strict=True,
            )
        ]

        assert max(shorter_by, default=0) <= 4 * SPAN_LIMIT


def shown(text: str) -> str:
    """Return what a reader sees of a text, however the artifacts are linked.

    Emphasis apart: beside a bracket CommonMark may read it in another way.
    """
    html = READER.render(text)
    html = re.sub(r"</?(?:em|strong)>|[*_]", "", html)
    return re.sub(r'<a href="artifact://art\d+">(.*?)</a>', r"\1", html, flags=re.S)


READER = MarkdownIt("commonmark").disable("html_block")

SEEN_NAMES = ("report.md", "notes.md", "a[b].md", "foo bar.md", "bar.md", "wow!")


class TestReading:
    @given(
        texts(
            *SEEN_NAMES,
            *WORDS,
            *(each for each in MARKDOWN if each not in {"|", "|--|\n", "][", "[]"}),
            most=14,
        ).filter(lambda text: "]:" not in text)
    )
    def test_shows_the_same_words(self, text: str) -> None:
        """Another reader of Markdown finds links in plain text, and nothing else."""
        known = knowing({name: f"art{n}" for n, name in enumerate(SEEN_NAMES)})

        assert shown(rewrite([text], known)) == shown(text)
