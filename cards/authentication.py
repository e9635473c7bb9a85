"""Whom a request or a handshake speaks for.

| it carries | then it speaks for |
|---|---|
| `Authorization: Bearer …`, or the subprotocols `bearer, …` | the token's user |
| a bad token, whatever else it carries | nobody |
| a session cookie of a signed-in user | that user |
| a session cookie of a browser, where anonymous use is allowed | that browser |
| none of these, where anonymous use is allowed | `anonymous` |

What carries a secret in its address comes no further than `cards.address_guard`.

Spec: Ruling E27; interfaces.md, WebSocket.
"""

from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.contrib.auth import (
    HASH_SESSION_KEY,
    SESSION_KEY,
    get_user,
    get_user_model,
)
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.models import Session as BrowserSession
from django.http import HttpRequest, parse_cookie
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from cards.access_tokens import find_token, valid_tokens
from cards.browser_sessions import SessionStore
from cards.database import run_in_database
from cards.principals import (
    ANONYMOUS,
    Principal,
    browser_principal,
    user_principal,
)

_BEARER = "bearer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who somebody is, and by what we know it.

    Attributes:
        token_pk: The token that was shown; None for none.
        session_key: The signed-in user's session; None for none. An anonymous
            browser has nothing that could be taken from it.
    """

    principal: Principal
    token_pk: int | None = None
    session_key: str | None = field(default=None, repr=False)


def identity_of_request(
    request: HttpRequest, *, allow_anonymous: bool
) -> Identity | None:
    """Return who makes a Django request; None when it may own nothing.

    Spec: Ruling E27.
    """
    token = _bearer_of_request(request)
    if token is not None:
        return _identity_of_token(token)
    return _identity_of_session(request.session, allow_anonymous=allow_anonymous)


def shows_token(request: HttpRequest) -> bool:
    """Tell whether a token, good or bad, says whom a Django request speaks for.

    Whatever else stands in its `Authorization` leaves that to the cookie.
    """
    return _bearer_of_request(request) is not None


def _bearer_of_request(request: HttpRequest) -> str | None:
    return _bearer_of_header(request.headers.get("Authorization", ""))


def _bearer_of_header(value: str) -> str | None:
    # A tab separates, too: a token must not go unseen, and a cookie count instead.
    scheme, _, token = value.replace("\t", " ").strip().partition(" ")
    return token.strip() if scheme.lower() == _BEARER else None


def _identity_of_token(token: str) -> Identity | None:
    row = find_token(token)
    if row is None:
        return None
    return Identity(principal=user_principal(row.user_id), token_pk=row.pk)


def _identity_of_session(
    session: SessionBase, *, allow_anonymous: bool
) -> Identity | None:
    request = HttpRequest()
    request.session = session
    # Checks the session's signature of the password, and that the user is active.
    user = get_user(request)
    if user.is_authenticated:
        return Identity(
            principal=user_principal(user.pk), session_key=session.session_key
        )
    if not allow_anonymous:
        return None
    if session.session_key and not session.is_empty():
        return Identity(principal=browser_principal(session.session_key))
    return Identity(principal=ANONYMOUS)


async def identity_of_scope(
    scope: dict[str, Any], *, allow_anonymous: bool
) -> Identity | None:
    """Return who makes a WebSocket handshake; None refuses it.

    Spec: Ruling E27.
    """
    token = _token_of_scope(scope)
    if token is not None:
        return await run_in_database(_identity_of_token, token)
    session_key = _session_cookie(scope)
    if session_key is None:
        return Identity(principal=ANONYMOUS) if allow_anonymous else None
    return await run_in_database(
        _identity_of_key, session_key, allow_anonymous=allow_anonymous
    )


def offers_bearer(scope: dict[str, Any]) -> bool:
    """Tell whether a handshake offers the subprotocol `bearer`."""
    return _BEARER in scope.get("subprotocols", [])


def _token_of_scope(scope: dict[str, Any]) -> str | None:
    header = _header(scope, b"authorization")
    token = None if header is None else _bearer_of_header(header)
    if token is None and offers_bearer(scope):
        others = [each for each in scope["subprotocols"] if each != _BEARER]
        token = others[0] if others else ""
    return token


def _identity_of_key(session_key: str, *, allow_anonymous: bool) -> Identity | None:
    store = SessionStore(session_key)
    store.load()
    return _identity_of_session(store, allow_anonymous=allow_anonymous)


def _session_cookie(scope: dict[str, Any]) -> str | None:
    header = _header(scope, b"cookie")
    if header is None:
        return None
    # As Django reads it for the page: one odd cookie beside ours, from whatever else
    # runs on the host, makes Python's own reader drop them all.
    return parse_cookie(header).get(settings.SESSION_COOKIE_NAME)


def _header(scope: dict[str, Any], wanted: bytes) -> str | None:
    for name, value in scope["headers"]:
        if name == wanted:
            text: str = value.decode("latin1")
            return text
    return None


def still_valid(identities: set[Identity]) -> set[Identity]:
    """Return those whose token or sign-in still holds, in three queries at most.

    An identity that rests on neither always does.

    Spec: issue "Liveness and ownership" 8.
    """
    tokens = {each.token_pk for each in identities if each.token_pk is not None}
    keys = {each.session_key for each in identities if each.session_key is not None}
    good_tokens = valid_tokens(tokens) if tokens else set()
    good_keys = _valid_session_keys(keys) if keys else set()
    return {
        each
        for each in identities
        if (each.token_pk is None or each.token_pk in good_tokens)
        and (each.session_key is None or each.session_key in good_keys)
    }


def _valid_session_keys(keys: set[str]) -> set[str]:
    rows = BrowserSession.objects.filter(
        session_key__in=keys, expire_date__gt=timezone.now()
    )
    signed_in = {row.session_key: row.get_decoded() for row in rows}
    users = get_user_model()._default_manager.filter(is_active=True)
    user_pks = {data[SESSION_KEY] for data in signed_in.values() if SESSION_KEY in data}
    by_pk = {str(user.pk): user for user in users.filter(pk__in=user_pks)}
    return {
        key
        for key, data in signed_in.items()
        if (user := by_pk.get(data.get(SESSION_KEY, ""))) is not None
        # Another password ends the sessions that were signed in with the old one.
        and constant_time_compare(
            data.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash()
        )
    }
