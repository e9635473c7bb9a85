"""How bytes get into the storage: whole, or not at all.

They are written to a file beside the storage first, which bounds and hashes them on
the way and has them on the disk before anything tells of them; then the storage takes
the file, on the same disk by giving it another name. So the storage holds whole files
only, under random names, whatever was asked for and whatever broke.

Spec: issue "Artifacts" 1, 4; FR-107.
"""

import errno
import hashlib
import logging
import os
import secrets
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage, Storage
from django.core.files.uploadedfile import UploadedFile

from artifacts.content_types import detect_type
from artifacts.thumbnails import make_pictures
from cards.ports import ArtifactRefused, StagedContent

logger = logging.getLogger(__name__)

#: What the name of a small picture has more than that of its picture.
THUMBNAIL_SUFFIX: Final = ".webp"

TOO_LARGE: Final = "ARTIFACT_TOO_LARGE"
STORAGE_FULL: Final = "STORAGE_FULL"
STORAGE_FAILED: Final = "STORAGE_FAILED"

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class IncomingFile:
    """A file that is being written, and is gone unless the storage takes it.

    Used as a context manager, or closed at the end whatever happens.

    Args:
        directory: Where it is written; on the storage's disk, if that has one.
        max_bytes: What it may hold.
    """

    def __init__(self, directory: Path, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._hash = hashlib.sha256()
        self.size_bytes = 0
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path = directory / secrets.token_hex(16)
            self._file = self._path.open("x+b")
        except OSError as error:
            raise _refusal(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def write(self, chunk: bytes) -> None:
        """Append bytes.

        Raises:
            ArtifactRefused: They are too many, or the disk cannot take them.
        """
        self.size_bytes += len(chunk)
        if self.size_bytes > self._max_bytes:
            raise ArtifactRefused(
                TOO_LARGE, f"the file is larger than {self._max_bytes} bytes"
            )
        self._hash.update(chunk)
        try:
            self._file.write(chunk)
        except OSError as error:
            raise _refusal(error) from error

    def store(self, storage: Storage, *, name: str, claimed: str) -> StagedContent:
        """Give the bytes to the storage.

        Args:
            name: Safe; a hint for the MIME type.
            claimed: A hint, likewise.

        Raises:
            ArtifactRefused: The storage cannot take them; it has nothing of them.
        """
        storage_name = new_storage_name()
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            mime_type = detect_type(self._file, name=name, claimed=claimed)
            pictures = make_pictures(self._file, mime_type)
            self._file.seek(0)
            _save(storage, storage_name, self._movable())
            thumbnail_name = ""
            if pictures is not None:
                thumbnail_name = storage_name + THUMBNAIL_SUFFIX
                _save(storage, thumbnail_name, ContentFile(pictures.thumbnail))
        # A storage may be anybody's; what its network raises is no OSError.
        except Exception as error:
            remove_from(storage, storage_name, storage_name + THUMBNAIL_SUFFIX)
            raise _refusal(error) from error
        return StagedContent(
            storage_name=storage_name,
            size_bytes=self.size_bytes,
            sha256=self._hash.hexdigest(),
            mime_type=mime_type,
            thumbnail_name=thumbnail_name,
            icon=pictures.icon if pictures is not None else b"",
        )

    def _movable(self) -> "_MovableFile":
        return _MovableFile(self._file, self._path, self.size_bytes)

    def close(self) -> None:
        """Remove what the storage has not taken; safe to call again."""
        try:
            self._file.close()
        except OSError:
            # What could not be written is not wanted either.
            logger.info("closing %s failed", self._path, exc_info=True)
        self._path.unlink(missing_ok=True)


class _MovableFile(UploadedFile):
    """A file that Django's own storage moves instead of copying it."""

    def __init__(self, file: IO[bytes], path: Path, size_bytes: int) -> None:
        super().__init__(file, name=path.name, size=size_bytes)
        self._path = path

    def temporary_file_path(self) -> str:
        """Return where it lies, as Django's storage asks."""
        return str(self._path)


def new_storage_name() -> str:
    """Return a random name, below one of 256 directories."""
    random = secrets.token_hex(16)
    return f"{random[:2]}/{random}"


def remove_from(storage: Storage, *names: str) -> None:
    """Remove files; what cannot be removed is left to `cleanup_orphans`."""
    for name in filter(None, names):
        try:
            storage.delete(name)
        # As above: whatever storages raise.
        except Exception:
            logger.exception("the file %s of an artifact cannot be removed", name)


def _save(storage: Storage, name: str, content: "File[Any]") -> None:
    saved = storage.save(name, content)
    if saved != name:
        # Nobody would find it under that name, not even the clean-up.
        storage.delete(saved)
        raise OSError(f"the storage keeps {name} as {saved}")
    _make_durable(storage, name)


def _make_durable(storage: Storage, name: str) -> None:
    if not isinstance(storage, FileSystemStorage):
        # Durable when it says that it is saved.
        return
    path = Path(storage.path(name))
    for each in (path, path.parent, path.parent.parent):
        descriptor = os.open(each, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _refusal(error: Exception) -> ArtifactRefused:
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return ArtifactRefused(
            STORAGE_FULL, "the storage of artifacts is full", is_transient=True
        )
    logger.error("the storage of artifacts failed", exc_info=error)
    return ArtifactRefused(
        STORAGE_FAILED, "the storage of artifacts failed", is_transient=True
    )
