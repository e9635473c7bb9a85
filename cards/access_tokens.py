"""Tokens for clients that have no cookie: issued once, kept as a digest.

Spec: Ruling E27; interfaces.md, WebSocket.
"""

import hashlib
from datetime import datetime

from django.contrib.auth.models import User

from cards.models import AccessToken

#: Tells a token of ours from other secrets, for people and for secret scanners.
TOKEN_PREFIX = "cwt_"  # noqa: S105 - the public part


def issue_token(user: User, secret: str, now: datetime) -> str:
    """Store a new token of a user and return it; it cannot be read again.

    Args:
        secret: Random, with at least 128 bits.
    """
    token = TOKEN_PREFIX + secret
    AccessToken.objects.create(user=user, digest=_digest(token), created_at=now)
    return token


def find_token(token: str) -> AccessToken | None:
    """Return the row of a token whose user may sign in; None for any other text."""
    rows = AccessToken.objects.select_related("user").filter(digest=_digest(token))
    row = rows.first()
    return row if row is not None and row.user.is_active else None


def find_user(username: str) -> User | None:
    """Return the user of that name who may sign in; None if there is none."""
    return User.objects.filter(username=username, is_active=True).first()


def valid_tokens(token_pks: set[int]) -> set[int]:
    """Return those of these tokens that still open the door, in one query."""
    rows = AccessToken.objects.filter(pk__in=token_pks, user__is_active=True)
    return set(rows.values_list("pk", flat=True))


def _digest(token: str) -> str:
    # A random secret of this length needs no slow hash.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
