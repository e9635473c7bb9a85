"""Spans of a growing Markdown text that are no words: targets, labels, tags.

Each function looks at `text[at:end]` and returns where the span ends, None when there
is none whatever follows, or PENDING when that depends on what follows.

Spec: Ruling E21; CommonMark 0.31, 6.3, 6.5 and 6.6.
"""

import re
from typing import Final

#: Returned when the text ends before the verdict.
PENDING: Final = -1

#: Parentheses that may open within a target. Spec: none; CommonMark asks for three in
#: each other.
_MAX_OPENED: Final = 16

_SPACES: Final = re.compile(r"\s*")
_POINTED: Final = re.compile(r"<(?:[^<>\\\n]|\\.)*+")
_BARE: Final = re.compile(r"(?:[^\s()\\\x00-\x1f\x7f]|\\[^\s])*+")
_TITLES: Final = {
    '"': re.compile(r'"(?:[^"\\]|\\[\s\S])*+'),
    "'": re.compile(r"'(?:[^'\\]|\\[\s\S])*+"),
    "(": re.compile(r"\((?:[^()\\]|\\[\s\S])*+"),
}
_CLOSERS: Final = {'"': '"', "'": "'", "(": ")"}
_LABEL: Final = re.compile(r"\[(?:[^\[\]\\]|\\[\s\S])*+")

_NAME: Final = r"[A-Za-z_:][\w.:-]*+"
_VALUE: Final = r"(?:[^\s\"'=<>`]++|'[^']*+'|\"[^\"]*+\")"
_ATTRIBUTES: Final = rf"(?:\s++{_NAME}(?:\s*+=\s*+{_VALUE})?)*+"
_ANGLE: Final = re.compile(
    r"<(?:[A-Za-z][A-Za-z0-9.+-]{1,31}:[^\s<>]*+"
    r"|[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]++@[A-Za-z0-9.-]++"
    rf"|(?P<element>[A-Za-z][A-Za-z0-9-]*+){_ATTRIBUTES}\s*+/?"
    r"|/(?P<closed>[A-Za-z][A-Za-z0-9-]*+)\s*+"
    r"|!--(?:(?!-->)[\s\S])*+--|![A-Za-z][^>]*+)>"
)
_ANGLE_BEGUN: Final = re.compile(
    r"<(?:[A-Za-z][A-Za-z0-9.+-]{0,31}(?::[^\s<>]*+)?"
    r"|[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]*+(?:@[A-Za-z0-9.-]*+)?"
    rf"|[A-Za-z][A-Za-z0-9-]*+{_ATTRIBUTES}"
    r"\s*+(?:/|=\s*+(?:'[^']*+|\"[^\"]*+)?)?"
    r"|/(?:[A-Za-z][A-Za-z0-9-]*+\s*+)?"
    r"|!(?:-(?:-(?:(?!-->)[\s\S])*+)?|[A-Za-z][^>]*+)?)"
)


def read_target(text: str, at: int, end: int) -> int | None:
    """Read the `(target "title")` of a link from its `(`."""
    place = _target_end(text, _skip_spaces(text, at + 1, end), end)
    if place is None or place == PENDING:
        return place
    behind = _skip_spaces(text, place, end)
    if behind < end and text[behind] != ")":
        if behind == place or text[behind] not in _TITLES:
            return None
        opener = text[behind]
        place = _match_end(_TITLES[opener], text, behind, end)
        if place == PENDING:
            return PENDING
        if text[place] != _CLOSERS[opener]:
            return None
        behind = _skip_spaces(text, place + 1, end)
    if behind == end:
        return PENDING
    return behind + 1 if text[behind] == ")" else None


def _target_end(text: str, at: int, end: int) -> int | None:
    if not text.startswith("<", at, end):
        return _bare_end(text, at, end)
    place = _match_end(_POINTED, text, at, end)
    if place == PENDING:
        return PENDING
    return place + 1 if text[place] == ">" else None


def _bare_end(text: str, at: int, end: int) -> int | None:
    depth = opened = 0
    while True:
        at = _match_end(_BARE, text, at, end)
        if at == PENDING:
            return PENDING
        if text[at] == "(" and opened < _MAX_OPENED:
            depth += 1
            opened += 1
        elif text[at] == ")" and depth:
            depth -= 1
        elif text[at] != "\\":
            return None if depth else at
        at += 1


def read_label(text: str, at: int, end: int) -> int | None:
    """Read the `[label]` of a reference from its `[`."""
    place = _match_end(_LABEL, text, at, end)
    if place == PENDING:
        return PENDING
    return place + 1 if text[place] == "]" else None


def read_angle(text: str, at: int, end: int) -> int | None:
    """Read an autolink, a tag or a comment of HTML from its `<`."""
    found = _ANGLE.match(text, at, end)
    if found:
        return found.end()
    return PENDING if _ANGLE_BEGUN.fullmatch(text, at, end) else None


def _skip_spaces(text: str, at: int, end: int) -> int:
    return _SPACES.match(text, at, end).end()  # type: ignore[union-attr]


def _match_end(pattern: re.Pattern[str], text: str, at: int, end: int) -> int:
    """Return where a match ends; PENDING at the end of the text."""
    place = pattern.match(text, at, end).end()  # type: ignore[union-attr]
    is_open = place == end or (text[place] == "\\" and place + 1 == end)
    return PENDING if is_open else place
