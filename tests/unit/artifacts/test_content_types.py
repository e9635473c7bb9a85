"""What a file is, whatever its name and its sender say.

Spec: case FR-109; docs/decisions/0006-what-a-file-is.md.
"""

import gzip
import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from artifacts.content_types import HEAD_BYTES, detect_type, is_textual, type_of_name

SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
HTML = b"<!doctype html><script>alert(1)</script>"

#: What runs in a browser.
RUNS = {"text/html", "image/svg+xml", "application/xhtml+xml", "text/xml"}


def detect(data: bytes, name: str = "x", claimed: str = "") -> str:
    return detect_type(io.BytesIO(data), name=name, claimed=claimed)


def picture(kind: str) -> bytes:
    target = io.BytesIO()
    Image.new("RGB", (20, 10), "red").save(target, kind)
    return target.getvalue()


def archive() -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        file.writestr("a.txt", "x")
    return target.getvalue()


class TestSignature:
    @pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "AVIF", "BMP"])
    @pytest.mark.parametrize("name", ["x", "a.html", "a.txt", "a.svg", "a.zip"])
    def test_decides_of_pictures(self, kind: str, name: str) -> None:
        expected = f"image/{kind.lower()}"

        assert detect(picture(kind), name, "text/html") == expected

    @pytest.mark.parametrize(
        ("data", "mime_type"),
        [
            (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n\0\0", "application/pdf"),
            (b"%PDF-1.7\nall of it text", "application/pdf"),
            (gzip.compress(b"x", mtime=0), "application/gzip"),
            (archive(), "application/zip"),
            (b"SQLite format 3\0\x10\0\1\1", "application/vnd.sqlite3"),
            (b"RIFF\x88\0\0\0WAVEfmt \x10\0\0\0", "audio/wav"),
            (b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom", "video/mp4"),
            (b"\x1a\x45\xdf\xa3\0webm", "video/webm"),
            (b"OggS\0\2" + bytes(40), "audio/ogg"),
            (b"\x7fELF\2\1\1\0", "application/x-executable"),
        ],
    )
    def test_decides_whatever_the_name_is(self, data: bytes, mime_type: str) -> None:
        for name in ("x", "a.txt", "a.html", "a.png"):
            assert detect(data, name, "image/png") == mime_type

    @pytest.mark.parametrize(
        ("name", "mime_type"),
        [
            (
                "a.docx",
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            ),
            (
                "a.xlsx",
                "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            ),
            ("a.jar", "application/java-archive"),
            ("a.png", "application/zip"),
        ],
    )
    def test_of_containers_leaves_it_to_a_fitting_name(
        self, name: str, mime_type: str
    ) -> None:
        assert detect(archive(), name) == mime_type

    @given(st.binary(min_size=1, max_size=200), st.sampled_from(["x.png", "x.svg"]))
    def test_is_needed_to_be_a_picture(self, data: bytes, name: str) -> None:
        """Spec: issue "Artifacts", bad input: lying MIME types."""
        found = detect(b"\0\x01" + data, name, "image/png")

        assert found not in {"image/png", "image/svg+xml"}

    @pytest.mark.parametrize("name", ["a.png", "a.mp4", "a.mp3", "a.pdf", "a.txt"])
    def test_that_lacks_makes_it_unknown(self, name: str) -> None:
        assert detect(bytes(100), name, "image/png") == "application/octet-stream"

    def test_is_not_needed_where_files_have_none(self) -> None:
        assert (
            detect(b"PAR1\0\1\2PAR1", "a.parquet") == "application/vnd.apache.parquet"
        )


class TestMarkup:
    @pytest.mark.parametrize(
        ("data", "mime_type"),
        [
            (SVG, "image/svg+xml"),
            (b"\xef\xbb\xbf" + SVG, "image/svg+xml"),
            (SVG.decode().encode("utf-16"), "image/svg+xml"),
            (b"\xfe\xff" + SVG.decode().encode("utf-16-be"), "image/svg+xml"),
            (
                b"<?xml version='1.0'?><!DOCTYPE svg [<!ENTITY a 'b'>]><!-- --><SVG/>",
                "image/svg+xml",
            ),
            (b"<x:svg xmlns:x='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
            (HTML, "text/html"),
            (b" \r\n\t<!-- c --><SCRIPT>alert(1)</SCRIPT>", "text/html"),
            (b"<HTML>", "text/html"),
            (b"<iframe src=x>", "text/html"),
            (HTML + "é".encode("latin-1"), "text/html"),
            (b"<?xml version='1.0'?><html/>", "application/xhtml+xml"),
            (b"<?xml version='1.0'?><rss/>", "text/xml"),
            (b"<a xmlns='http://www.w3.org/1999/xhtml'/>", "text/xml"),
        ],
    )
    @pytest.mark.parametrize(
        "name", ["a.png", "a.txt", "a.csv", "a.md", "a.json", "x", "a.pdf"]
    )
    def test_is_seen_through_any_name(
        self, data: bytes, mime_type: str, name: str
    ) -> None:
        """Spec: FR-109."""
        for claimed in ("", "image/png", "text/plain", "application/json"):
            assert detect(data, name, claimed) == mime_type

    def test_may_be_more_than_its_beginning_says(self) -> None:
        feed = b"<?xml version='1.0'?><rss/>"

        assert detect(feed, "a.rss") == "application/rss+xml"
        assert detect(feed, "a.xhtml") == "application/xhtml+xml"
        assert detect(feed, "a.txt") == "text/xml"

    def test_begins_a_readme_too(self) -> None:
        for beginning in (
            b"<h1>Title</h1>",
            b"<!-- c -->\n# Title",
            b"<p align=center>",
        ):
            assert detect(beginning, "README.md") == "text/markdown"
            assert detect(beginning, "x") == "text/html"
            assert detect(beginning, "a.txt") == "text/html"

    def test_is_seen_behind_a_long_comment(self) -> None:
        """What is beyond the beginning may be anything."""
        data = b"<!--" + HEAD_BYTES * b"-" + b"--><script>alert(1)</script>"

        assert detect(data, "a.txt") == "text/html"

    def test_is_none_in_the_middle_of_a_text(self) -> None:
        assert detect(b"a <script> is shown", "a.txt") == "text/plain"

    @pytest.mark.parametrize("data", [b"GIF89a" + HTML, b"GIF89a/*" + HTML + b"*/=1;"])
    def test_behind_the_word_of_a_picture_is_no_picture(self, data: bytes) -> None:
        for name in ("a.gif", "a.html", "a.js", "x"):
            assert not detect(data, name, "image/gif").startswith("image/")

    def test_behind_a_picture_is_a_picture(self) -> None:
        """A file that is two things is called what browsers may not run."""
        assert detect(picture("PNG") + HTML, "a.html", "text/html") == "image/png"

    @given(st.text(max_size=50), st.sampled_from(["a.txt", "a.png", "a.json", "x"]))
    def test_is_never_overlooked_behind_white_space_and_comments(
        self, comment: str, name: str
    ) -> None:
        text = f" \n<!--{comment.replace('-->', '').rstrip('-')}-->\n<svg onload=x>"
        data = text.encode(errors="replace")
        found = detect(data, name)

        # Controls make it binary, which is saved only, too.
        assert found in RUNS | {"application/octet-stream"}


class TestText:
    @pytest.mark.parametrize(
        ("data", "name", "claimed", "mime_type"),
        [
            (b"a,b\n1,2", "a.csv", "", "text/csv"),
            (b"{}", "a.json", "", "application/json"),
            (b"{}", "a.ipynb", "", "application/x-ipynb+json"),
            (b"print(1)", "a.py", "", "text/x-python"),
            (b"# a", "a.MD", "", "text/markdown"),
            (b"x", "a.png", "image/png", "text/plain"),
            (b"x", "a.svg", "", "text/plain"),
            (b"x", "a.pdf", "application/pdf", "text/plain"),
            (b"x", "x", "text/markdown; charset=utf-8", "text/markdown"),
            (b"x", "a.csv", "text/markdown", "text/csv"),
            (b"x", "x", "Text/CSV", "text/csv"),
            (b"{\\rtf1 x}", "a.doc", "", "application/rtf"),
            ("café".encode("latin-1"), "a.txt", "", "text/plain"),
            ("日本".encode("gb18030"), "a.csv", "", "text/csv"),
            ("日本".encode("utf-16"), "a.csv", "", "text/csv"),
            (b"BM begins this text", "a.txt", "", "text/plain"),
            (b"\x1b[31mred\x1b[0m", "a.log", "", "text/plain"),
            (b"a\x0cb", "a.txt", "", "text/plain"),
        ],
    )
    def test_is_what_its_name_says_then_what_was_claimed(
        self, data: bytes, name: str, claimed: str, mime_type: str
    ) -> None:
        assert detect(data, name, claimed) == mime_type

    @pytest.mark.parametrize("name", ["a.txt", "a.png", "x", "a.bin", "a.svg"])
    def test_may_be_empty(self, name: str) -> None:
        assert detect(b"", name, "image/png") == "text/plain"

    @pytest.mark.parametrize(
        "claimed",
        [
            *(
                "text/x\r\nSet-Cookie: a=b",
                "text/x y",
                "text/",
                "text",
                "/",
                "text/a/b",
            ),
            *(
                "text/\u2028",
                "text/ä",
                "text/" + 200 * "a",
                "text/a\0",
                "*/*",
                "text/*",
            ),
        ],
    )
    def test_is_never_what_is_no_type(self, claimed: str) -> None:
        """Spec: case FR-107: it stands in a header."""
        assert detect(b"x", "x", claimed) == "text/plain"

    def test_may_be_cut_within_a_character(self) -> None:
        data = (HEAD_BYTES - 1) * b"a" + "é".encode() + b"a"

        assert detect(data, "a.csv") == "text/csv"

    @given(st.binary(max_size=100), st.text(max_size=20), st.text(max_size=40))
    def test_and_anything_else_has_one_bare_type(
        self, data: bytes, name: str, claimed: str
    ) -> None:
        found = detect(data, name, claimed)

        major, _, minor = found.partition("/")
        assert major.isascii()
        assert minor
        assert not set(found) & set(" ;,\r\n\"'<>")
        assert len(found) <= 127


class TestType:
    def test_of_a_name_does_not_depend_on_the_machine(self) -> None:
        assert type_of_name("a.md") == "text/markdown"
        assert type_of_name("a.no-such-suffix") == ""

    @pytest.mark.parametrize(
        ("mime_type", "expected"),
        [
            ("text/x-anything", True),
            ("application/json", True),
            ("application/geo+json", True),
            ("image/svg+xml", True),
            ("application/zip", False),
            ("image/png", False),
        ],
    )
    def test_is_one_of_texts(self, mime_type: str, expected: bool) -> None:
        assert is_textual(mime_type) is expected
