"""Whom a request or a handshake speaks for.

Spec: Ruling E27.
"""

from http.cookies import CookieError, SimpleCookie
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest

from cards.database import run_in_database
from cards.principals import (
    ANONYMOUS,
    Principal,
    browser_principal,
    user_principal,
)


def principal_of_request(
    request: HttpRequest, *, allow_anonymous: bool
) -> Principal | None:
    """Return the principal of a Django request; None when it may own nothing.

    Spec: Ruling E27.
    """
    return _principal_of_session(request.session, allow_anonymous=allow_anonymous)


def _principal_of_session(
    session: SessionBase, *, allow_anonymous: bool
) -> Principal | None:
    request = HttpRequest()
    request.session = session
    # Checks the session's signature of the password, and that the user is active.
    user = get_user(request)
    if user.is_authenticated:
        return user_principal(user.pk)
    if not allow_anonymous:
        return None
    if session.session_key and not session.is_empty():
        return browser_principal(session.session_key)
    return ANONYMOUS


async def principal_of_scope(
    scope: dict[str, Any], *, allow_anonymous: bool
) -> Principal | None:
    """Return the principal of a WebSocket handshake; None refuses it.

    Spec: Ruling E27.
    """
    session_key = _session_cookie(scope)
    if session_key is None:
        return ANONYMOUS if allow_anonymous else None
    return await run_in_database(
        _principal_of_key, session_key, allow_anonymous=allow_anonymous
    )


def _principal_of_key(session_key: str, *, allow_anonymous: bool) -> Principal | None:
    store = SessionStore(session_key)
    store.load()
    return _principal_of_session(store, allow_anonymous=allow_anonymous)


def _session_cookie(scope: dict[str, Any]) -> str | None:
    for name, value in scope["headers"]:
        if name == b"cookie":
            try:
                cookie = SimpleCookie(value.decode("latin1"))
            except CookieError:
                return None
            morsel = cookie.get(settings.SESSION_COOKIE_NAME)
            return morsel.value if morsel else None
    return None
