"""Names that may be shown, stored and linked.

Spec: cases FR-107, FR-111, FR-113, UNI; samples n01.
"""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts.protocol.names import (
    FALLBACK_NAME,
    MAX_NAME_BYTES,
    safe_name,
    suffix_of,
)

CASES = {
    "plain": ("plain.txt", "plain.txt"),
    "up": ("../up.txt", "up.txt"),
    "up-windows": ("..\\up.txt", "up.txt"),
    "up-mixed": ("..\\../a/..\\b.txt", "b.txt"),
    "absolute": ("/abs.txt", "abs.txt"),
    "drive": ("C:\\Users\\ann\\a.txt", "a.txt"),
    "share": ("//host/share/a.txt", "a.txt"),
    "url": ("https://example.com/a.txt?x=1", "a.txt?x=1"),
    "folder": ("reports/", "reports"),
    "folders-of-dots": ("a/../..", "a"),
    "chinese": ("实验 记录.pdf", "实验 记录.pdf"),
    "accent": ("é.txt", "é.txt"),
    "emoji": ("😀.png", "😀.png"),
    "emoji-of-several": ("👩\u200d💻.png", "👩\u200d💻.png"),
    "emoji-with-skin": ("👩🏽\u200d💻.png", "👩🏽\u200d💻.png"),
    "emoji-as-picture": ("❤\ufe0f\u200d🔥.png", "❤\ufe0f\u200d🔥.png"),
    "joiners": ("\u200d👩\u200d\u200d💻\u200d\u200d.p\u200dng\u200d", "👩\u200d💻.png"),
    "joiner-at-separator": ("a/👩\u200d/\u200d💻", "💻"),
    "flag": ("🇩🇪.png", "🇩🇪.png"),
    "header": ("a\r\nSet-Cookie: x=1.txt", "a Set-Cookie: x=1.txt"),
    "quote": ('q"uote.txt', 'q"uote.txt'),
    "markup": ("<img src=x onerror=alert(1)>.svg", "<img src=x onerror=alert(1)>.svg"),
    "empty": ("", "unnamed-file"),
    "dot": (".", "unnamed-file"),
    "dots": ("....", "unnamed-file"),
    "spaces": (" \t\n ", "unnamed-file"),
    "slashes": ("///", "unnamed-file"),
    "hidden": (".env", ".env"),
    "end": ("a.txt. . ", "a.txt"),
    "many-spaces": ("a" + 100 * " " + ".exe", "a .exe"),
    "other-spaces": ("a\u00a0\u2003\u2028\u3000b.txt", "a b.txt"),
    "nul": ("a\0.txt", "a.txt"),
    "escape": ("a\x1b[31m.txt", "a[31m.txt"),
    "delete": ("a\x7f\x9f.txt", "a.txt"),
    "direction": ("invoice\u202efdp.exe", "invoicefdp.exe"),
    "isolates": ("\u2066a\u2069\u200e\u200f\u061c.txt", "a.txt"),
    "zero-width": ("a\u200b\u200c\u200d\ufeff\u2060.txt", "a.txt"),
    "tags": ("a\U000e0041\U000e0062.txt", "a.txt"),
    "filler": ("\u3164\u115f\uffa0.txt", ".txt"),
    "surrogate": ("a\ud83d.txt", "a.txt"),
    "surrogates": ("\udc80\ud800", "unnamed-file"),
    "slash-behind-invisible": ("a/\u200b", "a"),
    "composed": ("e\u0301.txt", "é.txt"),
    "full-width-slash": ("a\uff0fb.txt", "a\uff0fb.txt"),
    "windows": ("con.txt", "_con.txt"),
    "windows-upper": ("NUL", "_NUL"),
    "windows-port": ("com1.tar.gz", "_com1.tar.gz"),
    "windows-port-superscript": ("LPT¹", "_LPT¹"),
    "windows-space": ("aux .txt", "_aux .txt"),
    "windows-not": ("console.txt", "console.txt"),
    "windows-not-port": ("com10.txt", "com10.txt"),
    "windows-hidden": ("c\u200bon.txt", "_con.txt"),
    "long": (299 * "x" + ".txt", 251 * "x" + ".txt"),
    "long-emoji": (200 * "😀" + ".png", 62 * "😀" + ".png"),
    "long-joined": (
        60 * "👩\u200d💻" + ".png",
        22 * "👩\u200d💻" + "👩.png",
    ),
    "long-suffix": ("a." + 300 * "x", "a." + 253 * "x"),
    "ten-thousand": (10_000 * "ä" + ".md", 126 * "ä" + ".md"),
}


@pytest.mark.parametrize(("name", "safe"), CASES.values(), ids=CASES)
def test_are_made_safe(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@given(
    st.text(st.characters(codec=None, exclude_categories=()))
    | st.text("./\\ ab\u200b\u202e\0")
)
def test_have_nothing_in_them_that_hides(name: str) -> None:
    safe = safe_name(name)

    assert safe
    assert 0 < len(safe.encode()) <= MAX_NAME_BYTES
    assert safe == unicodedata.normalize("NFC", safe)
    assert not set(safe) & set("/\\\r\n\t\0")
    seen = re.sub("(?<=.)\u200d(?=.)", "", safe)
    hidden = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert not {unicodedata.category(each) for each in seen} & hidden
    assert safe == safe.strip()
    assert "  " not in safe
    assert safe.strip(". ")
    assert not safe.endswith(".")


@given(
    st.text(st.characters(codec=None, exclude_categories=()))
    | st.text("./\\ ab\u200b\u0301", max_size=600)
    | st.text("👩💻\u200d\ufe0f🏽a.\u200b", max_size=200)
    | st.from_regex(r"(con|aux|com1)\.?( |\.|a){0,300}")
)
def test_stay_as_they_are_when_they_are_safe(name: str) -> None:
    assert safe_name(safe_name(name)) == safe_name(name)


@given(
    st.text("abc😀ä", min_size=300, max_size=2000),
    st.sampled_from(["md", "tar", "jpeg"]),
)
def test_keep_their_suffix(stem: str, suffix: str) -> None:
    assert safe_name(f"{stem}.{suffix}").endswith(f".{suffix}")


def test_are_made_of_the_end_of_what_is_very_long() -> None:
    """A name comes from a client: megabytes of it must not keep a server busy."""
    assert safe_name(1_000_000 * "a/" + "b.txt") == "b.txt"
    assert safe_name("a" + 1_000_000 * "\u200b" + ".txt") == ".txt"
    assert safe_name(1_000_000 * ". ") == FALLBACK_NAME


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("a.txt", ".txt"),
        ("a.TXT", ".txt"),
        ("a.tar.gz", ".gz"),
        (".env", ""),
        ("a", ""),
        ("a.", ""),
        ("", ""),
    ],
)
def test_have_a_suffix(name: str, suffix: str) -> None:
    assert suffix_of(name) == suffix
