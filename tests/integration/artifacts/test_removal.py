"""Rows and files die together.

Spec: issue "Artifacts" 1, 8.
"""

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import FileSystemStorage
from django.db import transaction
from PIL import Image

from artifacts.models import Artifact, ArtifactVersion
from artifacts.shelf import StoredArtifactShelf
from cards.models import Session
from tests.integration.artifacts.shelving import files_in, keep
from tests.integration.cards.conftest import make_session


def picture() -> bytes:
    target = io.BytesIO()
    Image.new("RGB", (30, 30), "red").save(target, "PNG")
    return target.getvalue()


class TestRows:
    def test_take_their_files_along_with_the_session(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        other = make_session("sess_2")
        kept = keep(shelf, other)
        for name in ("a.png", "a.png", "b.png"):
            keep(shelf, session_row, picture(), name)
        assert len(files_in(files_dir)) == 7

        Session.objects.filter(pk=session_row.pk).delete()

        assert Artifact.objects.get().artifact_id == kept.artifact_id
        assert files_in(files_dir) == [ArtifactVersion.objects.get().storage_name]

    def test_take_their_files_along_with_the_artifact(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        for _ in range(2):
            keep(shelf, session_row, picture(), "a.png")

        Artifact.objects.all().delete()

        assert not ArtifactVersion.objects.exists()
        assert files_in(files_dir) == []

    def test_take_their_files_along_one_by_one(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        keep(shelf, session_row, picture(), "a.png")
        keep(shelf, session_row, b"text", "a.png")

        ArtifactVersion.objects.get(version=1).delete()

        left = ArtifactVersion.objects.get()
        assert files_in(files_dir) == [left.storage_name]

    def test_keep_their_files_when_they_stay_after_all(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        keep(shelf, session_row, picture(), "a.png")
        before = files_in(files_dir)

        def delete_and_die() -> None:
            with transaction.atomic():
                session_row.delete()
                assert files_in(files_dir) == before
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            delete_and_die()

        assert files_in(files_dir) == before
        assert ArtifactVersion.objects.count() == 1

    def test_go_although_a_file_cannot_be_removed(
        self,
        shelf: StoredArtifactShelf,
        session_row: Session,
        files_dir: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """The clean-up removes it later; the other ones go at once."""
        stuck = keep(shelf, session_row, name="a.txt")
        keep(shelf, session_row, name="b.txt")
        stuck_name = ArtifactVersion.objects.get(
            artifact__artifact_id=stuck.artifact_id
        ).storage_name
        real = FileSystemStorage.delete

        def delete(self: FileSystemStorage, name: str) -> Any:
            if name == stuck_name:
                raise PermissionError(name)
            return real(self, name)

        monkeypatch.setattr(FileSystemStorage, "delete", delete)

        session_row.delete()

        assert not Artifact.objects.exists()
        assert files_in(files_dir) == [stuck_name]
        assert f"{stuck_name} of an artifact cannot be removed" in caplog.text
