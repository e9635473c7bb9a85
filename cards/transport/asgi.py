"""The way out of a connection, and the one that any ASGI server has."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from cards.transport.framing import Batch

Message = dict[str, Any]
Send = Callable[[Message], Awaitable[None]]


class Transport(Protocol):
    """The way out of one connection."""

    @property
    def is_writable(self) -> bool:
        """Whether the client keeps up; when False, write nothing but small answers."""

    def on_writable(self, callback: Callable[[], None]) -> None:
        """Have this called each time the client has caught up."""

    def write(self, batch: Batch) -> None:
        """Send frames in order; never blocks, does nothing after the end."""

    def close(self, code: int) -> None:
        """Close with any code of RFC 6455."""


class SendTransport:
    """A transport over plain ASGI `send`, for servers that are not daphne.

    A task of its own sends what was written, and the connection is writable when
    nothing waits. The server's `send` may wait for the client, and then so do we.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: list[Message] = []
        self._wake = asyncio.Event()
        self._callback: Callable[[], None] | None = None
        self._task = asyncio.create_task(self._run())

    @property
    def is_writable(self) -> bool:
        """See `Transport.is_writable`."""
        return not self._waiting

    def on_writable(self, callback: Callable[[], None]) -> None:
        """See `Transport.on_writable`."""
        self._callback = callback

    def write(self, batch: Batch) -> None:
        """See `Transport.write`."""
        self._put(
            [
                {"type": "websocket.send", "text": payload.decode()}
                for payload in batch.payloads
            ]
        )

    def close(self, code: int) -> None:
        """See `Transport.close`."""
        self._put([{"type": "websocket.close", "code": code}])

    def _put(self, messages: list[Message]) -> None:
        self._waiting.extend(messages)
        self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                messages, self._waiting = self._waiting, []
                for message in messages:
                    await self._send(message)
            if self._callback is not None:
                self._callback()

    async def stop(self) -> None:
        """End the sending task; what waits is dropped with the connection."""
        self._task.cancel()
        # With its exception: a `send` that fails means that the client is gone.
        await asyncio.gather(self._task, return_exceptions=True)
