"""The project's application with two more routes, for large bodies both ways.

| request | does |
|---|---|
| GET or HEAD `/test/stream/N` | sends N bytes without a pause |
| GET `/test/running` | answers with how many such streams run |
| GET `/test/break/N` | fails behind N bytes; behind 0 before it answers |
| POST `/test/count` | answers with what it got: bytes, sha256, largest piece |
| POST `/test/ignore` | answers without a look at the body |
"""

import hashlib
import json
from typing import Any

from cards.transport.daphne_http import BoundedBodies, Receive, Send
from config.asgi import application as cardwire
from tests.acceptance.large_body import CHUNK

running_streams: list[int] = []


async def stream(_receive: Receive, send: Send, size: int) -> None:
    headers = [(b"Content-Length", str(size).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    running_streams.append(size)
    try:
        for at in range(0, size, len(CHUNK)):
            chunk = CHUNK[: size - at]
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body"})
    finally:
        running_streams.remove(size)


async def running(_receive: Receive, send: Send, _size: int) -> None:
    await answer(send, len(running_streams))


async def break_off(_receive: Receive, send: Send, size: int) -> None:
    if size:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        body = bytes(size)
        await send({"type": "http.response.body", "body": body, "more_body": True})
    raise RuntimeError("the disk went away")


async def count(receive: Receive, send: Send, _size: int) -> None:
    digest, size, largest = hashlib.sha256(), 0, 0
    while (message := await receive())["type"] == "http.request":
        piece = message["body"]
        digest.update(piece)
        size += len(piece)
        largest = max(largest, len(piece))
        if not message["more_body"]:
            break
    sha256 = digest.hexdigest()
    await answer(send, {"size": size, "sha256": sha256, "largest": largest})


async def ignore(_receive: Receive, send: Send, _size: int) -> None:
    await answer(send, {"ignored": True})


async def answer(send: Send, content: object) -> None:
    body = json.dumps(content).encode()
    headers = [(b"Content-Length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


ROUTES = {
    "stream": stream,
    "running": running,
    "break": break_off,
    "count": count,
    "ignore": ignore,
}


async def bodies(scope: Any, receive: Receive, send: Send) -> None:
    _, _, name, size = f"{scope['path']}/0".split("/")[:4]
    await ROUTES[name](receive, send, int(size))


bounded = BoundedBodies(bodies)


async def application(scope: Any, receive: Receive, send: Send) -> None:
    is_ours = scope["type"] == "http" and scope["path"].startswith("/test/")
    await (bounded if is_ours else cardwire)(scope, receive, send)
