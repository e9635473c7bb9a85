"""`manage.py issue_token USERNAME`: a token for a client without a cookie."""

import secrets
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
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
            CommandError: No such user may sign in.
        """
        username = options["username"]
        user = find_user(username)
        if user is None:
            raise CommandError(f"issue_token: no active user {username!r}")
        token = ""
        if not options["dry_run"]:
            secret = secrets.token_urlsafe(SECRET_BYTES)
            token = issue_token(user, secret, timezone.now())
        self.stdout.write(f"issue_token: user={user.get_username()} token={token}")
