"""Reads of artifacts and their versions."""

import re
from typing import Any, Final

from artifacts.models import ArtifactVersion

#: As they are minted. PostgreSQL fails on a NUL, which none of them has.
ARTIFACT_ID: Final = re.compile(r"[A-Za-z0-9_]{1,32}")

#: Beyond it databases have no number.
MAX_VERSION: Final = 2**31 - 1


def find_version(
    artifact_id: str, version: int | None = None, **session: Any
) -> ArtifactVersion | None:
    """Return a version with its artifact, the newest for None; None for none.

    Args:
        session: Conditions on the artifact's session, such as `session_id` or
            `session__principal`; whoever asks says whose it is.
    """
    if not ARTIFACT_ID.fullmatch(artifact_id):
        return None
    rows = ArtifactVersion.objects.filter(
        artifact__artifact_id=artifact_id,
        **{f"artifact__{name}": value for name, value in session.items()},
    )
    if version is not None:
        if not 0 < version <= MAX_VERSION:
            return None
        rows = rows.filter(version=version)
    return rows.select_related("artifact").order_by("-version").first()
