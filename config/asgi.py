"""The ASGI application that daphne serves."""

import gc
import os
from typing import Any

from django.core.asgi import get_asgi_application

from config.environment import one_line_when_wrong

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
with one_line_when_wrong():
    http_application = get_asgi_application()

# Everything below needs Django's apps.
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import OriginValidator
from django.conf import settings

from cards.address_guard import AddressGuard, address_for_logs
from cards.authentication import identity_of_scope
from cards.consumers import CardConsumer
from cards.routing import websocket_routes
from cards.signals import session_deleted
from cards.transport.daphne import install
from cards.transport.daphne_http import BoundedBodies
from config.wiring import admission, frame_limits, hub
from prompts.signals import settled

#: What a form may add to the file in it: its other fields, and what is between them.
FORM_BYTES = 1024 * 1024


class BrowserOriginValidator(OriginValidator):
    """Refuse handshakes that a page of another site made.

    Browsers name the page's origin in every handshake, and a page cannot leave it
    out; a client that names none is no browser.

    Spec: Ruling E27.
    """

    def valid_origin(self, parsed_origin: Any) -> bool:
        """Tell whether the handshake may go on."""
        return parsed_origin is None or bool(super().valid_origin(parsed_origin))


def start() -> None:
    """Begin the rounds, with a garbage collector that looks at what is new only."""
    # What is loaded by now, half a million objects, lives as long as the process; to
    # walk it again and again costs more than the collector will ever find there.
    gc.collect()
    gc.freeze()
    hub().start()


def go_on(session_pk: int, **_: object) -> None:
    """Have the owner of a session go on with what was settled outside it."""
    hub().nudge(session_pk)


def forget(session_pk: int, **_: object) -> None:
    """End what runs of a session that was deleted, and tell its clients."""
    hub().forget(session_pk)


settled.connect(go_on, dispatch_uid="config.asgi.go_on")
session_deleted.connect(forget, dispatch_uid="config.asgi.forget")


async def stop() -> None:
    """End what runs here with a stored state."""
    await admission().stop()
    await hub().stop(grace_s=settings.CARDWIRE_STOP_GRACE_S)


async def is_known(head: dict[str, Any]) -> bool:
    """Tell whether a request comes from somebody who may own sessions.

    Spec: Ruling E27.
    """
    allow_anonymous = settings.CARDWIRE_ALLOW_ANONYMOUS
    return await identity_of_scope(head, allow_anonymous=allow_anonymous) is not None


with one_line_when_wrong():
    # Made here, so that the engine is looked at before anybody is served.
    hub()

install(
    max_message_bytes=settings.CARDWIRE_MAX_FRAME_BYTES,
    max_body_bytes=settings.CARDWIRE_MAX_UPLOAD_BYTES + FORM_BYTES,
    stalled_after_s=settings.CARDWIRE_STALLED_AFTER_S,
    is_known=is_known,
    on_start=start,
    on_stop=stop,
    address_for_logs=address_for_logs,
    # Beyond the grace: the log's patience.
    stop_timeout_s=settings.CARDWIRE_STOP_GRACE_S + 12,
)

consumer = CardConsumer.as_asgi(
    hub=hub(),
    admission=admission(),
    idle_timeout_s=settings.CARDWIRE_IDLE_TIMEOUT_S,
    max_frame_bytes=settings.CARDWIRE_MAX_FRAME_BYTES,
    max_waiting_frames=settings.CARDWIRE_MAX_WAITING_FRAMES,
    limits=frame_limits(),
    allow_anonymous=settings.CARDWIRE_ALLOW_ANONYMOUS,
)

application = AddressGuard(
    ProtocolTypeRouter(
        {
            "http": BoundedBodies(http_application),
            "websocket": BrowserOriginValidator(
                URLRouter(websocket_routes(consumer)),
                settings.ALLOWED_HOSTS,
            ),
        }
    )
)
