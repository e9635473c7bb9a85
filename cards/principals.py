"""Who owns a session: the names of principals and who a request speaks for.

| principal | who |
|---|---|
| `user:7` | the Django user with that primary key |
| `browser:<digest>` | an anonymous browser, known by its session cookie |
| `anonymous` | clients without cookie or token, all together |
| "" | nobody: the session is being deleted |

Spec: Ruling E27.
"""

import hashlib
from typing import Final, NewType

Principal = NewType("Principal", str)

ANONYMOUS: Final = Principal("anonymous")

#: Owns what is being deleted; no request speaks for it.
NOBODY: Final = Principal("")


def user_principal(user_pk: int) -> Principal:
    """Return the principal of a signed-in user. Spec: Ruling E27."""
    return Principal(f"user:{user_pk}")


def browser_principal(session_key: str) -> Principal:
    """Return the principal of an anonymous browser.

    The cookie's key is a secret, so only its digest is stored.

    Spec: Ruling E27.
    """
    digest = hashlib.sha256(session_key.encode()).hexdigest()
    return Principal(f"browser:{digest[:32]}")
