"""The composition root: the one place where the parts are put together."""

import re
import traceback
from datetime import timedelta
from functools import cache
from pathlib import Path

from channels.layers import get_channel_layer
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import Storage, storages
from django.utils.module_loading import import_string

from artifacts.shelf import StoredArtifactShelf
from cards.admission import Admission
from cards.engine import Engine
from cards.live.hub import Hub
from cards.live.runtime_settings import RuntimeSettings
from cards.local_paths import LocalPaths
from cards.log.committer import Committer
from cards.log.store import open_store
from cards.protocol.client_messages import FrameLimits
from prompts.book import StoredPromptBook

#: Seconds that a session without work is kept before it is given back.
LINGER_S = 1.0


def load_engine(dotted_path: str) -> Engine:
    """Return the one engine instance of this process.

    Args:
        dotted_path: `package.module.Class` or `package.module:Class`.

    Raises:
        ImproperlyConfigured: The path names no engine class, or making it failed.
    """
    named = f"CARDWIRE_ENGINE={dotted_path!r}"
    allowed = "allowed: the path of an engine, package.module.Class"
    if not re.fullmatch(r"\w+(\.\w+)*[.:]\w+", dotted_path):
        raise ImproperlyConfigured(f"{named} is wrong; {allowed}")
    try:
        engine_class = import_string(dotted_path.replace(":", "."))
    except Exception as error:
        # What an author's module raises when it is loaded may be anything.
        raise ImproperlyConfigured(
            f"{named} cannot be imported: {_where_and_why(error)}; {allowed}"
        ) from error
    if not (isinstance(engine_class, type) and issubclass(engine_class, Engine)):
        raise ImproperlyConfigured(
            f"{named} is not an engine;"
            " allowed: the path of a subclass of cards.engine.Engine"
        )
    try:
        engine = engine_class()
    except Exception as error:
        raise ImproperlyConfigured(
            f"{named} cannot be made: {_where_and_why(error)};"
            " allowed: a class with a method run that takes no arguments itself"
        ) from error
    if not isinstance(engine.model, str):
        raise ImproperlyConfigured(
            f"{named} has a model that is no text: {engine.model!r}; allowed: a str"
        )
    return engine


def _where_and_why(error: Exception) -> str:
    """Return what an author needs to find an error, without the whole traceback."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}:{last.lineno}"
    return f"{type(error).__name__}: {error} ({place})"


@cache
def admission() -> Admission:
    """Return what lets connections into this process, made on first use."""
    return Admission(
        max_connections=settings.CARDWIRE_MAX_CONNECTIONS,
        messages_per_minute=settings.CARDWIRE_MESSAGES_PER_MINUTE,
        check_interval_s=settings.CARDWIRE_CREDENTIAL_CHECK_S,
    )


def frame_limits() -> FrameLimits:
    """Return what one frame of a client may hold."""
    return FrameLimits(
        depth=settings.CARDWIRE_MAX_JSON_DEPTH, blocks=settings.CARDWIRE_MAX_BLOCKS
    )


@cache
def prompt_book() -> StoredPromptBook:
    """Return what keeps the prompts."""
    days = settings.CARDWIRE_WAIT_TTL_DAYS
    return StoredPromptBook(time_to_live=timedelta(days=days) if days else None)


@cache
def artifact_shelf() -> StoredArtifactShelf:
    """Return what keeps the files.

    Raises:
        ImproperlyConfigured: There is no such storage.
    """
    try:
        _require_storage(storages["artifacts"])
    except (ImportError, ImproperlyConfigured, TypeError, ValueError) as error:
        raise ImproperlyConfigured(
            f"CARDWIRE_ARTIFACT_STORAGE={settings.STORAGES['artifacts']['BACKEND']!r}"
            f" cannot be used: {error}; allowed: the path of a class of storages,"
            " package.module.Class, and in CARDWIRE_ARTIFACT_STORAGE_OPTIONS what it"
            " takes"
        ) from error
    return StoredArtifactShelf(
        incoming_dir=settings.CARDWIRE_INCOMING_DIR,
        max_bytes=settings.CARDWIRE_MAX_UPLOAD_BYTES,
    )


def _require_storage(storage: object) -> None:
    if not isinstance(storage, Storage):
        raise TypeError("it is no storage of Django's kind")


@cache
def hub() -> Hub:
    """Return the hub of this process, made on first use."""
    return Hub(
        committer=Committer(open_store),
        settings=RuntimeSettings(
            engine=load_engine(settings.CARDWIRE_ENGINE),
            tick_interval_ms=settings.CARDWIRE_TICK_INTERVAL_MS,
            shows_exceptions=settings.DEBUG,
            windows_ms={
                kind: int(seconds * 1000)
                for kind, seconds in settings.CARDWIRE_WATCHDOG_S.items()
            },
            linger_s=LINGER_S,
        ),
        queue_limit=settings.CARDWIRE_QUEUE_LIMIT,
        session_limit=settings.CARDWIRE_MAX_SESSIONS,
        lock_dir=settings.CARDWIRE_WORKERS_DIR,
        lease_s=settings.CARDWIRE_LEASE_S,
        book=prompt_book(),
        shelf=artifact_shelf(),
        local_paths=LocalPaths(
            settings.CARDWIRE_LOCAL_PATHS, closed=[settings.CARDWIRE_DATA_DIR]
        ),
        sweep_interval_s=settings.CARDWIRE_SWEEP_INTERVAL_S,
        # The in-memory layer reaches nobody but ourselves.
        layer=get_channel_layer() if settings.REDIS_URL else None,
    )
