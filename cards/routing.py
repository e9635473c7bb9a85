"""The WebSocket routes of the app."""

from typing import Any

from django.urls import path, re_path


def websocket_routes(consumer: Any) -> list[Any]:
    """Return the routes, with the consumer that speaks the protocol on them.

    Spec: EMIT 2.1.
    """
    nobody: Any = _refuse
    return [path("v1/ws", consumer), re_path("", nobody)]


async def _refuse(scope: Any, receive: Any, send: Any) -> None:
    # Without a route channels raises, and anybody could fill the log with it.
    await send({"type": "websocket.close"})
