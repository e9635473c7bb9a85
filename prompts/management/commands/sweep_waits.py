"""`manage.py sweep_waits`: remove the prompts that nobody answered in their time."""

import asyncio
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError

from cards.clock import utc_now
from cards.live.visiting import visiting_worker
from cards.log.writer import LogWriteFailed
from prompts.sweep import Swept, WaitSweep


class Command(BaseCommand):
    """Remove expired waits. Spec: Ruling E17; interfaces.md, Commands."""

    help = "Settle prompts older than CARDWIRE_WAIT_TTL_DAYS as timed out."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "--dry-run", action="store_true", help="count, and change nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Sweep once, and say what was found in one line.

        Raises:
            CommandError: The database is away, or refused the replies of a session.
        """
        try:
            swept = asyncio.run(_sweep(is_dry_run=options["dry_run"]))
        except (DatabaseError, LogWriteFailed, OSError) as error:
            raise CommandError(f"sweep_waits: {error}") from error
        self.stdout.write(
            f"sweep_waits: expired={swept.expired} sessions={len(swept.sessions)}"
            f" unseen={swept.unseen} forgotten={swept.forgotten}"
        )
        if swept.refused:
            raise CommandError(
                "sweep_waits: prompts were settled, but the log refused the replies of "
                + ", ".join(sorted(set(swept.refused)))
            )


async def _sweep(*, is_dry_run: bool) -> Swept:
    days = settings.CARDWIRE_WAIT_TTL_DAYS
    async with visiting_worker(
        lock_dir=settings.CARDWIRE_WORKERS_DIR, lease_s=settings.CARDWIRE_LEASE_S
    ) as worker:
        sweep = WaitSweep(worker, time_to_live=timedelta(days=days) if days else None)
        return await sweep.run(utc_now(), is_dry_run=is_dry_run)
