"""Who may use the REST interface.

Spec: Ruling E27.
"""

from django.conf import settings
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from cards.authentication import principal_of_request
from cards.principals import Principal


def principal_of(request: Request) -> Principal | None:
    """Return whom a REST request speaks for; None when it may own nothing."""
    return principal_of_request(
        request._request,
        allow_anonymous=settings.CARDWIRE_ALLOW_ANONYMOUS,
    )


class OwnsSessions(BasePermission):
    """Let through whoever may own sessions."""

    message = "sign in first"

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Tell whether the request speaks for a principal."""
        return principal_of(request) is not None
