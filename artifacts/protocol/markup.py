"""Which texts a browser would take for markup, that is, for something that runs.

Spec: FR-109; the WHATWG's MIME Sniffing Standard, 7.1.
"""

import codecs
import re
from typing import Final

SVG: Final = "image/svg+xml"
HTML: Final = "text/html"
XHTML: Final = "application/xhtml+xml"
XML: Final = "text/xml"

#: Bytes that no text has. Spec: MIME Sniffing Standard, 3.
_BINARY: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

#: What may stand in front of the first element.
_PROLOG: Final = re.compile(
    r"\s+|<\?.*?\?>|<!--.*?-->|<!doctype[^>\[]*(\[.*?\]\s*)?>",
    re.IGNORECASE | re.DOTALL,
)

_ELEMENT: Final = re.compile(r"<(?:[A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)(?=[\s/>])")

#: A first element that says which vocabulary it is of.
_NAMESPACED: Final = re.compile(r"<[A-Za-z_][^<>]*\sxmlns(:[\w.-]+)?\s*=")

#: Elements by which browsers know a page, and those that make one of any text.
_PAGE_ELEMENTS: Final = frozenset(
    {"html", "head", "body", "script", "iframe", "title", "style", "meta", "link"}
    | {"base", "object", "embed", "frameset"}
)

#: Those that README files begin with, too.
_FRAGMENT_ELEMENTS: Final = frozenset(
    {"h1", "h2", "div", "font", "table", "a", "b", "i", "br", "p", "img", "center"}
    | {"span", "form", "input", "video", "audio", "details", "picture", "button"}
)


def decode_text(head: bytes, *, is_whole: bool) -> str | None:
    """Return the beginning of a text; None when the bytes are none.

    Args:
        head: The beginning of a file.
        is_whole: Whether that is all; otherwise its last character may be cut.

    Returns:
        By its mark of byte order, as UTF-8, or else, when it holds no byte that texts
        lack, byte by byte.
    """
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return _decoded(head[len(mark) :], encoding, is_whole=is_whole)
    if _BINARY.search(head):
        return None
    text = _decoded(head, "utf-8", is_whole=is_whole)
    return head.decode("latin-1") if text is None else text


def is_utf8(head: bytes, *, is_whole: bool) -> bool:
    """Tell whether bytes are the beginning of UTF-8."""
    return _decoded(head, "utf-8", is_whole=is_whole) is not None


def _decoded(head: bytes, encoding: str, *, is_whole: bool) -> str | None:
    try:
        return codecs.getincrementaldecoder(encoding)().decode(head, is_whole)
    except UnicodeDecodeError:
        return None


def markup_type(text: str) -> str | None:
    """Return the MIME type of a text that is markup; None when it is not.

    A text that begins like a fragment of a page is one only if nothing else is known
    of it: see `is_fragment`.
    """
    begin = _skip_prolog(text)
    element = _ELEMENT.match(text, begin)
    name = element[1].lower() if element else ""
    is_xml = text.lstrip().startswith("<?xml")
    if name == "svg":
        return SVG
    if name == "html" and is_xml:
        return XHTML
    if is_xml:
        return XML
    if name in _PAGE_ELEMENTS or "<!doctype html" in text[:begin].lower():
        return HTML
    return XML if _NAMESPACED.match(text, begin) else None


def is_fragment(text: str) -> bool:
    """Tell whether a text begins as a page may, and as a README may, too."""
    begin = _skip_prolog(text)
    element = _ELEMENT.match(text, begin)
    if element:
        return element[1].lower() in _FRAGMENT_ELEMENTS
    return text.lstrip().startswith(("<!--", "<!"))


def _skip_prolog(text: str) -> int:
    place = 0
    while found := _PROLOG.match(text, place):
        place = found.end()
    return place
