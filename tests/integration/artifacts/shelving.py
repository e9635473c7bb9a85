"""Files kept for tests, and what is left of them."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from django.conf import LazySettings
from django.db import transaction

from artifacts.shelf import StoredArtifactShelf
from cards.models import Session
from cards.ownership import lock_session
from cards.ports import NewArtifact, StagedContent, StoredArtifact

NOW: Final = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
DAY: Final = timedelta(days=1)

FILE_SYSTEM: Final = "django.core.files.storage.FileSystemStorage"
IN_MEMORY: Final = "django.core.files.storage.InMemoryStorage"

_made = iter(range(1, 1_000_000))


def use_storage(
    settings: LazySettings, backend: str = FILE_SYSTEM, **options: Any
) -> None:
    settings.STORAGES = settings.STORAGES | {
        "artifacts": {"BACKEND": backend, "OPTIONS": options}
    }


def stage(
    shelf: StoredArtifactShelf, data: bytes = b"a text", name: str = "a.txt"
) -> StagedContent:
    return shelf.stage([data], name=name)


def new_artifact(
    session: Session, content: StagedContent, name: str = "a.txt", **fields: Any
) -> NewArtifact:
    given: dict[str, Any] = {
        "artifact_id": f"art_{next(_made):016x}",
        "session_pk": session.pk,
        "name": name,
        "content": content,
        "is_version": True,
        "source": "assistant",
    }
    return NewArtifact(**(given | fields))


def keep(
    shelf: StoredArtifactShelf,
    session: Session,
    data: bytes = b"a text",
    name: str = "a.txt",
    *,
    at: datetime = NOW,
    **fields: Any,
) -> StoredArtifact:
    """Stage and keep as engines and uploads do."""
    new = new_artifact(session, stage(shelf, data, name), name, **fields)
    with transaction.atomic():
        lock_session(session.pk)
        return shelf.keep(new, at)


def files_in(folder: Path) -> list[str]:
    """Return what lies anywhere below, the storage's mark left out."""
    found = (path for path in folder.rglob("*") if path.is_file())
    names = sorted(str(path.relative_to(folder)) for path in found)
    return [name for name in names if name != "cardwire-storage"]


def age(path: Path, by: timedelta, now: datetime = NOW) -> None:
    """Have a file look as if nothing had been written to it for so long."""
    changed = (now - by).timestamp()
    os.utime(path, (changed, changed))
