"""The clock and the randomness of the process, for the shells to pass on."""

import os
import time
from datetime import UTC, datetime


def now_ms() -> int:
    """Return the present Unix time in whole milliseconds."""
    return time.time_ns() // 1_000_000


def utc_of(unix_ms: int) -> datetime:
    """Return a Unix time in milliseconds as a date."""
    return datetime.fromtimestamp(unix_ms / 1000, UTC)


def utc_now() -> datetime:
    """Return the present time, in whole milliseconds as the wire has them."""
    return utc_of(now_ms())


class Entropy:
    """Random hex digits from the operating system, fetched in blocks.

    One system call serves hundreds of ids. Not for secrets that must not lie in
    memory, and not for several threads.
    """

    _BLOCK_BYTES = 4096

    def __init__(self) -> None:
        self._digits = ""
        self._next = 0

    def hex(self, byte_count: int) -> str:
        """Return `byte_count` random bytes as lower-case hex digits."""
        end = self._next + 2 * byte_count
        if end > len(self._digits):
            self._digits = os.urandom(self._BLOCK_BYTES).hex()
            self._next, end = 0, 2 * byte_count
        digits = self._digits[self._next : end]
        self._next = end
        return digits
