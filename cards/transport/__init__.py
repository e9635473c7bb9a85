"""The way out of a connection: batches, limits, close codes, back-pressure.

An ASGI server takes one message a frame, and daphne neither waits for a slow client
nor tells. On daphne a subclass of its protocol gives the connection a `Transport`
that writes many ready frames at once and says when the client is behind. On any
other server the ordinary `send()` serves.

Spec: Ruling E22 (close 1009); docs/decisions/0002-daphne-protocol-subclass.md.
"""

from cards.transport.asgi import SendTransport, Transport
from cards.transport.daphne import open_transport
from cards.transport.framing import Batch, frame_text

__all__ = ["Batch", "SendTransport", "Transport", "frame_text", "open_transport"]
