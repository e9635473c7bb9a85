"""`manage.py cleanup_orphans`: close what lost workers left open."""

import asyncio
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError

from cards.live.orphans import Found, OrphanCleanup
from cards.live.visiting import visiting_worker
from cards.log.writer import LogWriteFailed


class Command(BaseCommand):
    """Close what lost workers left open. Spec: Ruling E14; interfaces.md, Commands."""

    help = "Close the cards of turns whose worker is gone; queued messages stay."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "--dry-run", action="store_true", help="count, change nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Clean up once, and say what was found in one line.

        Raises:
            CommandError: The database is away.
        """
        try:
            found = asyncio.run(_clean_up(is_dry_run=options["dry_run"]))
        except (DatabaseError, LogWriteFailed, OSError) as error:
            raise CommandError(f"cleanup_orphans: {error}") from error
        self.stdout.write(
            f"cleanup_orphans: sessions={found.sessions} turns={found.turns}"
            f" cards={found.cards}"
        )


async def _clean_up(*, is_dry_run: bool) -> Found:
    async with visiting_worker(
        lock_dir=settings.CARDWIRE_WORKERS_DIR, lease_s=settings.CARDWIRE_LEASE_S
    ) as worker:
        return await OrphanCleanup(worker).run(is_dry_run=is_dry_run)
