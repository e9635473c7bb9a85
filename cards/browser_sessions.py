"""Sessions of browsers as Django keeps them; settings name this module.

Spec: Ruling E27.
"""

from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore


class SessionStore(DatabaseSessionStore):
    """Django's own, which looks only for keys that it may have made itself.

    A cookie in quotes can bring a NUL, on which PostgreSQL fails.
    """

    def __init__(self, session_key: str | None = None) -> None:
        is_key = session_key and session_key.isascii() and session_key.isalnum()
        super().__init__(session_key if is_key else None)
