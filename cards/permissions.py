"""Who may use the REST interface.

Spec: Ruling E27.
"""

from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from django.http import QueryDict
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import NotAuthenticated
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from cards.authentication import identity_of_request, shows_token
from cards.principals import Principal

if TYPE_CHECKING:
    # Importing the views makes Django REST framework load its settings, which name
    # this module.
    from rest_framework.views import APIView


def principal_of(request: Request) -> Principal | None:
    """Return whom a REST request speaks for; None when it may own nothing."""
    identity = identity_of_request(
        request._request,
        allow_anonymous=settings.CARDWIRE_ALLOW_ANONYMOUS,
    )
    return identity.principal if identity else None


class _HeadAlone:
    """A request as far as its body, for the look for the page's CSRF token.

    Django looks for it in forms before it looks into the headers, and would take in
    a whole file for it; of other bodies REST framework would bound the size.
    """

    def __init__(self, request: Request) -> None:
        self._whole = request
        self.POST = QueryDict()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)


class CardwireAuthentication(SessionAuthentication):
    """Cookies as Django has them, and a 401 for whoever is to show something.

    Tokens are looked at by `principal_of`: they speak for a principal, not for a
    user of the admin.
    """

    def authenticate(self, request: Request) -> Any:
        """Return the signed-in user of a cookie, and see that the page is ours.

        A browser sends its cookie whoever made the page, a guest's as well, and what
        a proxy asked it for (`Authorization: Basic`) likewise; a token comes from
        whoever has it.

        Raises:
            PermissionDenied: A cookie comes with a change from another site's page.
        """
        if shows_token(request._request):
            return None
        found = super().authenticate(request)
        if found is None and settings.SESSION_COOKIE_NAME in request._request.COOKIES:
            self.enforce_csrf(request)
        return found

    def enforce_csrf(self, request: Request) -> None:
        """See that a change comes from a page of ours, by its `X-CSRFToken` header.

        Raises:
            PermissionDenied: It does not.
        """
        super().enforce_csrf(cast("Request", _HeadAlone(request)))

    def authenticate_header(self, request: Request) -> str:
        """Return what a client may show."""
        return "Bearer"


class OwnsSessions(BasePermission):
    """Let through whoever may own sessions."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Let the request through.

        Raises:
            NotAuthenticated: It speaks for no principal. Django REST framework would
                call that forbidden when there is a good cookie beside a bad token.
        """
        if principal_of(request) is None:
            raise NotAuthenticated(
                "sign in first, or show a token that holds as Authorization: Bearer"
            )
        return True
