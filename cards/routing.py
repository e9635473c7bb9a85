"""The WebSocket routes of the app."""

from typing import Any

from django.urls import path


def websocket_routes(consumer: Any) -> list[Any]:
    """Return the routes, with the consumer that speaks the protocol on them.

    Spec: EMIT 2.1.
    """
    return [path("v1/ws", consumer)]
