"""Frames as they go over a socket, many at once.

Spec: RFC 6455 5.2.
"""

import struct
from collections.abc import Sequence

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
