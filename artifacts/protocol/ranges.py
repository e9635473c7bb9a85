"""Which part of a file a client asks for.

| `Range` | answer |
|---|---|
| none, another unit, several ranges, or what is none | the whole file |
| `bytes=A-B`, `bytes=A-` | from A on, as far as the file goes |
| `bytes=-N` | the last N bytes |
| a first byte behind the end, or the last 0 bytes | `RangeUnsatisfiable` |

Spec: RFC 9110 14; issue "Artifacts" 4.
"""

import re
from dataclasses import dataclass
from typing import Final

#: Python reads no longer numbers, and no file is as long.
_ONE_RANGE: Final = re.compile(
    r" *bytes *= *([0-9]{0,1000})-([0-9]{0,1000}) *", re.IGNORECASE
)


class RangeUnsatisfiable(Exception):
    """The file has none of the bytes that are asked for."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A part of a file; counted from 0, both ends belong to it."""

    first: int
    last: int

    @property
    def size_bytes(self) -> int:
        """How many bytes it has; at least one."""
        return self.last - self.first + 1


def read_range(header: str, size_bytes: int) -> ByteRange | None:
    """Return the part that a `Range` asks for; None for the whole file.

    Args:
        header: "" for none.
        size_bytes: Of the file.

    Raises:
        RangeUnsatisfiable: The file has none of these bytes.
    """
    found = _ONE_RANGE.fullmatch(header)
    if found is None:
        return None
    first, last = found.groups()
    if not first:
        return _suffix(last, size_bytes)
    if last and int(last) < int(first):
        return None
    if int(first) >= size_bytes:
        raise RangeUnsatisfiable
    end = size_bytes - 1
    return ByteRange(int(first), min(int(last), end) if last else end)


def _suffix(length: str, size_bytes: int) -> ByteRange | None:
    if not length:
        return None
    if int(length) == 0:
        raise RangeUnsatisfiable
    # A part of nothing cannot be named.
    if size_bytes == 0:
        return None
    return ByteRange(max(size_bytes - int(length), 0), size_bytes - 1)
