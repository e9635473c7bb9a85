"""Removing files that no row names, and rows whose file is gone.

| what | becomes |
|---|---|
| a file that was being written, untouched for the grace | nothing |
| a file of the storage that no row names, as old | nothing |
| a row without its file | marked; nothing when it is still so after the grace |
| a marked row whose file is back | unmarked |

Each run looks at a bounded number of each, from where the last one stopped. Of two
runs at the same time, the one that notes its new place first removes what it has
found; the other one leaves it alone.

Spec: issue "Artifacts" 8; interfaces.md, Commands.
"""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto
from itertools import islice
from pathlib import Path
from typing import ClassVar, Final

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.core.files.storage import Storage, storages
from django.db import Error as DatabaseError
from django.db import transaction
from django.db.models import F

from artifacts.models import Artifact, ArtifactVersion, CleaningPlace
from artifacts.staging import THUMBNAIL_SUFFIX
from artifacts.storage_mark import StorageUnknown, check_storage
from cards.cleaners import GRACE, Allowance, Cleaned
from cards.ownership import lock_session

logger = logging.getLogger(__name__)

#: Things that are looked up at once.
BATCH: Final = 500

#: After so many of them in one scan, a storage is left alone.
MAX_FAILURES: Final = 3

#: What `new_storage_name` makes; anything else in a storage is not ours to remove.
_OURS: Final = re.compile(
    rf"([0-9a-f]{{2}})/\1[0-9a-f]{{30}}({re.escape(THUMBNAIL_SUFFIX)})?"
)

_FOLDER: Final = re.compile(r"[0-9a-f]{2}")


class ArtifactCleaner:
    """Cleans the storage of artifacts, their rows, and what was being written.

    Args:
        storage: None for Django's storage `artifacts`.
        incoming_dir: None for the one of the settings.
    """

    def __init__(
        self, *, storage: Storage | None = None, incoming_dir: Path | None = None
    ) -> None:
        self._storage = storage or storages["artifacts"]
        self._incoming_dir = incoming_dir or settings.CARDWIRE_INCOMING_DIR

    def clean(
        self, now: datetime, allowance: Allowance, *, is_dry_run: bool
    ) -> Cleaned:
        """See `cards.cleaners.Cleaner.clean`."""
        problems: list[str] = []
        scans: list[_Scan] = [_IncomingScan(self._incoming_dir, now)]
        if self._is_known(problems, is_dry_run=is_dry_run):
            scans += [_FileScan(self._storage, now), _RowScan(self._storage, now)]
        counts = {"files": 0, "versions": 0, "missing": 0, "scanned": 0}
        for done, scan in enumerate(scans):
            part = allowance.part(len(scans) - done)
            found = scan.run(part, is_dry_run=is_dry_run)
            allowance.give_back(part)
            counts[scan.word] += found.removed
            counts["missing"] += found.missing
            counts["scanned"] += found.scanned
            problems += found.problems
        return Cleaned(counts, problems)

    def _is_known(self, problems: list[str], *, is_dry_run: bool) -> bool:
        try:
            check_storage(self._storage, is_dry_run=is_dry_run)
        except StorageUnknown as error:
            problems.append(str(error))
            return False
        except DatabaseError:
            raise
        except Exception as error:  # noqa: BLE001
            problems.append(_failure(error))
            return False
        return True


def _failure(error: Exception) -> str:
    # A storage may be anybody's; what its network raises is no OSError.
    logger.error("the clean-up of artifacts failed", exc_info=error)
    return f"the storage of artifacts failed: {error!r}"


class _Verdict(Enum):
    DOOMED = auto()
    MISSING = auto()
    FOUND_AGAIN = auto()


@dataclass(slots=True)
class _Found:
    """What a scan came upon.

    Attributes:
        doomed: Keys of what is to be removed.
        found_again: Keys of rows that were marked, and whose file is back.
        missing: Rows without a file that are kept for now.
        reached: The key of what was looked at last; "" when that was all.
    """

    doomed: list[str] = field(default_factory=list)
    removed: int = 0
    marked: list[str] = field(default_factory=list)
    found_again: list[str] = field(default_factory=list)
    scanned: int = 0
    reached: str = ""
    problems: list[str] = field(default_factory=list)

    @property
    def missing(self) -> int:
        return len(self.marked)


class _Scan(ABC):
    """Looks through one kind of thing, in order of their keys."""

    #: Of the table of places.
    scope: ClassVar[str]
    #: Of the summary line.
    word: ClassVar[str]

    @abstractmethod
    def keys(self, behind: str, limit: int) -> list[str]:
        """Return the next keys."""

    @abstractmethod
    def look_up(self, keys: Sequence[str]) -> None:
        """Ask the database about the keys that come next."""

    @abstractmethod
    def verdict(self, key: str) -> _Verdict | None:
        """Return what is to be done; None leaves it as it is."""

    @abstractmethod
    def remove(self, key: str) -> bool:
        """Remove one thing; tell whether it was there."""

    def note(self, found: _Found) -> None:  # noqa: B027
        """Mark what is missing, and unmark what is there again; if it is rows."""

    def run(self, allowance: Allowance, *, is_dry_run: bool) -> _Found:
        """Look, and remove what is doomed."""
        row = CleaningPlace.objects.filter(scope=self.scope).first()
        if row is None:
            row = CleaningPlace(scope=self.scope)
            if not is_dry_run:
                row, _ = CleaningPlace.objects.get_or_create(scope=self.scope)
        found = _Found(reached=row.place)
        try:
            keys = self.keys(row.place, allowance.scans)
        except DatabaseError:
            raise
        except Exception as error:  # noqa: BLE001
            found.problems.append(_failure(error))
            return found
        is_end = len(keys) < allowance.scans
        if self._look(found, keys, allowance) and is_end:
            found.reached = ""
        if is_dry_run:
            found.removed = len(found.doomed)
        else:
            self._act(found, row)
        return found

    def _look(self, found: _Found, keys: Sequence[str], allowance: Allowance) -> bool:
        """Look at things until that is all, or enough; tell whether it was all."""
        for number, key in enumerate(keys):
            if number % BATCH == 0:
                self.look_up(keys[number : number + BATCH])
            verdict = self._verdict_or_problem(found, key)
            if verdict is _Verdict.DOOMED and not allowance.deletions:
                return False
            self._take(found, key, verdict, allowance)
            if len(found.problems) == MAX_FAILURES:
                return False
        return True

    def _verdict_or_problem(self, found: _Found, key: str) -> _Verdict | None:
        try:
            return self.verdict(key)
        except Exception as error:  # noqa: BLE001
            # It is passed by, so that it is in nobody's way for ever.
            found.problems.append(_failure(error))
            return None

    @staticmethod
    def _take(
        found: _Found, key: str, verdict: _Verdict | None, allowance: Allowance
    ) -> None:
        if verdict is _Verdict.DOOMED:
            allowance.deletions -= 1
            found.doomed.append(key)
        elif verdict is _Verdict.MISSING:
            found.marked.append(key)
        elif verdict is _Verdict.FOUND_AGAIN:
            found.found_again.append(key)
        allowance.scans -= 1
        found.scanned += 1
        found.reached = key

    def _act(self, found: _Found, row: CleaningPlace) -> None:
        self.note(found)
        # Whoever notes the new place removes; another run has found the same.
        is_ours = CleaningPlace.objects.filter(pk=row.pk, runs=row.runs).update(
            place=found.reached, runs=F("runs") + 1
        )
        for key in found.doomed if is_ours else ():
            try:
                found.removed += self.remove(key)
            except DatabaseError:
                raise
            except Exception as error:  # noqa: BLE001
                found.problems.append(_failure(error))
            if len(found.problems) >= MAX_FAILURES:
                # The others are come round to again.
                return


class _IncomingScan(_Scan):
    """What was being written when a process died."""

    scope = CleaningPlace.INCOMING
    word = "files"

    def __init__(self, directory: Path, now: datetime) -> None:
        self._directory = directory
        self._cutoff = now - GRACE

    def keys(self, behind: str, limit: int) -> list[str]:
        if not self._directory.is_dir():
            return []
        paths = self._directory.iterdir()
        names = sorted(path.name for path in paths if path.is_file())
        return [name for name in names if name > behind][:limit]

    def look_up(self, keys: Sequence[str]) -> None:
        """Know that no row names any of these."""

    def verdict(self, key: str) -> _Verdict | None:
        try:
            changed = (self._directory / key).stat().st_mtime
        except FileNotFoundError:
            # The storage has taken it meanwhile.
            return None
        is_old = datetime.fromtimestamp(changed, UTC) <= self._cutoff
        return _Verdict.DOOMED if is_old else None

    def remove(self, key: str) -> bool:
        try:
            (self._directory / key).unlink()
        except FileNotFoundError:
            return False
        return True


class _FileScan(_Scan):
    """Files that the storage has."""

    scope = CleaningPlace.FILES
    word = "files"

    def __init__(self, storage: Storage, now: datetime) -> None:
        self._storage = storage
        self._cutoff = now - GRACE
        self._live: set[str] = set()

    def keys(self, behind: str, limit: int) -> list[str]:
        return list(islice(self._names(behind), limit))

    def look_up(self, keys: Sequence[str]) -> None:
        # Asked after they were listed: what is kept meanwhile has a row.
        contents = {key.removesuffix(THUMBNAIL_SUFFIX) for key in keys}
        rows = ArtifactVersion.objects.filter(storage_name__in=contents)
        names = rows.values_list("storage_name", "thumbnail_name")
        self._live = {name for row in names for name in row}

    def verdict(self, key: str) -> _Verdict | None:
        if key in self._live:
            return None
        try:
            is_old = self._storage.get_modified_time(key) <= self._cutoff
        except FileNotFoundError:
            # Its row has gone meanwhile, and the file with it.
            return None
        return _Verdict.DOOMED if is_old else None

    def remove(self, key: str) -> bool:
        self._storage.delete(key)
        return True

    def _names(self, behind: str) -> Iterator[str]:
        try:
            folders, _ = self._storage.listdir("")
        except FileNotFoundError:
            # Nothing was ever stored.
            return
        for folder in sorted(filter(_FOLDER.fullmatch, folders)):
            if folder < behind[:2]:
                continue
            _, names = self._storage.listdir(folder)
            paths = (f"{folder}/{name}" for name in sorted(names))
            yield from (
                path for path in paths if path > behind and _OURS.fullmatch(path)
            )


class _RowScan(_Scan):
    """Rows, whose files may be gone."""

    scope = CleaningPlace.ROWS
    word = "versions"

    def __init__(self, storage: Storage, now: datetime) -> None:
        self._storage = storage
        self._now = now
        self._rows: dict[str, ArtifactVersion] = {}

    def keys(self, behind: str, limit: int) -> list[str]:
        rows = ArtifactVersion.objects.filter(pk__gt=int(behind or 0)).order_by("pk")
        return [str(pk) for pk in rows.values_list("pk", flat=True)[:limit]]

    def look_up(self, keys: Sequence[str]) -> None:
        rows = ArtifactVersion.objects.filter(pk__in=map(int, keys))
        fields = rows.only("pk", "storage_name", "missing_since")
        self._rows = {str(row.pk): row for row in fields}

    def verdict(self, key: str) -> _Verdict | None:
        row = self._rows.get(key)
        if row is None:
            return None
        if self._storage.exists(row.storage_name):
            return _Verdict.FOUND_AGAIN if row.missing_since else None
        if row.missing_since and row.missing_since <= self._now - GRACE:
            return _Verdict.DOOMED
        return _Verdict.MISSING

    def note(self, found: _Found) -> None:
        rows = ArtifactVersion.objects.filter(pk__in=map(int, found.marked))
        rows.filter(missing_since=None).update(missing_since=self._now)
        rows = ArtifactVersion.objects.filter(pk__in=map(int, found.found_again))
        rows.update(missing_since=None)

    def remove(self, key: str) -> bool:
        row = ArtifactVersion.objects.filter(pk=int(key)).select_related("artifact")
        version = row.first()
        if version is None:
            return False
        with transaction.atomic():
            try:
                # The next version of the same artifact waits until it is clear
                # whether that is still there.
                lock_session(version.artifact.session_id)
            except ObjectDoesNotExist:
                return False
            rows = ArtifactVersion.objects.filter(pk=version.pk)
            count, _ = rows.exclude(missing_since=None).delete()
            bare = Artifact.objects.filter(pk=version.artifact_id, versions=None)
            bare.delete()
        return bool(count)
