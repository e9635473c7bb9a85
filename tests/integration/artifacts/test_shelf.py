"""Rows of files: versions, names, what is found and what is not.

Spec: `cards.ports.ArtifactShelf`; Ruling E21; issue "Artifacts" 1, 2.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import storages
from django.db import IntegrityError, connection, connections, transaction

from artifacts.models import Artifact, ArtifactVersion
from artifacts.shelf import StoredArtifactShelf
from cards.models import Session
from cards.ownership import lock_session
from tests.integration.artifacts.shelving import (
    DAY,
    NOW,
    files_in,
    keep,
    new_artifact,
    stage,
)
from tests.integration.cards.conftest import make_session


class TestKeep:
    def test_makes_the_first_version(
        self, shelf: StoredArtifactShelf, session_row: Session
    ) -> None:
        stored = keep(
            shelf,
            session_row,
            b"a,b",
            "a.csv",
            artifact_id="art_1",
            role="report",
            description="what it is",
        )

        assert (stored.artifact_id, stored.version) == ("art_1", 1)
        assert (stored.name, stored.type, stored.mime_type) == (
            *("a.csv", "data", "text/csv"),
        )
        assert (stored.size_bytes, len(stored.sha256)) == (3, 64)
        assert (stored.role, stored.description) == ("report", "what it is")
        assert not stored.has_thumbnail
        assert shelf.find(session_row.pk, "art_1") == stored
        assert Artifact.objects.get().source == "assistant"

    def test_counts_versions_of_a_name(
        self, shelf: StoredArtifactShelf, session_row: Session
    ) -> None:
        """The id stays; Spec: issue "Artifacts" 2."""
        made = [
            keep(shelf, session_row, data, artifact_id=f"art_{number}", at=NOW + DAY)
            for number, data in enumerate((b"1", b"22", b"22"))
        ]

        assert [each.artifact_id for each in made] == ["art_0"] * 3
        assert [each.version for each in made] == [1, 2, 3]
        assert shelf.find(session_row.pk, "art_0") == made[-1]
        for number, each in enumerate(made):
            assert shelf.find(session_row.pk, "art_0", number + 1) == each
        row = Artifact.objects.get()
        assert (row.last_version, row.changed_at) == (3, NOW + DAY)
        names = ArtifactVersion.objects.values_list("storage_name", flat=True)
        assert len(set(names)) == 3

    def test_keeps_names_apart(
        self, shelf: StoredArtifactShelf, session_row: Session
    ) -> None:
        other = make_session("sess_2")
        made = [
            keep(shelf, session_row, name="a.txt"),
            keep(shelf, session_row, name="A.txt"),
            keep(shelf, session_row, name="é.txt"),
            keep(shelf, session_row, name="e.txt"),
            keep(shelf, other, name="a.txt"),
        ]

        assert {each.version for each in made} == {1}
        assert len({each.artifact_id for each in made}) == 5

    def test_makes_an_artifact_of_its_own_of_an_upload(
        self, shelf: StoredArtifactShelf, session_row: Session
    ) -> None:
        first = keep(shelf, session_row)
        upload = keep(shelf, session_row, is_version=False, source="user")

        assert upload.artifact_id != first.artifact_id
        assert upload.version == 1
        assert Artifact.objects.count() == 2

    def test_goes_on_with_the_newest_of_equal_names(
        self, shelf: StoredArtifactShelf, session_row: Session
    ) -> None:
        """Spec: Ruling E21: on equal names the newest wins."""
        first = keep(shelf, session_row, at=NOW)
        second = keep(shelf, session_row, at=NOW, is_version=False)
        assert keep(shelf, session_row, at=NOW).artifact_id == second.artifact_id

        Artifact.objects.filter(artifact_id=first.artifact_id).update(
            changed_at=NOW + DAY
        )

        third = keep(shelf, session_row, at=NOW + 2 * DAY)
        assert (third.artifact_id, third.version) == (first.artifact_id, 2)

    @pytest.mark.parametrize(
        ("mime_type", "data", "expected"),
        [
            ("a.png", b"GIF89a\0\0\0", "image"),
            ("a.csv", b"a", "data"),
            ("a.json", b"{}", "data"),
            ("a.md", b"a", "file"),
            ("a.svg", b"<svg/>", "image"),
            ("a.bin", b"\0", "file"),
        ],
    )
    def test_derives_what_it_is_unless_it_is_told(
        self,
        mime_type: str,
        data: bytes,
        expected: str,
        shelf: StoredArtifactShelf,
        session_row: Session,
    ) -> None:
        assert keep(shelf, session_row, data, mime_type).type == expected
        assert keep(shelf, session_row, data, mime_type, type="plot").type == "plot"

    def test_stores_whatever_a_maker_says(
        self, shelf: StoredArtifactShelf, session_row: Session
    ) -> None:
        """Spec: cases FR-59, FR-61, UNI: both databases take it alike."""
        stored = keep(
            shelf,
            session_row,
            type="t\0" + 100 * "é",
            role="r\ud83d" + 100 * "😀",
            description="a\0b\udfff 😀" + 10_000 * "é",
        )

        assert stored.type == "t\ufffd" + 62 * "é"
        assert stored.role == "r?" + 62 * "😀"
        assert stored.description == "a\ufffdb? 😀" + 10_000 * "é"
        assert shelf.find(session_row.pk, stored.artifact_id) == stored

    def test_leaves_no_row_when_the_transaction_fails(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        """Crash between file and row: the file is an orphan, to be discarded."""
        kept = keep(shelf, session_row)
        content = stage(shelf)

        def keep_and_die() -> None:
            with transaction.atomic():
                lock_session(session_row.pk)
                shelf.keep(new_artifact(session_row, content), NOW)
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            keep_and_die()

        assert shelf.find(session_row.pk, kept.artifact_id) == kept
        assert Artifact.objects.get().last_version == 1
        assert len(files_in(files_dir)) == 2
        shelf.discard(content)
        assert len(files_in(files_dir)) == 1
        assert keep(shelf, session_row).version == 2

    def test_takes_no_id_twice(
        self, shelf: StoredArtifactShelf, session_row: Session
    ) -> None:
        kept = keep(shelf, session_row, artifact_id="art_1", is_version=False)

        with pytest.raises(IntegrityError):
            keep(shelf, session_row, b"2", artifact_id="art_1", is_version=False)

        assert shelf.find(session_row.pk, "art_1") == kept


class TestTwoWorkers:
    def test_count_versions_without_a_gap(
        self, shelf: StoredArtifactShelf, session_row: Session
    ) -> None:
        """Each on a connection of its own, under the lock of the session."""
        start = threading.Barrier(2)
        errors: list[BaseException] = []

        def work() -> None:
            try:
                start.wait()
                for number in range(10):
                    keep(shelf, session_row, f"{number}".encode())
            except BaseException as error:
                errors.append(error)
                raise
            finally:
                connections.close_all()

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert errors == []
        artifact = Artifact.objects.get()
        versions = ArtifactVersion.objects.order_by("version")
        assert [each.version for each in versions] == list(range(1, 21))
        assert artifact.last_version == 20


class TestFind:
    def test_knows_only_what_the_session_has(
        self, shelf: StoredArtifactShelf, session_row: Session
    ) -> None:
        """Spec: issue "Artifacts", bad input: ids of others."""
        stored = keep(shelf, session_row)
        other = make_session("sess_2")

        assert shelf.find(other.pk, stored.artifact_id) is None
        assert shelf.find(session_row.pk + 1000, stored.artifact_id) is None

    @pytest.mark.parametrize(
        "artifact_id", ["", "art_2", "a\0b", "../a", "a" * 100, "é", "a b", "\ud83d"]
    )
    def test_knows_no_other_id(
        self, artifact_id: str, shelf: StoredArtifactShelf, session_row: Session
    ) -> None:
        keep(shelf, session_row, artifact_id="art_1")

        assert shelf.find(session_row.pk, artifact_id) is None
        with pytest.raises(FileNotFoundError):
            shelf.read(session_row.pk, artifact_id, 1)

    @pytest.mark.parametrize("version", [0, -1, 2, 2**31, 2**63, 10**30])
    def test_knows_no_other_version(
        self, version: int, shelf: StoredArtifactShelf, session_row: Session
    ) -> None:
        keep(shelf, session_row, artifact_id="art_1")

        assert shelf.find(session_row.pk, "art_1", version) is None

    def test_lists_by_the_age_of_the_newest_version(
        self, shelf: StoredArtifactShelf, session_row: Session
    ) -> None:
        """Spec: Ruling E21."""
        for number, name in enumerate(("a", "b", "c", "a")):
            keep(
                shelf,
                session_row,
                name=name,
                artifact_id=f"art_{number}",
                at=NOW + number * DAY,
            )
        keep(shelf, make_session("sess_2"), name="d")

        assert shelf.known(session_row.pk) == [
            *(("art_1", "b"), ("art_2", "c"), ("art_0", "a")),
        ]
        assert shelf.known(session_row.pk + 1000) == []

    def test_reads_each_version(
        self, shelf: StoredArtifactShelf, session_row: Session
    ) -> None:
        for data in (b"1", b"22"):
            keep(shelf, session_row, data, artifact_id="art_1")

        for version, data in ((1, b"1"), (2, b"22")):
            with shelf.read(session_row.pk, "art_1", version) as file:
                assert file.read() == data
        with pytest.raises(FileNotFoundError):
            shelf.read(session_row.pk, "art_1", 3)

    def test_says_that_a_file_is_gone(
        self, shelf: StoredArtifactShelf, session_row: Session
    ) -> None:
        keep(shelf, session_row, artifact_id="art_1")
        storages["artifacts"].delete(ArtifactVersion.objects.get().storage_name)

        with pytest.raises(FileNotFoundError):
            shelf.read(session_row.pk, "art_1", 1)

    def test_uses_an_index(
        self, shelf: StoredArtifactShelf, session_row: Session
    ) -> None:
        """A session may have thousands of files, a server millions."""
        questions: dict[str, Callable[[], Any]] = {
            "artifact_named": lambda: Artifact.objects.filter(
                session_id=session_row.pk, name="a"
            ),
            "artifact_of_session": lambda: Artifact.objects.filter(
                session_id=session_row.pk
            ).order_by("-created_at", "-pk"),
        }
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SET enable_seqscan = off")
            try:
                for index, question in questions.items():
                    assert index in question().explain()
            finally:
                if connection.vendor == "postgresql":
                    cursor.execute("SET enable_seqscan = on")
