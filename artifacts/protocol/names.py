r"""Names that may be shown, stored and linked, whatever was asked for.

| in a name | becomes |
|---|---|
| path steps, `/` and `\` | only what is behind the last one |
| what is not seen: controls, direction marks, zero-width characters | nothing |
| a joiner between two pictures | itself |
| halves of surrogate pairs | nothing |
| white space of any kind | one space; none at either end |
| dots at the end | nothing |
| a name that Windows reserves, such as `con.txt` | `_con.txt` |
| more than 255 bytes of UTF-8 | a shorter stem; the suffix stays |
| nothing that is left | `unnamed-file` |

Spec: FR-107, FR-111, FR-113; issue "Artifacts", bad input.
"""

import re
import unicodedata
from typing import Final

#: Bytes of UTF-8; what file systems take. Spec: none; POSIX NAME_MAX.
MAX_NAME_BYTES: Final = 255

#: Characters that are looked at, from the end; nobody has such a name, and whoever
#: sends a longer one is not to keep a server busy with it.
MAX_READ_CHARS: Final = 10_000

#: Bytes of what counts as a suffix; a longer one is cut with the rest.
MAX_SUFFIX_BYTES: Final = 32

#: No word of a sentence: mentions of names become links. Spec: Ruling E21.
FALLBACK_NAME: Final = "unnamed-file"

#: Characters of categories that are visible and yet show nothing: joiners, fillers
#: and selectors.
_INVISIBLE: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
)

#: Makes one picture of several, and one of what could be a letter, too.
_JOINER: Final = "\u200d"
_AS_PICTURE: Final = "\ufe0f"

_SEPARATORS: Final = re.compile(r"[/\\]")

_RESERVED: Final = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\..*)?", re.IGNORECASE
)


def safe_name(name: str) -> str:
    """Return a name made of `name`; never empty, and the same when applied again.

    Spec: FR-107, FR-111, FR-113.
    """
    parts = _SEPARATORS.split(_visible(name[-MAX_READ_CHARS:]))
    tidy = [part for part in map(_tidy_ends, parts) if part]
    safe = tidy[-1] if tidy else FALLBACK_NAME
    if _RESERVED.fullmatch(safe):
        safe = f"_{safe}"
    return _shortened(safe)


def suffix_of(name: str) -> str:
    """Return the suffix with its dot in lower case; "" for none."""
    stem, dot, suffix = name.rpartition(".")
    return f".{suffix}".lower() if stem and dot and suffix else ""


def _visible(name: str) -> str:
    kept: list[str] = []
    for place, character in enumerate(name):
        if character == _JOINER and _joins(kept[-1:], name[place + 1 : place + 2]):
            kept.append(character)
        elif shown := _visible_form(character):
            kept.append(shown)
    return unicodedata.normalize("NFC", "".join(kept))


def _visible_form(character: str) -> str:
    if character.isspace():
        return " "
    # Cc, Cf, Cs: controls, formats, surrogates.
    if unicodedata.category(character) in {"Cc", "Cf", "Cs"}:
        return ""
    return "" if character in _INVISIBLE else character


def _joins(before: list[str], behind: str) -> bool:
    """Tell whether a joiner makes one picture of two, such as a woman and a laptop."""
    is_behind_picture = bool(before) and (
        before[0] == _AS_PICTURE or unicodedata.category(before[0]) in {"So", "Sk"}
    )
    return is_behind_picture and behind != "" and unicodedata.category(behind) == "So"


def _tidy_ends(part: str) -> str:
    # One run of spaces hides a suffix as well as a zero-width character does.
    return re.sub(" +", " ", part).lstrip(" ").rstrip(" .")


def _shortened(name: str) -> str:
    if len(name.encode()) <= MAX_NAME_BYTES:
        return name
    stem, dot, suffix = name.rpartition(".")
    ending = f"{dot}{suffix}"
    if not stem or len(ending.encode()) > MAX_SUFFIX_BYTES:
        stem, ending = name, ""
    room = MAX_NAME_BYTES - len(ending.encode())
    # Cut between characters: half of one is dropped.
    cut = stem.encode()[:room].decode(errors="ignore")
    return cut.rstrip(f" .{_JOINER}") + ending
