"""What a benchmark asks a server to stream, in the words of a user message.

Our engine and both references follow the same orders, so that the servers differ in
nothing but what they do with a frame.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

#: Makes a frame of ours 480 bytes, the size that the project's figures speak of.
CHUNK = "lorem ipsum dolor sit amet, consectetur ad"

_ORDER = re.compile(
    r"(?P<count>\d+) chunks(?: every (?P<ms>\d+) ms)?(?: from (?P<ns>\d+))?"
)
_STAMP = re.compile(rb'"chunk":"@(\d+);')


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A number of chunks to stream.

    Attributes:
        period_ms: Milliseconds from chunk to chunk; 0 for as fast as possible.
        start_ns: When the first chunk is due, on the monotonic clock, which all
            processes of a machine share; 0 for at once.
    """

    count: int
    period_ms: int = 0
    start_ns: int = 0

    @property
    def text(self) -> str:
        """The words that `parse_order` understands."""
        words = f"{self.count} chunks"
        if self.period_ms:
            words += f" every {self.period_ms} ms"
        if self.start_ns:
            words += f" from {self.start_ns}"
        return words


def parse_order(text: str) -> Order:
    """Return the order in a message's text.

    Raises:
        ValueError: It is none.
    """
    match = _ORDER.fullmatch(text)
    if match is None:
        raise ValueError(f"not an order: {text!r}")
    return Order(
        count=int(match["count"]),
        period_ms=int(match["ms"] or 0),
        start_ns=int(match["ns"] or 0),
    )


async def follow_order(order: Order, emit: Callable[[str], Awaitable[None]]) -> None:
    """Emit the chunks of an order; a paced one says when it was emitted."""
    await _sleep_until(order.start_ns)
    if not order.period_ms:
        for _ in range(order.count):
            await emit(CHUNK)
        return
    for number in range(order.count):
        await _sleep_until(order.start_ns + number * order.period_ms * 1_000_000)
        await emit(f"@{time.monotonic_ns()};".ljust(len(CHUNK), "."))


async def _sleep_until(due_ns: int) -> None:
    left_ns = due_ns - time.monotonic_ns()
    if left_ns > 0:
        await asyncio.sleep(left_ns / 1e9)


def emitted_ns(frame: bytes) -> int | None:
    """Return when a paced chunk was emitted; None if the frame holds none."""
    match = _STAMP.search(frame)
    return int(match[1]) if match else None
