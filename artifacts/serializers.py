"""Artifacts as REST tells of them.

Spec: interfaces.md, REST; docs/artifacts.md.
"""

from collections.abc import Sequence
from typing import Any

from django.urls import reverse

from artifacts.models import Artifact, ArtifactVersion


def artifact_json(artifact: Artifact, newest: ArtifactVersion) -> dict[str, Any]:
    """Return what is told of an artifact: itself, and its newest version.

    Args:
        artifact: With its session.
    """
    return {
        "artifact_id": artifact.artifact_id,
        "session_id": artifact.session.session_id,
        "name": artifact.name,
        "source": artifact.source,
        "uri": f"artifact://{artifact.artifact_id}",
        **version_json(artifact, newest),
    }


def artifact_with_versions(
    artifact: Artifact, versions: Sequence[ArtifactVersion]
) -> dict[str, Any]:
    """Return the same with all its versions.

    Args:
        versions: Oldest first; at least one.
    """
    return {
        **artifact_json(artifact, versions[-1]),
        "versions": [version_json(artifact, each) for each in versions],
    }


def version_json(artifact: Artifact, version: ArtifactVersion) -> dict[str, Any]:
    """Return what is told of one version."""
    return {
        "version": version.version,
        "type": version.type,
        "mime_type": version.mime_type,
        "size_bytes": version.size_bytes,
        "sha256": version.sha256,
        "role": version.role,
        "description": version.description,
        "created_at": version.created_at,
        "thumbnail": _thumbnail_path(artifact, version),
    }


def _thumbnail_path(artifact: Artifact, version: ArtifactVersion) -> str | None:
    if not version.thumbnail_name:
        return None
    path = reverse("artifact-thumbnail", args=[artifact.artifact_id])
    return f"{path}?version={version.version}"
