"""What daphne's ASGI surface lacks, by a subclass of its protocol.

`install()` puts it in place; config/asgi.py calls it.

Spec: Ruling E22; docs/decisions/0002-daphne-protocol-subclass.md.
"""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

from cards.protocol.close_codes import CloseCode
from cards.transport.asgi import Send, SendTransport
from cards.transport.daphne_http import IsKnown, install_http
from cards.transport.framing import Batch
from cards.transport.sockets import CLOSE_GRACE_S, Sockets
from cards.transport.stalls import Progress
from cards.transport.unsent import unsent_bytes

logger = logging.getLogger(__name__)

#: Bytes of answers that a client may have waiting while it is behind, and what each
#: of them costs beside its own.
MAX_UNREAD_ANSWER_BYTES = 1024 * 1024
ANSWER_OVERHEAD_BYTES = 64

#: Messages of one client that may wait for its consumer before the socket is read no
#: further, and seconds until that is looked at again.
MAX_WAITING_MESSAGES = 1000
READ_AGAIN_S = 0.02

#: Seconds that the work of a stop may take, apart from the closing of sockets.
STOP_TIMEOUT_S = 75.0

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

    def __init__(self, protocol: "CardwireWebSocketProtocol", now: float) -> None:
        self._protocol = protocol
        self._callback: Callable[[], None] | None = None
        self._unread_answer_bytes = 0
        self.progress = Progress(now)
        self.is_writable = True

    def on_writable(self, callback: Callable[[], None]) -> None:
        """See `Transport.on_writable`."""
        self._callback = callback

    def write(self, batch: Batch) -> None:
        """See `Transport.write`."""
        if self._protocol.state != WebSocketProtocol.STATE_OPEN:
            return
        size = len(batch.framed)
        if self.may_write(size):
            self.progress.written_bytes += size
            self._protocol.transport.write(batch.framed)

    def may_write(self, size: int) -> bool:
        """Tell whether there is room for so many bytes; if not, close the client."""
        if self.is_writable:
            return True
        # Only answers to the client's own frames come now; one that asks and asks
        # and reads nothing must not fill the memory.
        self._unread_answer_bytes += size + ANSWER_OVERHEAD_BYTES
        if self._unread_answer_bytes <= MAX_UNREAD_ANSWER_BYTES:
            return True
        self.close_stalled()
        return False

    def close(self, code: int) -> None:
        """See `Transport.close`; daphne itself refuses most codes below 3000."""
        if self._protocol.state == WebSocketProtocol.STATE_OPEN:
            self._protocol.sendCloseFrame(code=code, isReply=False)

    def close_stalled(self) -> None:
        """Close a client that does not read; it may come back and resume."""
        if self._protocol.state == WebSocketProtocol.STATE_OPEN:
            logger.info(
                "a client does not read; closing with %d", CloseCode.TRY_AGAIN_LATER
            )
            # Behind what the client does not read: autobahn cuts it after the grace.
            self.close(CloseCode.TRY_AGAIN_LATER)
        elif self._protocol.state == WebSocketProtocol.STATE_CLOSED:
            # It said goodbye and does not take what was on its way; nobody else
            # waits for that any more.
            self.cut()

    def cut(self) -> None:
        """Drop the connection, whatever is unsent."""
        self._protocol.transport.abortConnection()

    @property
    def unsent_bytes(self) -> int:
        """Bytes that the client's machine has not taken."""
        return unsent_bytes(self._protocol.transport)

    def pauseProducing(self) -> None:  # noqa: N802
        """Twisted: the socket's buffer is full."""
        self.is_writable = False

    def resumeProducing(self) -> None:  # noqa: N802
        """Twisted: the socket's buffer has drained."""
        self.is_writable = True
        self._unread_answer_bytes = 0
        if self._callback is not None:
            self._callback()

    def stopProducing(self) -> None:  # noqa: N802
        """Twisted: the connection is lost."""
        self.is_writable = False


sockets = Sockets()


class CardwireWebSocketProtocol(WebSocketProtocol):
    """Daphne's protocol with our frame limit and a transport for the consumer."""

    #: Bytes of one inbound message; set by `install`.
    max_message_bytes = 0

    #: Whether the socket is read no further for the moment.
    is_read_paused = False

    def onConnect(self, request: Any) -> Any:  # noqa: N802
        """Prepare the transport, then let daphne make the application."""
        # Above the limit autobahn is to close with 1009 instead of dropping the
        # connection, which no client can tell from a lost network.
        self.maxMessagePayloadSize = self.max_message_bytes
        self.maxFramePayloadSize = self.max_message_bytes
        self.failByDrop = False
        # Autobahn's own is a second: too short for a slow client.
        self.closeHandshakeTimeout = CLOSE_GRACE_S
        now = asyncio.get_running_loop().time()
        self.cardwire_transport = DaphneTransport(self, now)
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
        sockets.add(self.cardwire_transport)
        super().onOpen()

    def onMessage(self, payload: bytes, isBinary: bool) -> None:  # noqa: N803, N802
        """Hand a message on, and read no further while too many wait."""
        super().onMessage(payload, isBinary)
        is_full = self.application_queue.qsize() >= MAX_WAITING_MESSAGES
        if is_full and not self.is_read_paused:
            self.is_read_paused = True
            self.transport.pauseProducing()
            self._read_again_later()

    def _read_again_later(self) -> None:
        asyncio.get_running_loop().call_later(READ_AGAIN_S, self._read_again)

    def _read_again(self) -> None:
        if self.state == WebSocketProtocol.STATE_CLOSED:
            return
        if self.application_queue.qsize() >= MAX_WAITING_MESSAGES // 2:
            self._read_again_later()
        else:
            self.is_read_paused = False
            self.transport.resumeProducing()

    def onPing(self, payload: bytes) -> None:  # noqa: N802
        """Answer, within what a client that is behind may have waiting."""
        if self.cardwire_transport.may_write(len(payload)):
            super().onPing(payload)

    def _sendAutoPing(self) -> None:  # noqa: N802
        # Daphne asks for another ping after 20 s, although the client has 30 s to
        # answer the first. Autobahn knows one ping only: it would refuse the late
        # answer, forget the first timer without stopping it, and drop the client.
        if self.autoPingTimeoutCall is None:
            super()._sendAutoPing()

    def onAutoPingTimeout(self) -> None:  # noqa: N802
        """Drop a client that does not answer, unless it was behind meanwhile."""
        # Behind megabytes that a slow client reads, its pong takes its time; whether
        # it reads at all is looked at elsewhere. Daphne soon pings again.
        now = asyncio.get_running_loop().time()
        transport = self.cardwire_transport
        behind_s = now - transport.progress.behind_at
        if sockets.stalled_after_s and (
            transport.unsent_bytes or behind_s < self.autoPingTimeout
        ):
            self.autoPingTimeoutCall = None
        else:
            super().onAutoPingTimeout()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        """Forget the socket, then let daphne tell the application."""
        if hasattr(self, "cardwire_transport"):
            sockets.remove(self.cardwire_transport)
        super().connectionLost(reason)


def open_transport(send: Send) -> DaphneTransport | SendTransport:
    """Return the transport of the connection whose consumer runs in this task."""
    return _daphne_transport.get() or SendTransport(send)


def install(
    *,
    max_message_bytes: int,
    max_body_bytes: int,
    stalled_after_s: float,
    is_known: IsKnown,
    on_start: Callable[[], None],
    on_stop: Callable[[], Awaitable[None]],
    address_for_logs: Callable[[str], str],
    stop_timeout_s: float = STOP_TIMEOUT_S,
) -> None:
    """Have daphne make our protocols for every connection of this process.

    Args:
        max_message_bytes: Largest inbound message; a larger one closes with 1009.
        max_body_bytes: Largest body of a request; a larger one is refused with 413.
        stalled_after_s: Seconds after which a client that reads nothing is closed
            with 1013, or cut if it speaks HTTP; 0 for never.
        is_known: Tells whether somebody who may be here sends a request; a large body
            of anybody else is refused with 401.
        on_start: Called once the event loop runs.
        on_stop: Awaited on SIGTERM and SIGINT while all sockets still work; then they
            are closed with 1001, however it went.
        address_for_logs: What the access log may keep of an address.
        stop_timeout_s: Seconds that `on_stop` may take before the process ends all the
            same.

    On another server nothing calls `on_start` and `on_stop`.

    Spec: Ruling E22; design.md 3.
    """
    CardwireWebSocketProtocol.max_message_bytes = max_message_bytes
    sockets.stalled_after_s = stalled_after_s
    WebSocketFactory.protocol = CardwireWebSocketProtocol
    install_http(
        max_body_bytes=max_body_bytes,
        stalled_after_s=stalled_after_s,
        is_known=is_known,
    )
    # Both are loaded by now if daphne is the server, and only then.
    server = sys.modules.get("daphne.server")
    reactor = sys.modules.get("twisted.internet.reactor")
    if server is None or reactor is None:
        return
    # At the start itself the asyncio loop is not running yet.
    reactor.callWhenRunning(reactor.callLater, 0, _start, on_start)
    kill_applications = server.Server.kill_all_applications

    def stop_first(self: Any) -> Any:
        # Daphne cancels every application at once, and with them what they would
        # still say.
        stopping = Deferred.fromFuture(
            asyncio.ensure_future(_stop(on_stop, stop_timeout_s))
        )
        return stopping.addCallback(lambda _: kill_applications(self))

    server.Server.kill_all_applications = stop_first
    log_action = server.Server.log_action

    def log_without_secrets(
        self: Any, protocol: str, action: str, details: dict[str, Any]
    ) -> None:
        # People put secrets into addresses, and we refuse them; the access log must
        # not keep them either. Spec: case FR-129.
        path = address_for_logs(str(details.get("path", "")))
        log_action(self, protocol, action, details | {"path": path})

    server.Server.log_action = log_without_secrets


def _start(on_start: Callable[[], None]) -> None:
    try:
        on_start()
    except Exception:
        # Twisted's log leads nowhere in daphne.
        logger.exception("the start was not orderly")


async def _stop(on_stop: Callable[[], Awaitable[None]], timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await on_stop()
    except TimeoutError:
        logger.warning("the stop took more than %g s; ending all the same", timeout_s)
    except Exception:
        logger.exception("the stop was not orderly; the next worker cleans up")
    # Nothing that went wrong before is the fault of those who wait at their sockets.
    await sockets.close_all(CloseCode.GOING_AWAY)
