"""A WebSocket client that is faster than any of the servers it measures.

It never decodes what it only counts: headers are walked, payloads stay where the
kernel put them. About two million frames a second on one core.

Spec: RFC 6455 4.1, 5.2.
"""

import base64
import os
import selectors
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Final, Self

#: Seconds without a byte after which a server counts as stuck.
PATIENCE_S: Final = 60.0

#: Bytes read at once; a frame larger than that makes the buffer grow.
BUFFER_BYTES: Final = 256 * 1024

#: RFC 6455 5.2: opcodes, with FIN set.
_TEXT: Final = 0x81
_CLOSE: Final = 0x88
_PING: Final = 0x89
_PONG: Final = 0x8A

_CARD_CLOSED: Final = b'"card.close"'
_OF_A_TURN: Final = b'"card_kind":"turn"'


class ConnectionLost(Exception):
    """The server refused the connection or ended it."""


class WireConnection:
    """One client connection, counting what it receives.

    Args:
        port: Of a server on this machine.
        path: With the query string.
    """

    def __init__(self, port: int, path: str = "/v1/ws") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0
        #: Text frames counted or taken so far, and their payload bytes.
        self.frames = 0
        self.payload_bytes = 0
        #: Turns whose `card.close` was among them.
        self.turns_closed = 0
        self._upgrade(port, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Say goodbye and give the socket back."""
        try:
            self._send(_CLOSE, struct.pack("!H", 1000))
        except OSError:
            pass  # Whoever is gone needs no goodbye.
        finally:
            self.socket.close()

    def _upgrade(self, port: int, path: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Origin: http://127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        while (head := self._buffer.find(b"\r\n\r\n", 0, self._end)) < 0:
            self.fill()
        if not self._buffer.startswith(b"HTTP/1.1 101"):
            raise ConnectionLost(self._buffer[:head].decode("latin-1"))
        self._start = head + 4

    # Sending.

    def send(self, text: str) -> None:
        """Send a text frame."""
        self._send(_TEXT, text.encode())

    def _send(self, opcode: int, payload: bytes) -> None:
        size = len(payload)
        if size < 126:
            head = struct.pack("!BB", opcode, 0x80 | size)
        elif size <= 0xFFFF:
            head = struct.pack("!BBH", opcode, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", opcode, 0x80 | 127, size)
        # A mask of zeros is a mask, and leaves the payload as it is.
        self.socket.sendall(head + bytes(4) + payload)

    # Receiving.

    def fill(self) -> None:
        """Read what has arrived; blocks when nothing has.

        Raises:
            ConnectionLost: The server closed the connection.
            TimeoutError: Nothing came for `PATIENCE_S`.
        """
        if self._start == self._end:
            self._start = self._end = 0
        elif self._end == len(self._buffer):
            self._make_room()
        count = self.socket.recv_into(self._view[self._end :])
        if not count:
            raise ConnectionLost("the server dropped the connection")
        self._end += count

    def _make_room(self) -> None:
        rest = self._buffer[self._start : self._end]
        if self._start == 0:
            self._buffer = bytearray(2 * len(rest))
            self._view = memoryview(self._buffer)
        self._buffer[: len(rest)] = rest
        self._start, self._end = 0, len(rest)

    def receive(self) -> bytes:
        """Return the payload of the next text frame."""
        while True:
            for frame in self.take():
                return frame
            self.fill()

    def take(self) -> Iterator[bytes]:
        """Yield the payloads of the whole text frames that were read."""
        while (found := self._next_frame()) is not None:
            opcode, body, stop = found
            payload = bytes(self._view[body:stop])
            self._start = stop
            if opcode == _TEXT:
                self._count(payload)
                yield payload
            elif opcode == _PING:
                self._send(_PONG, payload)
            elif opcode == _CLOSE:
                raise ConnectionLost(f"closed by the server: {payload!r}")

    def _next_frame(self) -> tuple[int, int, int] | None:
        """Return opcode, begin and end of the payload that comes next, if whole."""
        at, buffer = self._start, self._buffer
        body = at + 2
        if body > self._end:
            return None
        size = buffer[at + 1]
        if size >= 126:
            body += 2 if size == 126 else 8
            if body > self._end:
                return None
            size = int.from_bytes(self._view[at + 2 : body], "big")
        stop = body + size
        return (buffer[at], body, stop) if stop <= self._end else None

    def _count(self, payload: bytes) -> None:
        self.frames += 1
        self.payload_bytes += len(payload)
        if _CARD_CLOSED in payload and _OF_A_TURN in payload:
            self.turns_closed += 1

    def count(self) -> None:
        """Count the whole frames that were read, looking into as few as possible."""
        if self._buffer.find(_CARD_CLOSED, self._start, self._end) < 0:
            self._skip_usual_frames()
        for _ in self.take():
            pass

    def _skip_usual_frames(self) -> None:
        """Skip whole text frames of 126 to 65,535 bytes, up to any other."""
        buffer, at, end = self._buffer, self._start, self._end
        frames = payload_bytes = 0
        while at + 4 <= end and buffer[at] == _TEXT and buffer[at + 1] == 126:
            size = buffer[at + 2] << 8 | buffer[at + 3]
            if at + 4 + size > end:
                break
            frames += 1
            payload_bytes += size
            at += 4 + size
        self._start = at
        self.frames += frames
        self.payload_bytes += payload_bytes


def watch(
    connections: Iterable[WireConnection],
    handle: Callable[[WireConnection], bool],
) -> None:
    """Read from all connections until each has got what it waits for.

    Args:
        handle: Called first with each connection and then after every read; True
            when the connection needs no more.

    Raises:
        TimeoutError: Nothing came for `PATIENCE_S`.
    """
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            if not handle(connection):
                selector.register(connection.socket, selectors.EVENT_READ, connection)
        while selector.get_map():
            ready = selector.select(PATIENCE_S)
            if not ready:
                raise TimeoutError(f"{len(selector.get_map())} connections got stuck")
            for key, _ in ready:
                key.data.fill()
                if handle(key.data):
                    selector.unregister(key.data.socket)
