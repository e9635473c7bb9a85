import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from cards.protocol import artifact_names
from cards.protocol.artifact_names import UNSETTLED, KnownArtifacts, Mention
from cards.protocol.mentions import MentionRewriter
from tests.unit.cards.protocol.mention_texts import knowing, rewrite

LINK = "[report.md](artifact://art_s)"


class TestLink:
    @pytest.mark.parametrize(
        ("name", "shown"),
        [
            ("a[b].md", r"a\[b\].md"),
            ("a`b*c~d|e.md", r"a\`b\*c\~d\|e.md"),
            ("my_big_file.md", "my_big_file.md"),
            ("__init__.py", r"\_\_init\_\_.py"),
            ("R&D.md", "R&D.md"),
            ("R&amp;D.md", r"R\&amp;D.md"),
            ("a<b>.md", r"a\<b>.md"),
            ("1 < 2.md", "1 < 2.md"),
            ("back\\slash.md", r"back\\slash.md"),
        ],
    )
    def test_shows_the_name_as_it_is(self, name: str, shown: str) -> None:
        """Spec: Ruling E21."""
        link = rewrite(["art_1"], knowing({name: "art_1"}))

        assert link == f"[{shown}](artifact://art_1)"
        html = MarkdownIt().render(link)
        label = re.fullmatch(r'<p><a href="artifact://art_1">(.*)</a></p>\n', html)
        assert label
        assert label[1] == MarkdownIt().utils.escapeHtml(name)

    @pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>.svg", "[x](y).md"])
    def test_is_made_of_hostile_names_too(self, name: str) -> None:
        """Cases FR-117, FR-119; sample n01."""
        html = MarkdownIt().render(
            rewrite([f"See {name} now"], knowing({name: "art_1"}))
        )

        assert html.count("<a ") == 1
        assert "<img" not in html


class TestKnownArtifacts:
    def test_means_the_artifact_learnt_last_by_a_name(self) -> None:
        """Spec: Ruling E21."""
        known = KnownArtifacts()
        known.learn("art_1", "a.md")
        known.learn("art_2", "a.md")
        known.learn("art_1", "b.md")

        assert rewrite(["a.md b.md art_1 art_2"], known) == (
            "[a.md](artifact://art_2) [b.md](artifact://art_1)"
            " [b.md](artifact://art_1) [a.md](artifact://art_2)"
        )

    def test_means_by_an_id_its_own_artifact(self) -> None:
        known = knowing({"a.md": "art_1", "art_1": "art_2"})

        assert rewrite(["art_1"], known) == "[a.md](artifact://art_1)"

    @pytest.mark.parametrize("artifact_id", ["", "a b", "a)b", "a" * 65])
    def test_refuses_an_id_that_is_not_safe(self, artifact_id: str) -> None:
        with pytest.raises(ValueError, match="artifact_id must match"):
            KnownArtifacts().learn(artifact_id, "a.md")

    @pytest.mark.parametrize("name", ["", "a\nb", "a\r", "a" * 256])
    def test_refuses_a_name_that_is_none(self, name: str) -> None:
        with pytest.raises(ValueError, match="name must be one line of 1 to 255"):
            KnownArtifacts().learn("art_1", name)

    def test_is_shared_by_several_texts(self) -> None:
        known = KnownArtifacts()
        one, other = MentionRewriter(known), MentionRewriter(known)
        one.feed("See rep")
        other.feed("[")
        known.learn("art_s", "report.md")

        assert one.feed(" or report.md, ") == f" or {LINK}, "
        assert other.feed("report.md]") + other.flush() == f"{LINK}]"


class TestMatch:
    KNOWN = knowing({"a.md": "art_1", "a.md b": "art_2"})

    def match(self, text: str, *, is_final: bool = False) -> str | None:
        found = self.KNOWN.match(f"({text}", 1, 1 + len(text), is_final=is_final)
        if isinstance(found, Mention):
            return text[: found.end - 1]
        return None if found is None else "?"

    @pytest.mark.parametrize("text", ["a", "a.md", "a.md b", "a.md.", "a.md:/", "a\\"])
    def test_waits_for_what_may_follow(self, text: str) -> None:
        assert self.match(text) == "?"
        assert self.match(text, is_final=True) in {None, "a.md", "a.md b"}

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a.md c", "a.md"),
            ("a.md bc", "a.md"),
            ("a.md b ", "a.md b"),
            ("a.md. ", "a.md"),
            ("a.md:/x", "a.md"),
            ("a.md://", None),
            ("a.md.c", None),
            ("a.mx", None),
            ("b", None),
        ],
    )
    def test_tells_what_certainly_is_there(
        self, text: str, expected: str | None
    ) -> None:
        assert self.match(text) == expected

    def test_has_one_word_for_waiting(self) -> None:
        assert self.KNOWN.match("a", 0, 1, is_final=False) is UNSETTLED

    @pytest.mark.parametrize(
        ("text", "is_one"),
        [
            ("_a.md_ ", True),
            ("__a.md__", True),
            ("_a.md__", False),
            ("_a.md", False),
            ("x_a.md_", False),
            ("_a.md_x", False),
            ("____a.md____", False),
        ],
    )
    def test_takes_equal_underscores_for_emphasis(
        self, text: str, is_one: bool
    ) -> None:
        """Spec: CommonMark 0.31, 6.2."""
        found = self.KNOWN.match(text, text.index("a.md"), len(text), is_final=True)

        assert (found is not None) == is_one


class TestEscapes:
    """A long name and a text of escapes."""

    NAMES = knowing({"x" * 250: "art_1", "[[a]]*.md": "art_2", "\\\\.md": "art_3"})

    def test_that_begin_no_name_are_not_read_as_far_as_one_goes(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read: list[int] = []
        unescaped = artifact_names._unescaped

        def counted(written: str, count: int) -> tuple[str, list[int] | None]:
            plain, lengths = unescaped(written, count)
            read.append(len(plain))
            return plain, lengths

        monkeypatch.setattr(artifact_names, "_unescaped", counted)
        text = "\\[\\]" * 500

        assert rewrite([text], self.NAMES) == text
        assert 0 < sum(read) <= 10 * len(text)

    @given(
        st.lists(
            st.sampled_from(["\\", "[", "]", "a", "*", ".md", "x" * 9, " ", "\n"])
        ),
        st.integers(min_value=1, max_value=9),
    )
    def test_are_read_alike_however_far_one_looks(
        self, parts: list[str], step: int
    ) -> None:
        text = "".join(parts)
        chunks = [text[at : at + step] for at in range(0, len(text), step)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(artifact_names, "_GLANCE", 10_000)
            whole = rewrite([text], self.NAMES)

        assert rewrite([text], self.NAMES) == whole
        assert rewrite(chunks, self.NAMES) == whole
