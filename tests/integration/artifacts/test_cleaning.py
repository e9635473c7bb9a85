"""The clean-up of files without rows and of rows without files.

Spec: issue "Artifacts" 8; interfaces.md, Commands.
"""

import os
import re
import secrets
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, Storage, storages
from django.core.management import CommandError, call_command
from django.db import transaction

from artifacts.cleaning import ArtifactCleaner
from artifacts.models import Artifact, ArtifactVersion, CleaningPlace
from artifacts.shelf import StoredArtifactShelf
from artifacts.storage_mark import MARK_NAME
from cards.cleaners import Allowance, Cleaned, registered_cleaners
from cards.clock import utc_now
from cards.models import Session
from tests.integration.artifacts.shelving import (
    DAY,
    IN_MEMORY,
    NOW,
    age,
    files_in,
    keep,
    stage,
    use_storage,
)
from tests.integration.cards.conftest import make_session

GRACE = 7 * DAY


def clean(
    now: datetime = NOW,
    *,
    scans: int = 2000,
    deletions: int = 100,
    is_dry_run: bool = False,
    storage: Storage | None = None,
) -> Cleaned:
    cleaner = ArtifactCleaner(storage=storage)
    return cleaner.clean(now, Allowance(scans, deletions), is_dry_run=is_dry_run)


def counts(now: datetime = NOW, **options: Any) -> dict[str, int]:
    cleaned = clean(now, **options)
    assert cleaned.problems == []
    return {word: count for word, count in cleaned.counts.items() if word != "scanned"}


NOTHING = {"files": 0, "versions": 0, "missing": 0}


def path_of(name: str) -> Path:
    return Path(storages["artifacts"].path(name))


def lose(stored_name: str) -> None:
    path_of(stored_name).unlink()


def version() -> ArtifactVersion:
    return ArtifactVersion.objects.get()


def command(*arguments: str) -> str:
    output = StringIO()
    call_command("cleanup_orphans", *arguments, stdout=output)
    return output.getvalue()


def words_in(output: str) -> str:
    """Return what the one line says of artifacts; cards have more words in it."""
    found = re.fullmatch(r"cleanup_orphans: sessions=0 [a-z=0 ]*(files=.*)\n", output)
    assert found
    return found[1]


class TestFilesWithoutRows:
    def test_go_after_the_grace(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        """Spec: issue "Artifacts" 8: never a live one."""
        for data in (b"1", b"2", b"3"):
            age(path_of(stage(shelf, data).storage_name), GRACE)
        young = stage(shelf)
        age(path_of(young.storage_name), GRACE - timedelta(seconds=1))
        kept = keep(shelf, session_row)
        live = version().storage_name
        age(path_of(live), 1000 * DAY)

        expected = NOTHING | {"files": 3}
        assert counts(is_dry_run=True) == expected
        assert len(files_in(files_dir)) == 5
        assert counts() == expected
        assert files_in(files_dir) == sorted([young.storage_name, live])
        assert counts() == NOTHING
        assert shelf.find(session_row.pk, kept.artifact_id) == kept

    def test_go_with_their_thumbnails(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        storage = storages["artifacts"]
        name = "ab/ab" + 30 * "0"
        for each in (name, f"{name}.webp"):
            age(path_of(storage.save(each, ContentFile(b"x"))), GRACE)

        assert counts() == NOTHING | {"files": 2}
        assert files_in(files_dir) == []

    def test_are_left_alone_when_they_are_not_ours(
        self, files_dir: Path, transactional_db: None
    ) -> None:
        storage = storages["artifacts"]
        names = [
            "photo.png",
            "ab/photo.png",
            "abc/" + 32 * "a",
            "ab/cd" + 30 * "0",
            "ab/ab" + 30 * "0" + ".txt",
            "AB/AB" + 30 * "0",
        ]
        for name in names:
            age(path_of(storage.save(name, ContentFile(b"x"))), 1000 * DAY)

        assert counts() == NOTHING
        assert files_in(files_dir) == sorted(names)

    def test_are_removed_in_what_was_being_written(
        self, files_dir: Path, settings: LazySettings, transactional_db: None
    ) -> None:
        """A process that dies while it writes leaves a file there."""
        incoming: Path = settings.CARDWIRE_INCOMING_DIR
        incoming.mkdir()
        for name, by in (("old", GRACE), ("young", GRACE - DAY)):
            (incoming / name).write_bytes(b"half")
            age(incoming / name, by)

        assert counts(is_dry_run=True) == NOTHING | {"files": 1}
        assert counts() == NOTHING | {"files": 1}
        assert files_in(incoming) == ["young"]


class TestRowsWithoutFiles:
    def test_go_when_they_were_missed_for_the_grace(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        keep(shelf, session_row, b"1", "a.txt", at=NOW - 1000 * DAY)
        lost = version().storage_name
        keep(shelf, session_row, b"2", "b.txt", at=NOW - 1000 * DAY)
        assert counts() == NOTHING
        lose(lost)

        assert counts(is_dry_run=True) == NOTHING | {"missing": 1}
        assert counts() == NOTHING | {"missing": 1}
        assert counts(NOW + GRACE - DAY) == NOTHING | {"missing": 1}
        assert Artifact.objects.count() == 2
        assert counts(NOW + GRACE, is_dry_run=True) == NOTHING | {"versions": 1}
        assert Artifact.objects.count() == 2
        assert counts(NOW + GRACE) == NOTHING | {"versions": 1}
        assert Artifact.objects.get().name == "b.txt"
        assert counts(NOW + GRACE) == NOTHING

    def test_stay_when_their_file_came_back(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        """A disk is restored; the grace begins anew when it is lost again."""
        keep(shelf, session_row)
        path = path_of(version().storage_name)
        clean()
        path.rename(files_dir / "elsewhere")
        assert counts() == NOTHING | {"missing": 1}
        (files_dir / "elsewhere").rename(path)

        assert counts(NOW + GRACE) == NOTHING
        path.unlink()
        assert counts(NOW + GRACE) == NOTHING | {"missing": 1}
        assert version().missing_since == NOW + GRACE

    def test_take_no_other_version_along(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        keep(shelf, session_row, b"1")
        lost = version().storage_name
        kept = keep(shelf, session_row, b"2")
        clean()
        lose(lost)
        clean()

        assert counts(NOW + GRACE) == NOTHING | {"versions": 1}
        assert [row.version for row in ArtifactVersion.objects.all()] == [2]
        assert shelf.find(session_row.pk, kept.artifact_id) == kept
        assert shelf.find(session_row.pk, kept.artifact_id, 1) is None

    def test_never_give_their_number_again(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        keep(shelf, session_row, b"1")
        keep(shelf, session_row, b"2")
        clean()
        lose(ArtifactVersion.objects.get(version=2).storage_name)
        clean()
        clean(NOW + GRACE)

        assert keep(shelf, session_row, b"3").version == 3


class TestAnotherStorage:
    def test_loses_no_rows_while_it_is_not_mounted(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        keep(shelf, session_row)
        clean()
        files_dir.rename(files_dir.with_name("unmounted"))

        for now in (NOW, NOW + 1000 * DAY, NOW + 2000 * DAY):
            for is_dry_run in (True, False):
                cleaned = clean(now, is_dry_run=is_dry_run)
                assert "not mounted" in cleaned.problems[0]
                assert cleaned.counts == NOTHING | {"scanned": 0}
        assert version().missing_since is None
        assert not files_dir.exists()
        files_dir.with_name("unmounted").rename(files_dir)
        assert counts(NOW + 3000 * DAY) == NOTHING

    def test_is_not_taken_for_ours_from_the_start(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        """The disk is away when the clean-up runs for the first time."""
        keep(shelf, session_row)
        files_dir.rename(files_dir.with_name("unmounted"))

        assert "none of the 1 newest files" in clean().problems[0]
        assert not files_dir.exists()
        files_dir.with_name("unmounted").rename(files_dir)
        assert counts() == NOTHING
        assert (files_dir / MARK_NAME).read_text() == CleaningPlace.objects.get(
            scope="mark"
        ).place

    def test_loses_no_files_of_another_database(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        """A mistyped DATABASE_URL: an empty database beside a full storage."""
        keep(shelf, session_row)
        clean()
        with transaction.atomic():
            ArtifactVersion.objects.all()._raw_delete("default")
            Artifact.objects.all()._raw_delete("default")
            CleaningPlace.objects.all().delete()
        for name in files_in(files_dir):
            age(files_dir / name, 1000 * DAY)

        for is_dry_run in (True, False):
            cleaned = clean(is_dry_run=is_dry_run)
            assert "belongs to another database" in cleaned.problems[0]
            assert cleaned.counts["files"] == 0
        assert len(files_in(files_dir)) == 1

    def test_is_known_when_the_operator_says_so(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        """The storage was lost for good, and its mark with it."""
        keep(shelf, session_row)
        clean()
        files_dir.rename(files_dir.with_name("lost"))
        word = CleaningPlace.objects.get(scope="mark").place
        assert word in clean().problems[0]
        files_dir.mkdir()
        (files_dir / MARK_NAME).write_text(f"{word}\n")

        assert counts() == NOTHING | {"missing": 1}

    def test_is_known_after_a_crash_between_word_and_file(
        self,
        shelf: StoredArtifactShelf,
        session_row: Session,
        files_dir: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        keep(shelf, session_row)
        real = FileSystemStorage.save

        def save_and_die(self: FileSystemStorage, name: str, content: Any) -> str:
            real(self, name, content)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(FileSystemStorage, "save", save_and_die)
            with pytest.raises(KeyboardInterrupt):
                clean()
        word = (files_dir / MARK_NAME).read_text()

        assert counts() == NOTHING
        assert CleaningPlace.objects.get(scope="mark").place == word

    def test_that_fails_is_told(
        self,
        shelf: StoredArtifactShelf,
        session_row: Session,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """What its network raises is no OSError."""
        keep(shelf, session_row)
        clean()

        def fail(self: FileSystemStorage, name: str) -> bool:
            raise RuntimeError("no route to the storage")

        monkeypatch.setattr(FileSystemStorage, "exists", fail)

        cleaned = clean(NOW + 1000 * DAY)

        assert "no route to the storage" in cleaned.problems[0]
        assert version().missing_since is None


class TestBounds:
    def test_are_kept_and_all_is_come_round_to(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        """Spec: interfaces.md, Commands: 2,000 scanned, 100 deleted a run."""
        for number in range(6):
            keep(shelf, session_row, f"{number}".encode(), f"{number}.txt")
        for _ in range(9):
            age(path_of(stage(shelf).storage_name), GRACE)
        removed, runs = 0, 0
        while len(files_in(files_dir)) > 6:
            before = clean(scans=9, deletions=6, is_dry_run=True).counts
            after = clean(scans=9, deletions=6).counts
            assert before == after
            assert 0 < after["scanned"] <= 9
            assert after["files"] <= 6
            removed += after["files"]
            runs += 1
            assert runs < 20

        assert removed == 9
        assert ArtifactVersion.objects.count() == 6

    def test_of_deletions_lose_nothing_behind_them(
        self, files_dir: Path, shelf: StoredArtifactShelf, transactional_db: None
    ) -> None:
        for _ in range(7):
            age(path_of(stage(shelf).storage_name), GRACE)

        removed = [clean(deletions=6).counts["files"] for _ in range(5)]

        assert sum(removed) == 7
        assert max(removed) <= 6
        assert files_in(files_dir) == []

    def test_hold_for_rows(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        for number in range(7):
            keep(shelf, session_row, name=f"{number}.txt")
        clean()
        for row in ArtifactVersion.objects.exclude(artifact__name="6.txt"):
            lose(row.storage_name)
        clean()

        removed = [
            clean(NOW + GRACE, scans=6, deletions=6).counts["versions"]
            for _ in range(8)
        ]

        assert sum(removed) == 6
        assert Artifact.objects.get().name == "6.txt"

    def test_are_shared_out_whole(self) -> None:
        allowance = Allowance()
        for left in (3, 2, 1):
            part = allowance.part(left)
            part.scans -= 10
            allowance.give_back(part)

        assert (allowance.scans, allowance.deletions) == (2000 - 30, 100)


class TestTrouble:
    def test_with_one_file_is_in_no_others_way(
        self,
        shelf: StoredArtifactShelf,
        session_row: Session,
        files_dir: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        stored = sorted(stage(shelf).storage_name for _ in range(5))
        for name in stored:
            age(path_of(name), GRACE)
        real = FileSystemStorage.get_modified_time

        def modified(self: FileSystemStorage, name: str) -> datetime:
            if name in {stored[0], stored[2]}:
                raise PermissionError(name)
            return real(self, name)

        monkeypatch.setattr(FileSystemStorage, "get_modified_time", modified)

        cleaned = clean()

        assert cleaned.counts == NOTHING | {"files": 3, "scanned": 5}
        assert len(cleaned.problems) == 2
        assert files_in(files_dir) == [stored[0], stored[2]]

    def test_without_end_ends_the_scan_and_the_next_goes_on(
        self,
        shelf: StoredArtifactShelf,
        session_row: Session,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A storage whose network is away is not waited for 2,000 times."""
        for number in range(5):
            keep(shelf, session_row, name=f"{number}")
        clean()
        asked: list[str] = []

        def exists(self: FileSystemStorage, name: str) -> bool:
            if name == MARK_NAME:
                return True
            asked.append(name)
            raise OSError("no route to the storage")

        monkeypatch.setattr(FileSystemStorage, "exists", exists)

        first, second = clean(NOW + GRACE), clean(NOW + GRACE)

        assert (len(first.problems), len(second.problems)) == (3, 2)
        assert len(set(asked)) == 5
        assert ArtifactVersion.objects.filter(missing_since=None).count() == 5

    def test_with_removing_is_told_and_not_counted(
        self,
        shelf: StoredArtifactShelf,
        files_dir: Path,
        monkeypatch: pytest.MonkeyPatch,
        transactional_db: None,
    ) -> None:
        for _ in range(5):
            age(path_of(stage(shelf).storage_name), GRACE)
        with monkeypatch.context() as patch:
            asked: list[str] = []

            def delete(self: FileSystemStorage, name: str) -> None:
                asked.append(name)
                raise PermissionError(name)

            patch.setattr(FileSystemStorage, "delete", delete)
            cleaned = clean()

        assert cleaned.counts["files"] == 0
        assert len(cleaned.problems) == len(asked) == 3
        assert counts() == NOTHING | {"files": 5}
        assert files_in(files_dir) == []

    def test_with_listing_is_told(
        self,
        shelf: StoredArtifactShelf,
        session_row: Session,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Rows are looked at all the same."""
        keep(shelf, session_row)
        clean()
        lose(version().storage_name)

        def listdir(self: FileSystemStorage, path: str) -> tuple[list[str], list[str]]:
            raise NotImplementedError("this storage lists nothing")

        monkeypatch.setattr(FileSystemStorage, "listdir", listdir)

        cleaned = clean()

        assert "lists nothing" in cleaned.problems[0]
        assert cleaned.counts == NOTHING | {"missing": 1, "scanned": 1}

    def test_of_files_that_go_meanwhile_is_none(
        self,
        shelf: StoredArtifactShelf,
        settings: LazySettings,
        monkeypatch: pytest.MonkeyPatch,
        transactional_db: None,
    ) -> None:
        """Between the listing and the look at one of them."""
        incoming: Path = settings.CARDWIRE_INCOMING_DIR
        incoming.mkdir()
        (incoming / "taken").write_bytes(b"")
        (incoming / "folder").mkdir()
        gone = stage(shelf).storage_name
        real = FileSystemStorage.listdir

        def listdir(self: FileSystemStorage, path: str) -> tuple[list[str], list[str]]:
            found = real(self, path)
            if path:
                self.delete(gone)
            return found

        monkeypatch.setattr(FileSystemStorage, "listdir", listdir)
        real_is_file = Path.is_file

        def is_file(self: Path) -> bool:
            found = real_is_file(self)
            if self.name == "taken":
                self.unlink()
            return found

        monkeypatch.setattr(Path, "is_file", is_file)

        assert counts(NOW + 1000 * DAY) == NOTHING

    @pytest.mark.parametrize("what", ["version", "session"])
    def test_of_rows_that_go_meanwhile_is_none(
        self,
        what: str,
        shelf: StoredArtifactShelf,
        session_row: Session,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Between the look at one of them and its removing."""
        keep(shelf, session_row)
        keep(shelf, make_session("sess_2"))
        clean()
        lose(ArtifactVersion.objects.order_by("pk")[0].storage_name)
        clean()
        real = FileSystemStorage.exists

        def exists(self: FileSystemStorage, name: str) -> bool:
            if name != MARK_NAME:
                if what == "version":
                    ArtifactVersion.objects.exclude(missing_since=None).delete()
                else:
                    Session.objects.filter(pk=session_row.pk).delete()
            return real(self, name)

        monkeypatch.setattr(FileSystemStorage, "exists", exists)

        assert counts(NOW + GRACE) == NOTHING
        assert ArtifactVersion.objects.count() == 1


class TestTwoAtOnce:
    @pytest.mark.parametrize("what", ["files", "versions"])
    def test_count_nothing_twice(
        self,
        what: str,
        shelf: StoredArtifactShelf,
        session_row: Session,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The other run is over between this one's look and its removing."""
        keep(shelf, session_row)
        keep(shelf, session_row, name="b.txt")
        clean()
        if what == "files":
            age(path_of(stage(shelf).storage_name), GRACE)
        else:
            lose(ArtifactVersion.objects.order_by("pk")[0].storage_name)
            clean()
        other: list[dict[str, int]] = []
        real = FileSystemStorage.exists

        def exists(self: FileSystemStorage, name: str) -> bool:
            if name != MARK_NAME and not other:
                other.append({})
                other[0] = counts(NOW + GRACE)
            return real(self, name)

        monkeypatch.setattr(FileSystemStorage, "exists", exists)
        if what == "files":
            real_time = FileSystemStorage.get_modified_time

            def modified(self: FileSystemStorage, name: str) -> datetime:
                if not other:
                    other.append({})
                    other[0] = counts(NOW + GRACE)
                    # As if it had been looked at before it was removed.
                    return NOW - GRACE
                return real_time(self, name)

            monkeypatch.setattr(FileSystemStorage, "get_modified_time", modified)

        first = counts(NOW + GRACE)

        assert first[what] + other[0][what] == 1

    def test_leave_a_version_to_whoever_keeps_it(
        self,
        shelf: StoredArtifactShelf,
        session_row: Session,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A file is kept between the listing of files and the look at their rows."""
        content = stage(shelf)
        age(path_of(content.storage_name), GRACE)
        real = FileSystemStorage.listdir

        def listdir(self: FileSystemStorage, path: str) -> tuple[list[str], list[str]]:
            found = real(self, path)
            if path and not Artifact.objects.exists():
                keep(shelf, session_row, b"another")
                ArtifactVersion.objects.update(storage_name=content.storage_name)
            return found

        monkeypatch.setattr(FileSystemStorage, "listdir", listdir)

        assert counts() == NOTHING
        assert os.path.exists(path_of(content.storage_name))

    def test_begin_with_one_word(
        self,
        shelf: StoredArtifactShelf,
        session_row: Session,
        files_dir: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Both find none; the second one waits and finds the first one's."""
        keep(shelf, session_row)
        real = secrets.token_hex

        def token_hex(size: int) -> str:
            monkeypatch.setattr(secrets, "token_hex", real)
            clean()
            return real(size)

        monkeypatch.setattr(secrets, "token_hex", token_hex)

        assert counts() == NOTHING
        assert (files_dir / MARK_NAME).read_text() == CleaningPlace.objects.get(
            scope="mark"
        ).place


class TestCommand:
    def test_prints_one_line(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        keep(shelf, session_row)
        age(path_of(stage(shelf).storage_name), GRACE, utc_now())
        words = "files=1 versions=0 missing=0 scanned=3"

        assert words_in(command("--dry-run")) == words
        assert words_in(command("--dry-run")) == words
        assert words_in(command()) == words
        assert words_in(command()) == "files=0 versions=0 missing=0 scanned=2"

    def test_ends_with_the_reason_when_it_had_to_leave_something(
        self, shelf: StoredArtifactShelf, session_row: Session, files_dir: Path
    ) -> None:
        keep(shelf, session_row)
        files_dir.rename(files_dir.with_name("unmounted"))
        output = StringIO()

        with pytest.raises(CommandError, match="not mounted"):
            call_command("cleanup_orphans", stdout=output)

        nothing = "files=0 versions=0 missing=0 scanned=0"
        assert words_in(output.getvalue()) == nothing

    def test_knows_the_cleaner_of_artifacts(self) -> None:
        assert [type(each) for each in registered_cleaners()] == [ArtifactCleaner]


def test_works_on_any_storage(
    settings: LazySettings, tmp_path: Path, session_row: Session
) -> None:
    """Spec: issue "Artifacts" 1: any storage by setting."""
    use_storage(settings, IN_MEMORY, location=str(tmp_path / "nowhere"))
    settings.CARDWIRE_INCOMING_DIR = tmp_path / "incoming"
    shelf = StoredArtifactShelf(incoming_dir=tmp_path / "incoming", max_bytes=1000)
    keep(shelf, session_row)
    stage(shelf)
    now = utc_now()

    assert counts(now) == NOTHING
    assert counts(now + 8 * DAY) == NOTHING | {"files": 1}
    storages["artifacts"].delete(version().storage_name)
    assert counts(now + 8 * DAY) == NOTHING | {"missing": 1}
    assert counts(now + 15 * DAY) == NOTHING | {"versions": 1}
