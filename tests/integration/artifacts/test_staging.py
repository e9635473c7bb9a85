"""Bytes get into the storage whole, or not at all; no database is touched.

Spec: issue "Artifacts" 1, 4 and its bad input.
"""

import errno
import hashlib
import io
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.files.storage import (
    FileSystemStorage,
    InMemoryStorage,
    Storage,
    storages,
)
from PIL import Image

from artifacts.shelf import StoredArtifactShelf
from cards.ports import ArtifactRefused
from tests.integration.artifacts.shelving import (
    IN_MEMORY,
    files_in,
    stage,
    use_storage,
)

MAX_BYTES = 1000


def picture() -> bytes:
    target = io.BytesIO()
    Image.new("RGB", (30, 30), "red").save(target, "PNG")
    return target.getvalue()


def read(name: str) -> bytes:
    with storages["artifacts"].open(name) as file:
        return bytes(file.read())


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """Have the system refuse to write more into a file, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class FailAt:
    """Fails the n-th time it is called; everything else goes on as it does."""

    def __init__(
        self, patch: pytest.MonkeyPatch, owner: Any, name: str, count: int
    ) -> None:
        self.is_failed = False
        self._left = count
        real = getattr(owner, name)

        def call(*args: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                self.is_failed = True
                raise OSError(errno.ENOSPC, "no space left on device")
            return real(*args, **options)

        patch.setattr(owner, name, call)


class TestStaged:
    def test_is_in_the_storage(
        self, shelf: StoredArtifactShelf, files_dir: Path, tmp_path: Path
    ) -> None:
        chunks = iter([b"a", b"", b"bc"])
        content = shelf.stage(chunks, name="a.csv", claimed_mime_type="text/plain")

        assert content.size_bytes == 3
        assert content.sha256 == hashlib.sha256(b"abc").hexdigest()
        assert content.mime_type == "text/csv"
        assert (content.thumbnail_name, content.icon) == ("", b"")
        assert files_in(files_dir) == [content.storage_name]
        assert files_in(tmp_path / "incoming") == []
        assert read(content.storage_name) == b"abc"

    def test_has_a_name_that_says_nothing(
        self, shelf: StoredArtifactShelf, files_dir: Path
    ) -> None:
        """Spec: case FR-107."""
        for name in ("../../up.txt", "/etc/passwd", "a\0b", "x" * 10_000, "con"):
            content = stage(shelf, name=name)
            folder, file = content.storage_name.split("/")
            assert file.startswith(folder)
            assert len(bytes.fromhex(file)) == 16
        assert len(files_in(files_dir)) == 5

    def test_is_for_nobody_elses_eyes(
        self, shelf: StoredArtifactShelf, files_dir: Path, settings: LazySettings
    ) -> None:
        use_storage(
            settings,
            location=str(files_dir),
            file_permissions_mode=0o600,
            directory_permissions_mode=0o700,
        )
        path = files_dir / stage(shelf).storage_name

        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert settings.CARDWIRE_INCOMING_DIR.stat().st_mode & 0o777 == 0o700

    def test_picture_has_small_ones_beside_it(
        self, shelf: StoredArtifactShelf, files_dir: Path
    ) -> None:
        content = stage(shelf, picture(), "a.png")

        assert content.thumbnail_name == f"{content.storage_name}.webp"
        assert files_in(files_dir) == [content.storage_name, content.thumbnail_name]
        assert read(content.storage_name) == picture()
        assert Image.open(io.BytesIO(read(content.thumbnail_name))).format == "WEBP"
        assert Image.open(io.BytesIO(content.icon)).format == "PNG"

    def test_may_be_empty(self, shelf: StoredArtifactShelf) -> None:
        for chunks in ([], [b""]):
            content = shelf.stage(chunks, name="a.txt")
            assert content.size_bytes == 0
            assert content.mime_type == "text/plain"
            assert read(content.storage_name) == b""

    def test_may_have_the_size_of_the_cap(self, shelf: StoredArtifactShelf) -> None:
        assert stage(shelf, bytes(MAX_BYTES)).size_bytes == MAX_BYTES

    def test_is_moved_not_copied(
        self, shelf: StoredArtifactShelf, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Spec: issue "Artifacts" 4: large files are written once."""
        moved: list[str] = []
        real = os.rename

        def rename(old: str, new: str) -> None:
            moved.append(os.path.basename(new))
            real(old, new)

        monkeypatch.setattr("django.core.files.move.os.rename", rename)

        content = stage(shelf)

        assert moved == [content.storage_name.split("/")[1]]

    def test_is_gone_when_it_is_discarded(
        self, shelf: StoredArtifactShelf, files_dir: Path
    ) -> None:
        content = stage(shelf, picture(), "a.png")

        shelf.discard(content)
        shelf.discard(content)

        assert files_in(files_dir) == []


class TestTooLarge:
    @pytest.mark.parametrize("chunks", [[bytes(MAX_BYTES + 1)], [bytes(600)] * 2])
    def test_is_refused_and_leaves_nothing(
        self, chunks: list[bytes], shelf: StoredArtifactShelf, tmp_path: Path
    ) -> None:
        with pytest.raises(ArtifactRefused, match="larger than 1000 bytes") as refusal:
            shelf.stage(chunks, name="a.txt")

        assert refusal.value.code == "ARTIFACT_TOO_LARGE"
        assert not refusal.value.is_transient
        assert files_in(tmp_path) == []

    def test_is_read_no_further(
        self, shelf: StoredArtifactShelf, tmp_path: Path
    ) -> None:
        asked = 0

        def endless() -> Iterator[bytes]:
            nonlocal asked
            while True:
                asked += 1
                yield bytes(100)

        with pytest.raises(ArtifactRefused):
            shelf.stage(endless(), name="a.txt")

        assert asked == 11
        assert files_in(tmp_path) == []


class TestFullDisk:
    @pytest.mark.parametrize("size_bytes", [5000, 100_000])
    def test_takes_nothing_and_is_told(
        self,
        size_bytes: int,
        files_dir: Path,
        tmp_path: Path,
        settings: LazySettings,
    ) -> None:
        """Half of it would fit. Spec: issue "Artifacts", bad input."""
        shelf = StoredArtifactShelf(
            incoming_dir=settings.CARDWIRE_INCOMING_DIR, max_bytes=10**6
        )
        data = bytes(size_bytes)
        with (
            pytest.raises(ArtifactRefused, match="full") as refusal,
            files_of_at_most(4096),
        ):
            stage(shelf, data)

        assert refusal.value.code == "STORAGE_FULL"
        assert refusal.value.is_transient
        assert files_in(tmp_path) == []
        assert read(stage(shelf, data).storage_name) == data

    @pytest.mark.parametrize(
        ("owner", "name", "count"),
        [
            (Path, "mkdir", 1),
            (Path, "open", 1),
            (os, "fsync", 1),
            (FileSystemStorage, "save", 1),
            (os, "makedirs", 1),
            (os, "chmod", 1),
            *((os, "fsync", count) for count in range(2, 8)),
            (FileSystemStorage, "save", 2),
            (os, "open", 4),
            (os, "chmod", 2),
        ],
    )
    def test_leaves_nothing_at_whatever_step(
        self,
        owner: Any,
        name: str,
        count: int,
        shelf: StoredArtifactShelf,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        settings: LazySettings,
    ) -> None:
        use_storage(
            settings, location=str(tmp_path / "artifacts"), file_permissions_mode=0o600
        )
        with monkeypatch.context() as patch:
            failing = FailAt(patch, owner, name, count)
            with pytest.raises(ArtifactRefused) as refusal:
                stage(shelf, picture(), "a.png")

        assert failing.is_failed
        assert refusal.value.code == "STORAGE_FULL"
        assert files_in(tmp_path) == []
        assert stage(shelf, picture(), "a.png").size_bytes == len(picture())

    def test_between_disks_leaves_nothing(
        self,
        files_dir: Path,
        tmp_path: Path,
        settings: LazySettings,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Where the storage is on another disk, the file is copied to it."""
        shelf = StoredArtifactShelf(
            incoming_dir=settings.CARDWIRE_INCOMING_DIR, max_bytes=10**6
        )

        def rename(old: str, new: str) -> None:
            # From here on it fits no more: the copy ends in the middle.
            limit.__enter__()
            raise OSError(errno.EXDEV, "another disk")

        limit = files_of_at_most(4096)
        with monkeypatch.context() as patch:
            patch.setattr("django.core.files.move.os.rename", rename)
            try:
                with pytest.raises(ArtifactRefused) as refusal:
                    stage(shelf, bytes(100_000))
            finally:
                limit.__exit__(None, None, None)

        assert refusal.value.code == "STORAGE_FULL"
        assert files_in(tmp_path) == []


class OwnError(Exception):
    """What the network of a storage raises is no OSError."""


class BrokenStorage(InMemoryStorage):
    """Takes some files, then breaks."""

    left = 0

    def save(
        self, name: str | None, content: Any, max_length: int | None = None
    ) -> str:
        if not type(self).left:
            raise OwnError
        type(self).left -= 1
        return super().save(name, content, max_length)


class RenamingStorage(InMemoryStorage):
    """Has its own ideas of names."""

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        return f"{name}-1"


class StubbornStorage(FileSystemStorage):
    """Removes nothing."""

    def delete(self, name: str) -> None:
        raise OwnError


class TestStorage:
    def test_may_be_any(
        self, tmp_path: Path, settings: LazySettings, shelf: StoredArtifactShelf
    ) -> None:
        use_storage(settings, IN_MEMORY, location=str(tmp_path / "nowhere"))
        content = stage(shelf, picture(), "a.png")

        assert read(content.storage_name) == picture()
        assert read(content.thumbnail_name)[:4] == b"RIFF"
        assert read(stage(shelf, b"").storage_name) == b""
        assert files_in(tmp_path) == []
        shelf.discard(content)
        assert not storages["artifacts"].exists(content.storage_name)
        assert not storages["artifacts"].exists(content.thumbnail_name)

    @pytest.mark.parametrize("left", [0, 1])
    def test_that_breaks_is_told_and_has_nothing(
        self,
        left: int,
        tmp_path: Path,
        settings: LazySettings,
        shelf: StoredArtifactShelf,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        use_storage(settings, f"{__name__}.BrokenStorage", location=str(tmp_path))
        monkeypatch.setattr(BrokenStorage, "left", left)

        with pytest.raises(ArtifactRefused) as refusal:
            stage(shelf, picture(), "a.png")

        assert refusal.value.code == "STORAGE_FAILED"
        assert refusal.value.is_transient
        assert "OwnError" in caplog.text
        assert everything_in(storages["artifacts"]) == []
        assert files_in(tmp_path) == []

    def test_that_is_no_directory_is_told(
        self, files_dir: Path, shelf: StoredArtifactShelf, tmp_path: Path
    ) -> None:
        files_dir.write_text("a file in its place")

        with pytest.raises(ArtifactRefused) as refusal:
            stage(shelf)

        assert refusal.value.code == "STORAGE_FAILED"
        assert files_in(tmp_path) == ["artifacts"]

    def test_that_renames_is_refused(
        self, tmp_path: Path, settings: LazySettings, shelf: StoredArtifactShelf
    ) -> None:
        use_storage(settings, f"{__name__}.RenamingStorage", location=str(tmp_path))

        with pytest.raises(ArtifactRefused):
            stage(shelf)

        assert everything_in(storages["artifacts"]) == []

    def test_that_removes_nothing_is_left_to_the_clean_up(
        self,
        files_dir: Path,
        settings: LazySettings,
        shelf: StoredArtifactShelf,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        use_storage(settings, f"{__name__}.StubbornStorage", location=str(files_dir))
        content = stage(shelf)

        shelf.discard(content)

        assert f"{content.storage_name} of an artifact cannot be removed" in caplog.text
        assert files_in(files_dir) == [content.storage_name]


def everything_in(storage: Storage) -> list[str]:
    folders, names = storage.listdir("")
    below = (f"{each}/{name}" for each in folders for name in storage.listdir(each)[1])
    return [*names, *below]


class TestIncoming:
    def test_is_gone_when_its_source_breaks(
        self, shelf: StoredArtifactShelf, tmp_path: Path
    ) -> None:
        """A client hangs up in the middle of an upload."""

        def broken() -> Iterator[bytes]:
            yield b"half"
            raise ConnectionResetError

        with pytest.raises(ConnectionResetError):
            shelf.stage(broken(), name="a.txt")

        assert files_in(tmp_path) == []

    def test_is_gone_when_it_is_closed(
        self, shelf: StoredArtifactShelf, tmp_path: Path
    ) -> None:
        incoming = shelf.begin()
        incoming.write(b"half")
        assert len(files_in(tmp_path / "incoming")) == 1

        incoming.close()
        incoming.close()

        assert files_in(tmp_path) == []

    def test_survives_in_the_storage_when_it_was_taken(
        self, shelf: StoredArtifactShelf, files_dir: Path
    ) -> None:
        with shelf.begin() as incoming:
            incoming.write(b"whole")
            content = shelf.stage_incoming(incoming, name="a.txt")

        assert read(content.storage_name) == b"whole"
        assert files_in(files_dir) == [content.storage_name]
