"""`manage.py issue_token USERNAME`: a token for a client without a cookie."""

import secrets
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError
from django.utils import timezone

from cards.access_tokens import find_user, issue_token

#: Random bytes of a token.
SECRET_BYTES = 32


class Command(BaseCommand):
    """Print a new token of a user, once. Spec: interfaces.md, Commands."""

    help = "Print a new access token of a user; it cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("username")
        parser.add_argument(
            "--dry-run", action="store_true", help="check the user, issue nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Issue the token.

        Raises:
            CommandError: No such user may sign in, or the database is away.
        """
        username = options["username"]
        try:
            token = _issue_token(username, is_dry_run=options["dry_run"])
        except DatabaseError as error:
            raise CommandError(f"issue_token: {error}") from error
        self.stdout.write(f"issue_token: user={username} token={token}")


def _issue_token(username: str, *, is_dry_run: bool) -> str:
    user = find_user(username)
    if user is None:
        raise CommandError(f"issue_token: no active user {username!r}")
    if is_dry_run:
        return ""
    return issue_token(user, secrets.token_urlsafe(SECRET_BYTES), timezone.now())
