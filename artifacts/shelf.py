"""The shelf: what cards needs of this app.

Spec: `cards.ports.ArtifactShelf`; Ruling E21.
"""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final, cast

from django.core.files.storage import storages

from artifacts.models import Artifact, ArtifactVersion
from artifacts.protocol.names import safe_name
from artifacts.queries import find_version
from artifacts.staging import IncomingFile, remove_from
from cards.ports import NewArtifact, StagedContent, StoredArtifact

#: Of text fields whose length a maker chooses.
MAX_TYPE_CHARS: Final = 64

#: Types of data, beside texts with columns.
_DATA_TYPES: Final = frozenset(
    f"application/{name}"
    for name in (
        *("json", "ld+json", "geo+json", "x-ndjson", "vnd.apache.parquet"),
        *("vnd.sqlite3", "vnd.ms-excel"),
        "vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    )
)


class StoredArtifactShelf:
    """Keeps files in Django's storage `artifacts` and rows in the database.

    Args:
        incoming_dir: Where files are written before the storage takes them.
        max_bytes: Of one file.
    """

    def __init__(self, *, incoming_dir: Path, max_bytes: int) -> None:
        self._incoming_dir = incoming_dir
        self._max_bytes = max_bytes

    @staticmethod
    def safe_name(name: str) -> str:
        """See `ArtifactShelf.safe_name`."""
        return safe_name(name)

    def begin(self) -> IncomingFile:
        """Return a file to write to, for those who get their bytes bit by bit.

        Raises:
            ArtifactRefused: The storage cannot take any.
        """
        return IncomingFile(self._incoming_dir, max_bytes=self._max_bytes)

    @staticmethod
    def stage_incoming(
        incoming: IncomingFile, *, name: str, claimed_mime_type: str = ""
    ) -> StagedContent:
        """Give what was written to the storage; see `ArtifactShelf.stage`."""
        return incoming.store(
            storages["artifacts"], name=name, claimed=claimed_mime_type
        )

    def stage(
        self, chunks: Iterable[bytes], *, name: str, claimed_mime_type: str = ""
    ) -> StagedContent:
        """See `ArtifactShelf.stage`."""
        with self.begin() as incoming:
            for chunk in chunks:
                incoming.write(chunk)
            return self.stage_incoming(
                incoming, name=name, claimed_mime_type=claimed_mime_type
            )

    @staticmethod
    def keep(new: NewArtifact, now: datetime) -> StoredArtifact:
        """See `ArtifactShelf.keep`."""
        artifact = _newest_named(new) if new.is_version else None
        if artifact is None:
            artifact = Artifact(
                artifact_id=new.artifact_id,
                session_id=new.session_pk,
                name=new.name,
                source=new.source,
                created_at=now,
            )
        artifact.last_version += 1
        artifact.changed_at = now
        artifact.save()
        content = new.content
        version = ArtifactVersion.objects.create(
            artifact=artifact,
            version=artifact.last_version,
            storage_name=content.storage_name,
            thumbnail_name=content.thumbnail_name,
            size_bytes=content.size_bytes,
            sha256=content.sha256,
            mime_type=content.mime_type,
            type=_storable(new.type)[:MAX_TYPE_CHARS] or _type_of(content.mime_type),
            role=_storable(new.role)[:MAX_TYPE_CHARS],
            description=_storable(new.description),
            created_at=now,
        )
        return _stored(version)

    @staticmethod
    def discard(content: StagedContent) -> None:
        """See `ArtifactShelf.discard`."""
        remove_from(storages["artifacts"], content.storage_name, content.thumbnail_name)

    @staticmethod
    def find(
        session_pk: int, artifact_id: str, version: int | None = None
    ) -> StoredArtifact | None:
        """See `ArtifactShelf.find`."""
        row = find_version(artifact_id, version, session_id=session_pk)
        return _stored(row) if row else None

    @staticmethod
    def known(session_pk: int) -> list[tuple[str, str]]:
        """See `ArtifactShelf.known`."""
        rows = Artifact.objects.filter(session_id=session_pk)
        return list(
            rows.order_by("changed_at", "pk").values_list("artifact_id", "name")
        )

    @staticmethod
    def read(session_pk: int, artifact_id: str, version: int) -> BinaryIO:
        """See `ArtifactShelf.read`."""
        row = find_version(artifact_id, version, session_id=session_pk)
        if row is None:
            raise FileNotFoundError(f"there is no {artifact_id} version {version}")
        return cast("BinaryIO", storages["artifacts"].open(row.storage_name))


def _newest_named(new: NewArtifact) -> Artifact | None:
    rows = Artifact.objects.filter(session_id=new.session_pk, name=new.name)
    return rows.order_by("-changed_at", "-pk").first()


def _storable(text: str) -> str:
    # PostgreSQL takes no NUL, and no encoder half of a surrogate pair.
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def _type_of(mime_type: str) -> str:
    if mime_type.startswith("image/"):
        return "image"
    is_table = mime_type in {"text/csv", "text/tab-separated-values"}
    return "data" if is_table or mime_type in _DATA_TYPES else "file"


def _stored(row: ArtifactVersion) -> StoredArtifact:
    return StoredArtifact(
        artifact_id=row.artifact.artifact_id,
        version=row.version,
        name=row.artifact.name,
        type=row.type,
        mime_type=row.mime_type,
        size_bytes=row.size_bytes,
        sha256=row.sha256,
        role=row.role,
        description=row.description,
        has_thumbnail=bool(row.thumbnail_name),
    )
