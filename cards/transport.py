"""What daphne's ASGI surface lacks: batches, limits, close codes, back-pressure.

An ASGI server takes one message a frame, and daphne neither waits for a slow client
nor tells. On daphne a subclass of its protocol gives the connection a `Transport`
that writes many ready frames at once and says when the client is behind. On any
other server the ordinary `send()` serves.

`install()` puts the subclass in place; config/asgi.py calls it.

Spec: Ruling E22 (close 1009); docs/decisions/0002-daphne-protocol-subclass.md.
"""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

logger = logging.getLogger(__name__)

Message = dict[str, Any]
Send = Callable[[Message], Awaitable[None]]

_TEXT_FRAME = 0x81

#: Largest payload that fits a one-byte and a two-byte length. Spec: RFC 6455 5.2.
_MAX_SHORT = 125
_MAX_MEDIUM = 0xFFFF


def frame_text(payload: bytes) -> bytes:
    """Return a payload as one unmasked WebSocket text frame. Spec: RFC 6455 5.2."""
    size = len(payload)
    if size <= _MAX_SHORT:
        return struct.pack("!BB", _TEXT_FRAME, size) + payload
    if size <= _MAX_MEDIUM:
        return struct.pack("!BBH", _TEXT_FRAME, 126, size) + payload
    return struct.pack("!BBQ", _TEXT_FRAME, 127, size) + payload


class Batch:
    """Frames to be sent together: as payloads, and ready for a socket."""

    __slots__ = ("_framed", "payloads")

    def __init__(self, payloads: Sequence[bytes]) -> None:
        self.payloads = payloads
        self._framed: bytes | None = None

    @property
    def framed(self) -> bytes:
        """The frames as they go over the wire; made once."""
        if self._framed is None:
            self._framed = b"".join(map(frame_text, self.payloads))
        return self._framed

    def __len__(self) -> int:
        return len(self.payloads)


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


#: Set while daphne makes the application of a connection; the application's task
#: inherits it. There is no room for it in the ASGI scope, which daphne builds.
_daphne_transport: ContextVar["DaphneTransport | None"] = ContextVar(
    "cardwire_daphne_transport", default=None
)


@implementer(IPushProducer)
class DaphneTransport:
    """A transport on daphne's WebSocket protocol.

    Registered with Twisted as a producer, it is told when the socket's buffer is
    full and when it has drained.
    """

    def __init__(self, protocol: "CardwireWebSocketProtocol") -> None:
        self._protocol = protocol
        self._callback: Callable[[], None] | None = None
        self.is_writable = True

    def on_writable(self, callback: Callable[[], None]) -> None:
        """See `Transport.on_writable`."""
        self._callback = callback

    def write(self, batch: Batch) -> None:
        """See `Transport.write`."""
        if self._protocol.state == WebSocketProtocol.STATE_OPEN:
            self._protocol.transport.write(batch.framed)

    def close(self, code: int) -> None:
        """See `Transport.close`; daphne itself refuses most codes below 3000."""
        if self._protocol.state == WebSocketProtocol.STATE_OPEN:
            self._protocol.sendCloseFrame(code=code, isReply=False)

    def pauseProducing(self) -> None:  # noqa: N802
        """Twisted: the socket's buffer is full."""
        self.is_writable = False

    def resumeProducing(self) -> None:  # noqa: N802
        """Twisted: the socket's buffer has drained."""
        self.is_writable = True
        if self._callback is not None:
            self._callback()

    def stopProducing(self) -> None:  # noqa: N802
        """Twisted: the connection is lost."""
        self.is_writable = False


class CardwireWebSocketProtocol(WebSocketProtocol):
    """Daphne's protocol with our frame limit and a transport for the consumer."""

    #: Bytes of one inbound message; set by `install`.
    max_message_bytes = 0

    def onConnect(self, request: Any) -> Any:  # noqa: N802
        """Prepare the transport, then let daphne make the application."""
        # Above the limit autobahn is to close with 1009 instead of dropping the
        # connection, which no client can tell from a lost network.
        self.maxMessagePayloadSize = self.max_message_bytes
        self.maxFramePayloadSize = self.max_message_bytes
        self.failByDrop = False
        self.cardwire_transport = DaphneTransport(self)
        token = _daphne_transport.set(self.cardwire_transport)
        try:
            return super().onConnect(request)
        finally:
            _daphne_transport.reset(token)

    def onOpen(self) -> None:  # noqa: N802
        """Start to hear about the socket's buffer."""
        # The HTTP channel that the upgrade came through is still registered, and
        # autobahn would swallow the error of a second producer.
        self.transport.unregisterProducer()
        self.transport.registerProducer(self.cardwire_transport, True)
        super().onOpen()


def open_transport(send: Send) -> DaphneTransport | SendTransport:
    """Return the transport of the connection whose consumer runs in this task."""
    return _daphne_transport.get() or SendTransport(send)


def install(*, max_message_bytes: int) -> None:
    """Have daphne make our protocol for every WebSocket of this process.

    Args:
        max_message_bytes: Largest inbound message; a larger one closes with 1009.

    Spec: Ruling E22.
    """
    CardwireWebSocketProtocol.max_message_bytes = max_message_bytes
    WebSocketFactory.protocol = CardwireWebSocketProtocol
