"""Reads of artifacts and their versions."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Count, OuterRef, Subquery, Sum

from artifacts.models import Artifact, ArtifactVersion

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


def versions_of(artifact_id: str, **session: Any) -> list[ArtifactVersion]:
    """Return the versions of an artifact with it and its session, oldest first.

    Args:
        session: As for `find_version`.
    """
    if not ARTIFACT_ID.fullmatch(artifact_id):
        return []
    rows = ArtifactVersion.objects.filter(
        artifact__artifact_id=artifact_id,
        **{f"artifact__{name}": value for name, value in session.items()},
    )
    return list(rows.select_related("artifact__session").order_by("version"))


def newest_versions(
    session_pk: int, *, before: tuple[datetime, int] | None, limit: int
) -> list[ArtifactVersion]:
    """Return the newest version of each artifact of a session, newest artifact first.

    Args:
        before: `created_at` and key of the last artifact of the page before; None
            for the first page.
        limit: Most artifacts.
    """
    rows = Artifact.objects.filter(session_id=session_pk)
    if before is not None:
        moment, pk = before
        rows = rows.filter(created_at__lte=moment).exclude(
            created_at=moment, pk__gte=pk
        )
    versions = ArtifactVersion.objects.filter(artifact_id=OuterRef("pk"))
    newest = Subquery(versions.order_by("-version").values("pk")[:1])
    # One without any is about to be removed.
    rows = rows.annotate(newest_pk=newest).filter(newest_pk__isnull=False)
    page = rows.order_by("-created_at", "-pk").values_list("newest_pk", flat=True)
    pks = list(page[:limit])
    found = ArtifactVersion.objects.select_related("artifact__session").in_bulk(pks)
    return [found[pk] for pk in pks if pk in found]


@dataclass(frozen=True, slots=True)
class Totals:
    """How much there is; of an artifact with its newest version.

    Attributes:
        size_bytes: Of all versions together.
        mime_type: Of the newest version; "" for none, and for more than one artifact.
    """

    artifact_count: int = 0
    version_count: int = 0
    size_bytes: int = 0
    mime_type: str = ""


def artifact_totals(artifact_pks: Collection[int]) -> dict[int, Totals]:
    """Return how much there is of each artifact, with two queries for all."""
    versions = ArtifactVersion.objects.filter(artifact_id=OuterRef("pk"))
    newest = Subquery(versions.order_by("-version").values("mime_type")[:1])
    rows = Artifact.objects.filter(pk__in=artifact_pks).annotate(newest_type=newest)
    types = dict(rows.values_list("pk", "newest_type"))
    sizes = ArtifactVersion.objects.filter(artifact_id__in=artifact_pks)
    found = sizes.values_list("artifact_id").annotate(Count("pk"), Sum("size_bytes"))
    return {
        pk: Totals(1, count, size_bytes, types.get(pk) or "")
        for pk, count, size_bytes in found
    }


def session_totals(session_pks: Collection[int]) -> dict[int, Totals]:
    """Return how much there is of each session that has files, with one query."""
    rows = ArtifactVersion.objects.filter(artifact__session_id__in=session_pks)
    found = rows.values_list("artifact__session_id").annotate(
        Count("artifact_id", distinct=True), Count("pk"), Sum("size_bytes")
    )
    return {
        pk: Totals(artifact_count, version_count, size_bytes)
        for pk, artifact_count, version_count, size_bytes in found
    }
