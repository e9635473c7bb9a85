"""The ASGI application that daphne serves."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.references.bare.settings")
django.setup()

# Everything below needs Django's settings.
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.urls import path  # noqa: E402

from benchmarks.references.bare.consumer import BareConsumer  # noqa: E402

application = ProtocolTypeRouter(
    {"websocket": URLRouter([path("v1/ws", BareConsumer.as_asgi())])}
)
