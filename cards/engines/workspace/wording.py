"""Texts that several answers share. Pure."""

import re
from datetime import UTC, datetime

from cards.engines.workspace.limits import KIB

# Characters a streamed chunk has at least, unless it is the last one.
_CHUNK_CHARS = 12
# Characters of a session's title.
_TITLE_CHARS = 60

_WORD = re.compile(r"\s*\S+\s*|\s+")


def chunks_of(text: str) -> list[str]:
    """Return `text` cut between words into chunks of a few; joined, it is whole."""
    chunks: list[str] = []
    chunk = ""
    for word in _WORD.findall(text):
        chunk += word
        if len(chunk) >= _CHUNK_CHARS:
            chunks.append(chunk)
            chunk = ""
    return [*chunks, chunk] if chunk else chunks


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, such as "1 file" or "2,000 matches"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def sized(size_bytes: int) -> str:
    """Return a size for people, such as "12 B" or "3.4 KiB"."""
    if size_bytes < KIB:
        return f"{size_bytes} B"
    size = size_bytes / KIB
    for unit in ("KiB", "MiB", "GiB"):
        if size < KIB or unit == "GiB":
            break
        size /= KIB
    return f"{size:.1f} {unit}"


def dated(seconds: float) -> str:
    """Return a time of the disk for people, in UTC to the minute."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"


def timed(seconds: float) -> str:
    """Return a time of the disk for people, in UTC to the second."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def title_of(text: str) -> str:
    """Return the title of a session that begins with `text`; "" for no text."""
    words = " ".join(text[: 20 * _TITLE_CHARS].split())
    if len(words) <= _TITLE_CHARS:
        return words
    cut = words[: _TITLE_CHARS - 1]
    return f"{cut.rpartition(' ')[0] or cut}…"


def shortened(line: str, limit: int) -> str:
    """Return a line without its end, and a mark, when it is longer than `limit`."""
    return line if len(line) <= limit else f"{line[:limit]}…"


def in_code(text: str) -> str:
    """Return text as inline code of Markdown, whatever backticks it holds."""
    runs = {len(run) for run in re.findall("`+", text)}
    fence = "`" * next(n for n in range(1, len(runs) + 2) if n not in runs)
    pad = " " if text[:1] == "`" or text[-1:] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def unquoted(text: str) -> str:
    """Return `text` without the one pair of quotes around it, else as it is."""
    if len(text) > 1 and text[0] in "\"'`" and text.find(text[0], 1) == len(text) - 1:
        return text[1:-1]
    return text


def named(path: str) -> str:
    """Return a path as Markdown; the workspace itself in words."""
    return in_code(path) if path else "the workspace"
