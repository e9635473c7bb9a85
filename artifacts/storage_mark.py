"""Which storage belongs to the database, so that no other one is cleaned up.

A disk that is not mounted looks like one that has lost every file, and the storage of
another database like one full of files that nobody knows. So the storage has a file
with a word in it that the database knows, too.

| the database knows | the storage has | |
|---|---|---|
| a word | the same | it is the one |
| a word | another one, or none | it is not |
| none yet | one | it is another database's |
| none yet | none, and none of the newest files | it is not mounted |
| none yet | none | it is the one, and gets a word |

Spec: issue "Artifacts" 8.
"""

import secrets
from typing import Final

from django.core.files.base import ContentFile
from django.core.files.storage import Storage
from django.db import transaction

from artifacts.models import ArtifactVersion, CleaningPlace

MARK_NAME: Final = "cardwire-storage"

#: In front of a word that the storage may not have yet.
_PENDING: Final = "?"

#: Files that are looked for where no word is known yet.
_SAMPLE: Final = 20


class StorageUnknown(Exception):
    """The storage is not known to be the database's; for operators."""


def check_storage(storage: Storage, *, is_dry_run: bool) -> None:
    """Return if the storage is the database's.

    Args:
        is_dry_run: Leave no word where there is none yet.

    Raises:
        StorageUnknown: It is not; the message says what to do.
    """
    row = CleaningPlace.objects.filter(scope=CleaningPlace.MARK).first()
    if row is not None and not row.place.startswith(_PENDING):
        _require_word(storage, row.place)
        return
    if is_dry_run:
        _require_likely(storage, row.place if row else "")
        return
    # Noted first: a crash behind it leaves a word that the next run finds again.
    CleaningPlace.objects.get_or_create(
        scope=CleaningPlace.MARK,
        defaults={"place": _PENDING + secrets.token_hex(16)},
    )
    with transaction.atomic():
        rows = CleaningPlace.objects.select_for_update()
        row = rows.get(scope=CleaningPlace.MARK)
        if row.place.startswith(_PENDING):
            _require_likely(storage, row.place)
            row.place = row.place.removeprefix(_PENDING)
            _leave_word(storage, row.place)
            row.save(update_fields=["place"])
        else:
            _require_word(storage, row.place)


def _require_word(storage: Storage, word: str) -> None:
    if _word_in(storage) != word:
        raise StorageUnknown(
            f"the storage of artifacts has no file {MARK_NAME} with the word {word}:"
            " it is another one or not mounted; if it is the right one, put that"
            " file there"
        )


def _require_likely(storage: Storage, place: str) -> None:
    word = _word_in(storage)
    if word and word != place.removeprefix(_PENDING):
        raise StorageUnknown(
            "the storage of artifacts belongs to another database: its file"
            f" {MARK_NAME} has a word that this one does not know; if it is the right"
            " one, remove that file"
        )
    newest = ArtifactVersion.objects.order_by("-pk").values_list("storage_name")
    names = [name for (name,) in newest[:_SAMPLE]]
    if names and not any(map(storage.exists, names)):
        raise StorageUnknown(
            f"the storage of artifacts has none of the {len(names)} newest files: it"
            " is another one or not mounted"
        )


def _word_in(storage: Storage) -> str:
    if not storage.exists(MARK_NAME):
        return ""
    with storage.open(MARK_NAME) as file:
        return bytes(file.read(100)).decode(errors="replace").strip()


def _leave_word(storage: Storage, word: str) -> None:
    if _word_in(storage):
        return
    saved = storage.save(MARK_NAME, ContentFile(word.encode()))
    if saved != MARK_NAME:
        storage.delete(saved)
        raise StorageUnknown(f"the storage of artifacts keeps {MARK_NAME} as {saved}")
