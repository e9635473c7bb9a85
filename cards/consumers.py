"""The consumer: from ASGI messages to a connection, and nothing more.

Spec: EMIT 2; Ruling E25.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn
from urllib.parse import parse_qs

from channels.consumer import AsyncConsumer
from channels.exceptions import StopConsumer

from cards.admission import Admission, Visit
from cards.authentication import Identity, identity_of_scope, offers_bearer
from cards.live.connection import Connection
from cards.live.hub import Hub
from cards.protocol.client_messages import AnyClientMessage, FrameLimits, Ping
from cards.protocol.close_codes import CloseCode
from cards.protocol.codec import decode_client_message
from cards.protocol.errors import RemoteProtocolError, make_error, refuse
from cards.protocol.kinds import ErrorType
from cards.transport import SendTransport, open_transport

logger = logging.getLogger(__name__)

#: Of the largest frame, how many may wait by their size.
MAX_WAITING_LARGE_FRAMES = 2

#: Frames up to this length are looked at before they wait, so that a ping is
#: answered while earlier frames wait for the database.
MAX_PING_CHARS = 4096


class CardConsumer(AsyncConsumer):
    """One WebSocket on /v1/ws.

    Args:
        hub: Where the sessions are.
        admission: Who may be here.
        idle_timeout_s: Seconds of silence after which the socket is closed; 0 for
            never.
        max_frame_bytes: Largest text frame.
        max_waiting_frames: Frames of one client that may wait to be handled; one that
            sends faster is told so.
        limits: What a frame may hold.
        allow_anonymous: Whether clients that nobody signed in may own sessions.
    """

    # The connection follows its session in this process; rings from other workers
    # come to the hub once, not to each consumer.
    channel_layer_alias = None

    def __init__(
        self,
        *,
        hub: Hub,
        admission: Admission,
        idle_timeout_s: int,
        max_frame_bytes: int,
        max_waiting_frames: int,
        limits: FrameLimits,
        allow_anonymous: bool,
    ) -> None:
        self._hub = hub
        self._admission = admission
        self._idle_timeout_s = idle_timeout_s
        self._max_frame_bytes = max_frame_bytes
        self._max_waiting_frames = max_waiting_frames
        self._limits = limits
        self._allow_anonymous = allow_anonymous
        self._transport: Any = None
        self._connection: Connection | None = None
        self._visit: Visit | None = None
        self._frames: asyncio.Queue[str | RemoteProtocolError] = asyncio.Queue()
        self._waiting_chars = 0
        self._reader: asyncio.Task[None] | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._heard_at = 0.0

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        """Serve the connection, and forget it however it ends."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            # `websocket_disconnect` may never come: a cancelled consumer only
            # passes through here.
            await self._clean_up()

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Call the handler without channels' database housekeeping.

        Channels closes old connections on a thread that all consumers share, for
        every single frame.
        """
        await getattr(self, message["type"].replace(".", "_"))(message)

    async def websocket_connect(self, message: dict[str, Any]) -> None:
        """Accept the client if it may be here, and greet it."""
        if self._hub.is_stopping:
            await self._refuse(CloseCode.GOING_AWAY)
        identity = await identity_of_scope(
            self.scope, allow_anonymous=self._allow_anonymous
        )
        if identity is None:
            await self._refuse(CloseCode.POLICY_VIOLATION)
        # On daphne they have begun already; other servers have no moment for it.
        self._hub.start()
        self._admission.start()
        self._transport = open_transport(self.send)
        subprotocol = "bearer" if offers_bearer(self.scope) else None
        await self.send({"type": "websocket.accept", "subprotocol": subprotocol})
        self._heard()
        await self._greet(identity)

    async def _refuse(self, code: CloseCode) -> NoReturn:
        # Before the upgrade: daphne answers 403, whatever the code.
        await self.send({"type": "websocket.close", "code": code})
        raise StopConsumer

    async def _greet(self, identity: Identity) -> None:
        connection = Connection(
            self._hub,
            self._transport,
            identity.principal,
            admit=self._admit,
            limits=self._limits,
        )
        try:
            self._visit = self._admission.enter(identity, self._transport.close)
        except RemoteProtocolError as refusal:
            connection.tell_error(refusal.error)
            connection.close(CloseCode.TRY_AGAIN_LATER)
            return
        self._connection = connection
        self._watch_silence()
        await connection.open(_session_id_of(self.scope))
        self._reader = asyncio.create_task(self._handle_frames(connection))

    def _admit(self, message: AnyClientMessage) -> None:
        if self._visit is not None:
            self._visit.admit(message)

    async def websocket_receive(self, message: dict[str, Any]) -> None:
        """Put a frame behind those that wait; a ping is answered at once."""
        connection = self._connection
        if connection is None:
            return
        self._heard()
        text = message.get("text")
        if text is not None and len(text) > self._max_frame_bytes:
            connection.close(CloseCode.TOO_LARGE)
        elif text is not None and _is_ping(text):
            connection.pong()
        elif self._is_full(text or ""):
            connection.refuse(
                text or "",
                make_error(
                    ErrorType.OVERLOADED,
                    f"{self._frames.qsize()} frames wait; this one had no effect",
                    code="TOO_MANY_FRAMES",
                ),
            )
        else:
            self._waiting_chars += len(text or "")
            self._frames.put_nowait(_binary_frame() if text is None else text)

    def _is_full(self, text: str) -> bool:
        most_chars = MAX_WAITING_LARGE_FRAMES * self._max_frame_bytes
        return (
            self._frames.qsize() >= self._max_waiting_frames
            or self._waiting_chars + len(text) > most_chars
        )

    async def _handle_frames(self, connection: Connection) -> None:
        while True:
            frame = await self._frames.get()
            if isinstance(frame, RemoteProtocolError):
                connection.tell_error(frame.error)
            else:
                self._waiting_chars -= len(frame)
                await connection.receive(frame)

    async def websocket_disconnect(self, message: dict[str, Any]) -> None:
        """End with the socket."""
        raise StopConsumer

    def _heard(self) -> None:
        self._heard_at = asyncio.get_running_loop().time()

    def _watch_silence(self) -> None:
        # One timer that looks again, instead of one that is set anew per frame.
        if self._idle_timeout_s == 0:
            return
        loop = asyncio.get_running_loop()
        remaining_s = self._heard_at + self._idle_timeout_s - loop.time()
        if remaining_s <= 0 and self._connection is not None:
            self._connection.close(CloseCode.GOING_AWAY)
            return
        self._idle_timer = loop.call_later(max(remaining_s, 0.05), self._watch_silence)

    async def _clean_up(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._visit is not None:
            self._admission.leave(self._visit)
        if self._connection is not None:
            self._connection.end()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait([self._reader])
        if isinstance(self._transport, SendTransport):
            await self._transport.stop()


def _session_id_of(scope: dict[str, Any]) -> str | None:
    query = parse_qs(scope.get("query_string", b"").decode("utf-8", "replace"))
    given = query.get("session_id")
    return given[-1] if given else None


def _binary_frame() -> RemoteProtocolError:
    return refuse(
        "binary frames are not supported", code="BINARY_FRAME", allowed="text frames"
    )


def _is_ping(text: str) -> bool:
    if len(text) > MAX_PING_CHARS or "ing" not in text:
        return False
    try:
        return isinstance(decode_client_message(text), Ping)
    except RemoteProtocolError:
        return False
