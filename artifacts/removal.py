"""Files go when their rows have gone, and never before.

Spec: issue "Artifacts" 1, 8; design.md 1, crash-only.
"""

from functools import partial
from typing import Any

from django.core.files.storage import storages
from django.db import transaction
from django.db.models.signals import post_delete

from artifacts.models import ArtifactVersion
from artifacts.staging import remove_from


def follow_rows() -> None:
    """Have the files of a version removed once nothing can bring its row back.

    However the row went: by itself, with its artifact or with its session. A crash
    in between leaves files without rows, which `cleanup_orphans` removes.
    """
    post_delete.connect(
        _remove_files, sender=ArtifactVersion, dispatch_uid="artifacts.follow_rows"
    )


def _remove_files(instance: ArtifactVersion, **_: Any) -> None:
    transaction.on_commit(
        partial(
            remove_from,
            storages["artifacts"],
            instance.storage_name,
            instance.thumbnail_name,
        ),
        robust=True,
    )
