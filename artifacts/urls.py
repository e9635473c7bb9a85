"""The HTTP routes of the app."""

from django.urls import URLPattern, path

from artifacts import views
from artifacts.shelf import StoredArtifactShelf


def artifact_routes(shelf: StoredArtifactShelf) -> list[URLPattern]:
    """Return the routes.

    Args:
        shelf: Keeps what is brought.
    """
    return [
        path(
            "v1/artifacts",
            views.ArtifactList.as_view(shelf=shelf),
            name="artifacts",
        ),
        path(
            "v1/artifacts/<str:artifact_id>",
            views.ArtifactDetail.as_view(),
            name="artifact",
        ),
        path(
            "v1/artifacts/<str:artifact_id>/content",
            views.ArtifactContent.as_view(),
            name="artifact-content",
        ),
        path(
            "v1/artifacts/<str:artifact_id>/thumbnail",
            views.ArtifactThumbnail.as_view(),
            name="artifact-thumbnail",
        ),
    ]
