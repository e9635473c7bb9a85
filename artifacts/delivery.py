"""How a browser is told to take a file: what it is, and that it must not run it.

| the file is | it is called | and may be shown |
|---|---|---|
| a picture, sound or film that runs nothing, a plain text, PDF | what it is | yes |
| another text: a page, SVG, XML, a script, a style | `text/plain` | no, saved only |
| anything else | what it is | no, saved only |

Whatever it is called, browsers are told not to guess, and a document made of it has
no scripts and no network. It has no origin either, with two exceptions: a player of
sound or film asks for the file again, as its owner; and below `sandbox` browsers start
no viewer of PDF, and theirs gives a paper nothing of the page's.

Spec: issue "Artifacts" 4; cases XSS.
"""

import unicodedata
from typing import Final
from urllib.parse import quote

from django.utils.http import content_disposition_header

from artifacts.content_types import PLAIN, is_textual

PDF: Final = "application/pdf"

#: What browsers show and never run.
_SHOWN: Final = frozenset(
    {
        *(f"image/{name}" for name in ("png", "jpeg", "gif", "webp", "avif", "bmp")),
        *(f"audio/{name}" for name in ("mpeg", "mp4", "ogg", "wav", "webm", "flac")),
        *(f"video/{name}" for name in ("mp4", "ogg", "webm")),
        *(f"text/{name}" for name in ("plain", "csv", "tab-separated-values")),
        *("text/markdown", "application/json", "application/x-ndjson", PDF),
    }
)

#: What a browser makes of a picture or a film for itself needs a style and the file.
_NOTHING_BUT_ITSELF: Final = (
    "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def may_be_shown(mime_type: str) -> bool:
    """Tell whether a browser may show a file instead of saving it."""
    return mime_type in _SHOWN


def content_type_of(mime_type: str) -> str:
    """Return the `Content-Type` of an answer."""
    is_shown = mime_type in _SHOWN
    if not is_shown and is_textual(mime_type):
        mime_type = PLAIN
    # A mark of byte order says otherwise where there is one.
    return f"{mime_type}; charset=utf-8" if mime_type.startswith("text/") else mime_type


def disposition_of(name: str, *, is_saved: bool) -> str:
    """Return the `Content-Disposition` of an answer.

    A name that is more than ASCII stands there twice: as it is, and for those who
    cannot read that form in ASCII. So does one with `%`, which some would decode.

    Args:
        name: Safe.

    Spec: RFC 6266, 4.3 and appendix D; cases FR-111, FR-113.
    """
    if name.isascii() and "%" not in name:
        header: str | None = content_disposition_header(is_saved, name)
        return header or "attachment"
    kind = "attachment" if is_saved else "inline"
    plain = "".join(
        letter if letter.isascii() and letter not in '%"/\\' else "_"
        for letter in unicodedata.normalize("NFKD", name)
        if not unicodedata.combining(letter)
    )
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def policy_of(mime_type: str) -> str:
    """Return the `Content-Security-Policy` of an answer."""
    if mime_type == PDF:
        return _NOTHING_BUT_ITSELF
    is_played = may_be_shown(mime_type) and mime_type.startswith(("audio/", "video/"))
    sandbox = "sandbox allow-same-origin" if is_played else "sandbox"
    return f"{sandbox}; {_NOTHING_BUT_ITSELF}"
