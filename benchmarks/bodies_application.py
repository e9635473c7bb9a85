"""The project's application with one more route: GET `/benchmark/N` streams N bytes.

It never waits by itself, as a disk that is faster than any client.
"""

from typing import Any

from cards.transport.daphne_http import BoundedBodies, Receive, Send
from config.asgi import application as cardwire

CHUNK = bytes(64 * 1024)


async def _stream(scope: Any, _receive: Receive, send: Send) -> None:
    size = int(scope["path"].rpartition("/")[2])
    headers = [(b"Content-Length", str(size).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for at in range(0, size, len(CHUNK)):
        chunk = CHUNK[: size - at]
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body"})


_bounded = BoundedBodies(_stream)


async def application(scope: Any, receive: Receive, send: Send) -> None:
    """Serve the route, and everything else as ever."""
    is_ours = scope["type"] == "http" and scope["path"].startswith("/benchmark/")
    await (_bounded if is_ours else cardwire)(scope, receive, send)
