"""All open sockets of the process: those that stall are closed, in the end all are.

Spec: issue "Liveness and ownership" 7, 10; design.md 3, Slow clients.
"""

import asyncio
from typing import Protocol

from cards.transport.stalls import Progress

#: Seconds that a client has to take a close frame before its connection is cut.
CLOSE_GRACE_S = 3.0

#: Looks for stalled clients within the time that they have.
LOOKS_PER_STALL = 4


class OpenSocket(Protocol):
    """One open socket."""

    progress: Progress

    @property
    def unsent_bytes(self) -> int:
        """Bytes that the client's machine has not taken."""

    def close(self, code: int) -> None:
        """Send a close frame behind what was written."""

    def close_stalled(self) -> None:
        """Let go of a client that does not read."""

    def cut(self) -> None:
        """Drop the connection, whatever is unsent."""


class Sockets:
    """The open sockets of the process.

    Attributes:
        stalled_after_s: Seconds without progress after which a client is closed; 0
            for never.
    """

    def __init__(self) -> None:
        self.stalled_after_s = 0.0
        self._open: set[OpenSocket] = set()
        self._none_left = asyncio.Event()
        self._is_looking = False
        self._closing_code: int | None = None

    def add(self, socket: OpenSocket) -> None:
        """Know a socket that was opened."""
        self._open.add(socket)
        if self.stalled_after_s and not self._is_looking:
            self._is_looking = True
            self._look_later()
        if self._closing_code is not None:
            # It was shaking hands while all others were closed.
            socket.close(self._closing_code)

    def remove(self, socket: OpenSocket) -> None:
        """Forget a socket that is gone."""
        self._open.discard(socket)
        if not self._open:
            self._none_left.set()

    def _look_later(self) -> None:
        # One timer for all: a look at a socket takes a microsecond or two.
        delay_s = self.stalled_after_s / LOOKS_PER_STALL
        asyncio.get_running_loop().call_later(delay_s, self._look)

    def _look(self) -> None:
        # First, so that a look that fails is not the last one.
        self._look_later()
        self.close_stalled(asyncio.get_running_loop().time())

    def close_stalled(self, now: float) -> None:
        """Close those that have read nothing for too long."""
        for socket in tuple(self._open):
            stalled_s = socket.progress.look(socket.unsent_bytes, now)
            if stalled_s >= self.stalled_after_s:
                socket.close_stalled()

    async def close_all(self, code: int) -> None:
        """Close all sockets behind what was written to them, within a bound.

        Those that open later are closed at once.
        """
        self._closing_code = code
        for socket in tuple(self._open):
            socket.close(code)
        self._none_left.clear()
        if self._open:
            try:
                async with asyncio.timeout(CLOSE_GRACE_S):
                    await self._none_left.wait()
            except TimeoutError:
                for socket in tuple(self._open):
                    socket.cut()
