"""The HTTP routes of the app."""

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, path

from cards import views
from cards.ports import PromptBook


def card_routes(book: PromptBook) -> list[URLPattern]:
    """Return the routes.

    Args:
        book: Keeps the prompts that a snapshot shows.
    """
    return [
        path("", views.PageView.as_view(), name="page"),
        path("sign-in/", views.SignInView.as_view(), name="sign-in"),
        path("sign-out/", LogoutView.as_view(), name="sign-out"),
        path("v1/sessions", views.SessionList.as_view(), name="sessions"),
        path(
            "v1/sessions/<str:session_id>",
            views.SessionDetail.as_view(),
            name="session",
        ),
        path(
            "v1/sessions/<str:session_id>/snapshot",
            views.SnapshotView.as_view(book=book),
            name="snapshot",
        ),
        path(
            "v1/sessions/<str:session_id>/events",
            views.EventList.as_view(),
            name="events",
        ),
        path("v1/wire.schema.json", views.WireSchema.as_view(), name="wire-schema"),
    ]
