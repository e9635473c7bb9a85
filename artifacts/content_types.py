"""What a file is, as its bytes tell.

| the bytes | the MIME type |
|---|---|
| a text that is markup | of that markup, whatever the name or a claim says |
| another text | of the name, then of the claim, if that is one of texts; else plain |
| with a known signature | of the signature; of several, the one that the name fits |
| anything else | of the name, if its files have no signature; else unknown |

Spec: FR-109; issue "Artifacts" 1; docs/decisions/0006-what-a-file-is.md.
"""

import re
from mimetypes import MimeTypes
from typing import BinaryIO, Final

import puremagic

from artifacts.protocol.markup import decode_text, is_fragment, is_utf8, markup_type
from artifacts.protocol.names import suffix_of

#: What may stand in a header. Spec: RFC 6838 4.2.
_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*")

#: Bytes at the beginning of a file that are looked at.
HEAD_BYTES: Final = 64 * 1024

PLAIN: Final = "text/plain"
UNKNOWN: Final = "application/octet-stream"

#: Python's own table; the system's would make types depend on the machine.
_TABLE: Final = MimeTypes(filenames=())

#: What that table lacks or calls by an older name.
_OF_SUFFIX: Final = {
    ".atom": "application/atom+xml",
    ".csv": "text/csv",
    ".go": "text/x-go",
    ".ipynb": "application/x-ipynb+json",
    ".java": "text/x-java",
    ".js": "text/javascript",
    ".jsonl": "application/x-ndjson",
    ".log": PLAIN,
    ".markdown": "text/markdown",
    ".md": "text/markdown",
    ".mjs": "text/javascript",
    ".ndjson": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
    ".rs": "text/x-rust",
    ".rss": "application/rss+xml",
    ".sh": "application/x-sh",
    ".sql": "application/sql",
    ".tex": "application/x-tex",
    ".toml": "application/toml",
    ".ts": "text/x-typescript",
    ".tsv": "text/tab-separated-values",
    ".tsx": "text/x-typescript",
    ".xhtml": "application/xhtml+xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}

#: Types of texts whose names do not begin with `text/`.
_TEXTUAL: Final = frozenset(
    f"application/{name}"
    for name in (
        *("json", "ld+json", "x-ndjson", "geo+json", "toml", "yaml", "x-yaml", "sql"),
        *("javascript", "x-sh", "x-tex", "x-latex", "xml", "xhtml+xml", "x-csh"),
        *("x-tcl", "rtf", "postscript", "x-subrip", "graphql"),
    )
)

#: Beginnings of texts that are something else all the same.
_TEXT_SIGNATURES: Final = {
    "%PDF-": "application/pdf",
    "{\\rtf": "application/rtf",
    "%!PS": "application/postscript",
}

#: Names in use for what the table of signatures calls otherwise.
_USUAL: Final = {
    "application/ogg": "audio/ogg",
    "application/x-gzip": "application/gzip",
    "application/x-sqlite3": "application/vnd.sqlite3",
    "audio/wave": "audio/wav",
    "audio/x-flac": "audio/flac",
    "audio/x-wav": "audio/wav",
    "image/x-ms-bmp": "image/bmp",
}

#: Containers that hold many things; which one, only a fitting name tells.
_CONTAINERS: Final = {
    b"PK\x03\x04": "application/zip",
    b"PK\x05\x06": "application/zip",
    b"\x7fELF": "application/x-executable",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "application/x-ole-storage",
}

#: Kinds whose files all have a signature, so that a name alone does not make one.
_ALWAYS_SIGNED: Final = ("text/", "image/", "audio/", "video/", "font/")


def detect_type(file: BinaryIO, *, name: str, claimed: str = "") -> str:
    """Return the MIME type of a file, without parameters.

    Args:
        file: Is read from its beginning and left anywhere.
        name: Safe; a hint.
        claimed: A hint, whatever it holds.

    Spec: FR-109.
    """
    file.seek(0)
    head = file.read(HEAD_BYTES)
    is_whole = not file.read(1)
    text = decode_text(head, is_whole=is_whole)
    if text is not None and not is_utf8(head, is_whole=is_whole):
        # Bytes of no known encoding are a text only if they are nothing else.
        return _signed_type(file, name) or _text_type(text, name, claimed)
    if text is not None:
        return _text_type(text, name, claimed)
    return _signed_type(file, name) or _unsigned_type(name)


def type_of_name(name: str) -> str:
    """Return the MIME type that a name promises; "" for none."""
    suffix = suffix_of(name)
    return _OF_SUFFIX.get(suffix) or _TABLE.types_map[True].get(suffix, "")


def is_textual(mime_type: str) -> bool:
    """Tell whether files of that type are texts."""
    return (
        mime_type.startswith("text/")
        or mime_type in _TEXTUAL
        or mime_type.endswith(("+json", "+xml"))
    )


def _text_type(text: str, name: str, claimed: str) -> str:
    found = markup_type(text)
    if found:
        # An `.xhtml` or a feed is more than XML.
        hint = type_of_name(name)
        return hint if found == "text/xml" and hint.endswith("+xml") else found
    for beginning, mime_type in _TEXT_SIGNATURES.items():
        if text.startswith(beginning):
            return mime_type
    for hint in (type_of_name(name), _bare(claimed)):
        # Nothing is a picture because of its name.
        if is_textual(hint) and hint != PLAIN and not hint.startswith("image/"):
            return hint
    return "text/html" if is_fragment(text) else PLAIN


def _bare(claimed: str) -> str:
    bare = claimed.partition(";")[0].strip().lower()
    return bare if len(bare) <= 127 and _TYPE.fullmatch(bare) else ""


def _signed_type(file: BinaryIO, name: str) -> str:
    """Return the type of a known signature; "" for none."""
    file.seek(0)
    try:
        # The name's suffix breaks a tie; it matches nothing by itself.
        matches = puremagic.magic_stream(file, filename=f"_{suffix_of(name)}")
    except (puremagic.PureError, ValueError):
        return ""
    for match in matches:
        if not match.byte_match:
            continue
        is_by_name = bool(match.extension) and match.extension == suffix_of(name)
        container = _CONTAINERS.get(match.byte_match)
        mime_type = container if container and not is_by_name else match.mime_type
        # What is no text cannot be a type of texts.
        if mime_type and not is_textual(mime_type):
            return _USUAL.get(mime_type, mime_type)
    return ""


def _unsigned_type(name: str) -> str:
    hint = type_of_name(name)
    if hint.startswith(_ALWAYS_SIGNED) or is_textual(hint) or hint == "application/pdf":
        return UNKNOWN
    return hint or UNKNOWN
