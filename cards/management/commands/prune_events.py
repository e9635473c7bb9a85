"""`manage.py prune_events`: drop the logs that are older than the retention."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError
from django.utils import timezone

from cards.pruning import prune_cutoff, prune_events


class Command(BaseCommand):
    """Drop old logs and keep their cards. Spec: interfaces.md, Commands."""

    help = (
        "Drop the logs of sessions without activity for CARDWIRE_EVENT_RETENTION_DAYS."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "--dry-run", action="store_true", help="count, and change nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Prune, and say how much.

        Raises:
            CommandError: The database is away, or a log cannot be read.
        """
        now = timezone.now()
        try:
            pruned = prune_events(
                now=now,
                cutoff=prune_cutoff(now, settings.CARDWIRE_EVENT_RETENTION_DAYS),
                is_dry_run=options["dry_run"],
            )
        except DatabaseError as error:
            raise CommandError(f"prune_events: {error}") from error
        self.stdout.write(
            f"prune_events: sessions={pruned.sessions} events={pruned.events}"
        )
        if pruned.unreadable:
            raise CommandError(
                "prune_events: logs that cannot be read were left alone, of "
                + ", ".join(pruned.unreadable)
            )
