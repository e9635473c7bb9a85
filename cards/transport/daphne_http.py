"""HTTP bodies on daphne: bounded memory both ways.

| plain daphne | here |
|---|---|
| puts a whole request body into the application's queue | a piece, when asked for |
| hands a form's body to Twisted, which parses it in memory | the application parses |
| takes bodies of any size | refuses those over a limit, early |
| takes bodies of anybody | a large one waits until its sender is known |
| `send` never waits | waits while the socket's buffer is full |
| waits for ever for a client that takes nothing | cuts it |
| sends the body's second part after HEAD | sends none |

`cards.transport.daphne.install` puts it in place. Twisted spools a body into a
temporary file before daphne makes the application; that stays. WebSockets, HTTP/2 and
other servers are left as they are.

Spec: issue "Artifacts" 4; docs/decisions/0002-daphne-protocol-subclass.md.
"""

import asyncio
import errno
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any, BinaryIO

from daphne import http_protocol
from daphne.http_protocol import WebRequest
from twisted.web import http
from twisted.web.http_headers import Headers

from cards.transport.sockets import Sockets
from cards.transport.stalls import Progress
from cards.transport.unsent import buffered_bytes, unsent_bytes

logger = logging.getLogger(__name__)

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]
IsKnown = Callable[[Message], Awaitable[bool]]

#: Bytes of a request's body that the application gets at once; between two of them the
#: event loop goes on with others.
PIECE_BYTES = 64 * 1024

#: Bytes of a body that are taken of anybody; its sender must be known before more is
#: stored. Spec: none; a form is smaller.
ANYBODYS_BODY_BYTES = 1024 * 1024

#: Bytes of a body that daphne, which joins them to the rest in memory, may find behind
#: a WebSocket handshake, where none belongs.
MAX_HANDSHAKE_BODY_BYTES = 64 * 1024

#: Seconds for which the rest of a refused body is read and thrown away. Whoever is cut
#: while sending may never see the answer.
LINGER_S = 10.0

#: What the client is told; the shape is that of all our REST errors.
_REFUSALS = {
    HTTPStatus.UNAUTHORIZED: (
        "sign in first, or show a token that holds as Authorization: Bearer"
    ),
    HTTPStatus.SERVICE_UNAVAILABLE: "who sends the body cannot be found out right now",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "the body is too large",
    HTTPStatus.INSUFFICIENT_STORAGE: "there is no room to store the body",
}

_DISK_IS_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

#: Connections on which a response was written, to find those that take nothing of it.
outflows = Sockets()

#: Set while daphne makes the application of a request; see `_daphne_transport` in
#: cards/transport/daphne.py.
_daphne_request: ContextVar["CardwireRequest | None"] = ContextVar(
    "cardwire_daphne_request", default=None
)


class Outflow:
    """What goes out on one HTTP connection: whether there is room, how it progresses.

    Attributes:
        is_lost: Whether the connection is gone.
    """

    def __init__(self, transport: Any, now: float) -> None:
        self._transport = transport
        self._has_room = asyncio.Event()
        self._has_room.set()
        self.progress = Progress(now)
        self.is_lost = False

    async def room(self) -> None:
        """Return when the socket's buffer has room, or when nobody is there to fill it.

        Twisted calls a buffer above 64 KiB full until it is empty again.
        """
        if self.is_lost:
            # What goes on to send to nobody must still let others have a turn.
            await asyncio.sleep(0)
        else:
            await self._has_room.wait()

    def fill(self) -> None:
        """Have senders wait."""
        self._has_room.clear()

    def drain(self) -> None:
        """Have senders go on."""
        self._has_room.set()

    def count(self, written_bytes: int) -> None:
        """Know what was written, and from now on look whether it is taken."""
        self.progress.written_bytes += written_bytes
        outflows.add(self)

    def leave(self) -> None:
        """Stop looking: the connection is no longer one of HTTP."""
        outflows.remove(self)

    def lose(self) -> None:
        """Let go of a connection that is gone, and of those who wait for it."""
        self.is_lost = True
        self.drain()
        self.leave()

    @property
    def unsent_bytes(self) -> int:
        """See `OpenSocket.unsent_bytes`."""
        return unsent_bytes(self._transport)

    def close(self, code: int) -> None:
        """See `OpenSocket.close`; HTTP knows no such farewell."""
        self.cut()

    def close_stalled(self) -> None:
        """Cut a client that takes nothing; it may ask for the rest by a range."""
        logger.info("a client does not take its response; cutting it")
        self.cut()

    def cut(self) -> None:
        """Drop the connection, whatever is unsent."""
        self._transport.abortConnection()


class CardwireChannel(http.HTTPChannel):
    """Twisted's side of an HTTP/1 connection, with its outflow.

    The outflow is the connection's and not the request's: on a connection that stays
    open the next request finds the buffer as the last one left it.
    """

    def connectionMade(self) -> None:  # noqa: N802
        """Begin; the channel registers itself as the transport's producer."""
        self.outflow = Outflow(self.transport, asyncio.get_running_loop().time())
        super().connectionMade()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        """Have nobody wait for this client any longer."""
        self.outflow.lose()
        super().connectionLost(reason)

    def pauseProducing(self) -> None:  # noqa: N802
        """Twisted: the socket's buffer is full."""
        self.outflow.fill()
        super().pauseProducing()

    def hold(self) -> None:
        """Read nothing more of the client."""
        self._networkProducer.pauseProducing()

    def release(self) -> None:
        """Go on to read."""
        self._networkProducer.resumeProducing()

    def resumeProducing(self) -> None:  # noqa: N802
        """Twisted: the socket's buffer has drained."""
        super().resumeProducing()
        self.outflow.drain()

    def writeHeaders(self, *arguments: Any) -> None:  # noqa: N802
        """Write the head of a response."""
        self._count(super().writeHeaders, *arguments)

    def write(self, data: bytes) -> None:
        """Write a part of a response."""
        self._count(super().write, data)

    def writeSequence(self, iovec: Any) -> None:  # noqa: N802
        """Write parts of a response."""
        self._count(super().writeSequence, iovec)

    def _count(self, write: Callable[..., None], *arguments: Any) -> None:
        before = buffered_bytes(self.transport)
        write(*arguments)
        self.outflow.count(buffered_bytes(self.transport) - before)


class RequestBody:
    """A spooled body that daphne finds empty, so that its queue stays so too."""

    def __init__(self, spooled: BinaryIO) -> None:
        self._spooled = spooled

    def read(self, _size: int = -1) -> bytes:
        """Give daphne nothing."""
        return b""

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place in the body."""
        return self._spooled.seek(offset, whence)

    @property
    def closed(self) -> bool:
        """Whether all of it was handed over, or nobody wants it any more."""
        return self._spooled.closed

    def close(self) -> None:
        """Give the file back."""
        # On a full disk this fails as well; the file is closed all the same.
        with suppress(OSError):
            self._spooled.close()

    def next_message(self) -> Message:
        """Return the next piece as the application gets it; closed behind the last."""
        piece = self._spooled.read(PIECE_BYTES)
        more_body = len(piece) == PIECE_BYTES
        if not more_body:
            # The application has its own copy now.
            self.close()
        return {"type": "http.request", "body": piece, "more_body": more_body}


class CardwireRequest(WebRequest):
    """Daphne's request with bounded bodies."""

    #: Bytes of the largest request body; set by `install_http`.
    max_body_bytes = 0

    #: Tells whether somebody who may be here sends a request, by its head as ASGI has
    #: it; set by `install_http`.
    is_known: IsKnown | None = None

    #: Twisted's: the spooled body, or what daphne finds in its place.
    content: Any

    _received_bytes = 0
    _is_refused = False
    _is_whole = False
    _asking: asyncio.Task[None] | None = None
    _lingering: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Twisted would read a form into memory as a whole, for arguments that nobody
        # looks at.
        super().__init__(*args, parsePOSTFormSubmission=False, **kwargs)

    # The body comes in.

    def gotLength(self, length: int | None) -> None:  # noqa: N802
        """Twisted: the head is there. None for a body of unknown length."""
        if length is not None and length > self._limit_bytes:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        try:
            super().gotLength(length)
        except OSError:
            self._refuse(HTTPStatus.INSUFFICIENT_STORAGE)
            return
        if length is not None and length > ANYBODYS_BODY_BYTES:
            self._ask_who_sends()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        """Twisted: a part of the body is there."""
        if self._is_refused:
            return
        self._received_bytes += len(data)
        if self._received_bytes > self._limit_bytes:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        if self._received_bytes > ANYBODYS_BODY_BYTES:
            self._ask_who_sends()
        try:
            super().handleContentChunk(data)
        except OSError:
            self._refuse(HTTPStatus.INSUFFICIENT_STORAGE)

    def _ask_who_sends(self) -> None:
        """Have the client wait until it is known who sends, once."""
        if self._asking is not None or self.is_known is None:
            return
        self.channel.hold()
        # Twisted would tell the client to go on before that is clear.
        expects = self.requestHeaders.hasHeader(b"Expect")
        self.requestHeaders.removeHeader(b"Expect")
        headers = [
            (name.lower(), value)
            for name, values in self.requestHeaders.getAllRawHeaders()
            for value in values
        ]
        self._asking = asyncio.get_running_loop().create_task(
            self._hear_who_sends({"type": "http", "headers": headers}, expects)
        )

    async def _hear_who_sends(self, head: Message, expects: bool) -> None:
        status: HTTPStatus | None = None
        try:
            if self.is_known is not None and not await self.is_known(head):
                status = HTTPStatus.UNAUTHORIZED
        except Exception:
            logger.exception("who sends a body was not found out")
            status = HTTPStatus.SERVICE_UNAVAILABLE
        # What came whole with the first bytes is the application's to judge.
        if self._is_whole or self._is_refused:
            return
        if status is not None:
            self._refuse(status)
        elif expects:
            self.channel._send100Continue()
        self.channel.release()

    def requestReceived(  # noqa: N802
        self, command: bytes, path: bytes, version: bytes
    ) -> None:
        """Twisted: the request is whole."""
        self._is_whole = True
        if self._asking is not None and not self._asking.done():
            self.channel.release()
        if not self._is_refused:
            try:
                # The last bytes may be in the file's buffer only.
                self.content.flush()
            except OSError:
                self._refuse(HTTPStatus.INSUFFICIENT_STORAGE)
        if self._is_refused:
            self.channel.loseConnection()
        else:
            super().requestReceived(command, path, version)

    @property
    def _is_handshake(self) -> bool:
        upgrades = self.requestHeaders.getRawHeaders(b"Upgrade", [b""])
        return bool(upgrades[0].lower() == b"websocket")

    @property
    def _limit_bytes(self) -> int:
        return MAX_HANDSHAKE_BODY_BYTES if self._is_handshake else self.max_body_bytes

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer before the request is whole, and end the connection behind it."""
        logger.info("refused the body of a request with %d", status)
        self._is_refused = True
        self._close_content()
        # Nobody is to be told to go on.
        self.requestHeaders.removeHeader(b"Expect")
        body = _refusal_body(status)
        headers = Headers()
        for name, value in _refusal_headers(body):
            headers.addRawHeader(name, value)
        if status == HTTPStatus.UNAUTHORIZED:
            headers.addRawHeader(b"WWW-Authenticate", b"Bearer")
        headers.addRawHeader(b"Connection", b"close")
        code, reason = str(status.value).encode(), status.phrase.encode()
        self.channel.writeHeaders(b"HTTP/1.1", code, reason, headers)
        self.channel.write(body)
        self._lingering = asyncio.get_running_loop().call_later(
            LINGER_S, self.channel.outflow.cut
        )

    def _close_content(self) -> None:
        if self.content is not None:
            # On a full disk closing fails as well; the file is closed all the same.
            with suppress(OSError):
                self.content.close()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        """Give back what the request holds, then let daphne tell the application."""
        for waiting in (self._lingering, self._asking):
            if waiting is not None:
                waiting.cancel()
        self._close_content()
        super().connectionLost(reason)

    # The application takes it, and answers.

    def process(self) -> Any:
        """Have daphne make the application, or hand the connection to a WebSocket."""
        self.outflow: Outflow | None = getattr(self.channel, "outflow", None)
        if self._is_handshake:
            if self.outflow is not None:
                self.outflow.leave()
            return super().process()
        self.content = self._body = RequestBody(self.content)
        token = _daphne_request.set(self)
        try:
            return super().process()
        finally:
            _daphne_request.reset(token)

    async def receive(self, receive: Receive) -> Message:
        """Return the next piece of the body, then what daphne has to say."""
        # An application that takes all pieces in a row lets others have their turn.
        await asyncio.sleep(0)
        if not self._body.closed:
            return self._body.next_message()
        message = await receive()
        # Daphne's own "body" comes first, which is empty.
        return await receive() if message["type"] == "http.request" else message

    async def send(self, send: Send, message: Message) -> None:
        """Hand a message to daphne once there is room for it."""
        # Before and not after: many small responses one behind the other wait too.
        if message["type"] == "http.response.body" and self.outflow is not None:
            await self.outflow.room()
        await send(message)

    def handle_reply(self, message: Message) -> None:
        """Daphne: the application's message is to be written."""
        has_no_body = self.method == b"HEAD" or self.code in http.NO_BODY_CODES
        if has_no_body and message.get("type") == "http.response.body":
            # Twisted leaves the first part out, and daphne passes it by afterwards:
            # the client would read the second as its next response.
            message = message | {"body": b""}
        super().handle_reply(message)

    def handle_exception(self, exception: BaseException) -> None:
        """Daphne: the application failed."""
        if self.has_begun:
            # Only this tells the client that something is missing; another head would
            # be an error that ends daphne's look after all applications.
            self.channel.transport.abortConnection()
        else:
            super().handle_exception(exception)

    @property
    def has_begun(self) -> bool:
        """Whether the response has."""
        return bool(self._response_started)


class BoundedBodies:
    """An ASGI application that bounds the bodies of another one on our daphne.

    Args:
        application: Gets the same scope, and `receive` and `send` that wait.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        request = _daphne_request.get()
        if request is None:
            await self._application(scope, receive, send)
            return
        # Tasks that the application leaves behind are not to keep the request.
        _daphne_request.set(None)

        async def receive_piece() -> Message:
            return await request.receive(receive)

        async def send_with_room(message: Message) -> None:
            await request.send(send, message)

        try:
            await self._application(scope, receive_piece, send_with_room)
        except OSError as error:
            # Django copies the body to the disk before any view could answer.
            if error.errno not in _DISK_IS_FULL or request.has_begun:
                raise
            logger.warning("a request failed: %s", error)
            await _answer(send, HTTPStatus.INSUFFICIENT_STORAGE)


async def _answer(send: Send, status: HTTPStatus) -> None:
    body = _refusal_body(status)
    headers = _refusal_headers(body)
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _refusal_body(status: HTTPStatus) -> bytes:
    return json.dumps({"detail": _REFUSALS[status]}).encode()


def _refusal_headers(body: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"Content-Type", b"application/json"),
        (b"Content-Length", str(len(body)).encode()),
        (b"X-Content-Type-Options", b"nosniff"),
    ]


def _make_channel(_factory: Any) -> Any:
    # The wrapper is Twisted's own; it puts another channel in when a client speaks
    # HTTP/2.
    return http._GenericHTTPChannelProtocol(CardwireChannel())


def install_http(
    *, max_body_bytes: int, stalled_after_s: float, is_known: IsKnown | None = None
) -> None:
    """Have daphne make our requests and channels; another server notices nothing.

    Args:
        max_body_bytes: Largest body of a request; a larger one is refused with 413.
        stalled_after_s: Seconds after which a client that takes nothing of a response
            is cut; 0 for never.
        is_known: See `CardwireRequest`; None lets anybody send large bodies.

    Spec: issue "Artifacts" 4.
    """
    CardwireRequest.max_body_bytes = max_body_bytes
    CardwireRequest.is_known = staticmethod(is_known) if is_known else None
    outflows.stalled_after_s = stalled_after_s
    http_protocol.WebRequest = CardwireRequest
    http_protocol.HTTPFactory.protocol = _make_channel
