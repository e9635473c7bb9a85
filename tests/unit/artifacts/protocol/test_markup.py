"""Which texts a browser would take for markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts.protocol.markup import decode_text, is_fragment, is_utf8, markup_type


class TestDecodeText:
    @pytest.mark.parametrize(
        ("data", "text"),
        [
            (b"", ""),
            (b"\xef\xbb\xbfa", "a"),
            ("é".encode("utf-16"), "é"),
            ("é".encode("utf-32"), "é"),
            (b"\xfe\xff\0a", "a"),
            (b"caf\xe9", "café"),
            (b"a\0b", None),
            (b"a\x01", None),
            (b"\xff\xfe\x00\xd8\x41\x00", None),
        ],
    )
    def test_reads_by_the_mark_then_utf8_then_byte_by_byte(
        self, data: bytes, text: str | None
    ) -> None:
        assert decode_text(data, is_whole=True) == text

    @given(
        st.text(st.characters(codec="utf-8", min_codepoint=32), min_size=1), st.data()
    )
    def test_reads_the_beginning_of_a_text(
        self, text: str, data: st.DataObject
    ) -> None:
        """Wherever it is cut, also within a character."""
        encoded = text.encode()
        cut = data.draw(st.integers(0, len(encoded)))
        head = decode_text(encoded[:cut], is_whole=False)

        assert head is not None
        assert text.removeprefix("\ufeff").startswith(head)
        assert is_utf8(encoded[:cut], is_whole=False)

    def test_knows_a_character_cut_at_the_end(self) -> None:
        assert not is_utf8("é".encode()[:1], is_whole=True)


class TestMarkupType:
    @pytest.mark.parametrize(
        ("text", "mime_type"),
        [
            ("<svg>", "image/svg+xml"),
            ("<svg/>", "image/svg+xml"),
            ("<svga>", None),
            ("<svg", None),
            ("<a:svg >", "image/svg+xml"),
            ("<html>", "text/html"),
            ("<?xml?><html>", "application/xhtml+xml"),
            ("<?xml?>", "text/xml"),
            ("<!DOCTYPE HTML>", "text/html"),
            ("<!doctype html [<!-- ] -->]>x", "text/html"),
            ("<meta charset=x>", "text/html"),
            ("<x y=1 xmlns:z='a'>", "text/xml"),
            ("<x xmlnsx=1>", None),
            ("<div>", None),
            ("plain", None),
            ("", None),
            ("< svg>", None),
            ("1 <svg>", None),
        ],
    )
    def test_is_that_of_the_first_element(
        self, text: str, mime_type: str | None
    ) -> None:
        assert markup_type(text) == mime_type

    @pytest.mark.parametrize(
        "text",
        [
            *("<" * 60_000, "<!--" * 15_000, "<!doctype [" * 6_000, "<?" * 30_000),
            *("<a " + " xmlns" * 10_000, "<a" + ":a" * 30_000, "<!-- -->" * 8_000),
            *("<!doctype [" + "]" * 60_000, "<!doctype [" + "] " * 30_000),
            *(" " * 60_000, "<a" + " xmlns:" + "a" * 60_000, "<" + "a." * 30_000),
        ],
        ids=lambda text: text[:12],
    )
    def test_is_found_in_one_go(self, text: str) -> None:
        """Patterns that look back again and again would take minutes here."""
        assert markup_type(text) is None
        assert is_fragment(text) in {True, False}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<h1>a", True),
        ("<P >", True),
        ("<!-- c", True),
        ("<!-- c --><b>", True),
        ("<!ELEMENT", True),
        ("<unknown>", False),
        ("a<b>", False),
        ("", False),
    ],
)
def test_fragments_begin_as_pages_may(text: str, expected: bool) -> None:
    assert is_fragment(text) is expected
