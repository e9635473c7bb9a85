"""Text of users in a form that an operator can trust.

Escaping of markup is the templates' business, on plain strings, always. Here
characters that turn, hide or fake text become visible.
"""

import re
from datetime import UTC, datetime

#: Controls, direction marks, invisible and tag characters, and lone surrogates; not
#: tab and newline. A zero-width joiner makes one emoji of several, but two ids that
#: differ by one must not look alike.
_DECEPTIVE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)

_KIB = 1024


def shown(text: str, limit: int | None = None) -> str:
    r"""Return `text` with deceptive characters as escapes such as `\u202e`.

    Args:
        limit: Most characters of `text`, a cut being marked with `…`; None for all.
    """
    is_cut = limit is not None and len(text) > limit
    return _DECEPTIVE.sub(_escape, text[:limit]) + ("…" if is_cut else "")


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def shown_time(moment: datetime) -> str:
    """Return a time in UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def shown_size(byte_count: int) -> str:
    """Return a size with its unit, bytes up to 10 KiB."""
    if byte_count < 10 * _KIB:
        return f"{byte_count:,} B"
    if byte_count < 10 * _KIB * _KIB:
        return f"{byte_count / _KIB:,.0f} KiB"
    return f"{byte_count / _KIB / _KIB:,.0f} MiB"
