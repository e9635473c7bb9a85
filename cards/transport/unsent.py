"""What a Twisted transport still holds of what was written to it.

Spec: issue "Liveness and ownership" 10;
docs/decisions/0002-daphne-protocol-subclass.md.
"""

import fcntl
import struct
import termios
from typing import Any


def buffered_bytes(transport: Any) -> int:
    """Return the bytes in Twisted's own buffer.

    Under TLS it is that of the inner transport.
    """
    buffered = len(transport.dataBuffer) - transport.offset + transport._tempDataLen
    return int(buffered)


def unsent_bytes(transport: Any) -> int:
    """Return the bytes that the client's machine has not taken.

    Twisted's own, and the kernel's where it tells.
    """
    # `getHandle` would give something else under TLS.
    buffered = buffered_bytes(transport)
    try:
        answer = fcntl.ioctl(transport.fileno(), termios.TIOCOUTQ, b"\0" * 4)
    except OSError:
        return buffered
    return buffered + int(struct.unpack("i", answer)[0])
