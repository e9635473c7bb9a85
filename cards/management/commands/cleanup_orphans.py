"""`manage.py cleanup_orphans`: close what lost workers left open, remove leftovers."""

import asyncio
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError

from cards.cleaners import Allowance, Cleaned, registered_cleaners
from cards.clock import utc_now
from cards.deletion import remove_deleted
from cards.live.orphans import Found, OrphanCleanup
from cards.live.visiting import visiting_worker
from cards.log.writer import LogWriteFailed


class Command(BaseCommand):
    """Close what lost workers left open, and remove what nobody can reach any more.

    Spec: Ruling E14; interfaces.md, Commands.
    """

    help = (
        "Close the cards of turns whose worker is gone (queued messages stay), and"
        " remove what is left of deleted sessions, files without rows and rows without"
        " files."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "--dry-run", action="store_true", help="count, change nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Clean up once, and say what was found in one line.

        Raises:
            CommandError: The database is away, or something had to be left alone.
        """
        is_dry_run: bool = options["dry_run"]
        try:
            found = asyncio.run(_close_lost(is_dry_run=is_dry_run))
            deleted = remove_deleted(is_dry_run=is_dry_run)
            cleaned = _remove_leftovers(utc_now(), is_dry_run=is_dry_run)
        except (DatabaseError, LogWriteFailed, OSError) as error:
            raise CommandError(f"cleanup_orphans: {error}") from error
        counts = {
            "sessions": found.sessions,
            "turns": found.turns,
            "cards": found.cards,
            "deleted": deleted,
            **cleaned.counts,
        }
        line = " ".join(f"{word}={count}" for word, count in counts.items())
        self.stdout.write(f"cleanup_orphans: {line}")
        if cleaned.problems:
            raise CommandError(f"cleanup_orphans: {'; '.join(cleaned.problems)}")


async def _close_lost(*, is_dry_run: bool) -> Found:
    async with visiting_worker(
        lock_dir=settings.CARDWIRE_WORKERS_DIR, lease_s=settings.CARDWIRE_LEASE_S
    ) as worker:
        return await OrphanCleanup(worker).run(is_dry_run=is_dry_run)


def _remove_leftovers(now: datetime, *, is_dry_run: bool) -> Cleaned:
    cleaners = registered_cleaners()
    allowance = Allowance()
    counts: dict[str, int] = {}
    problems: list[str] = []
    for done, cleaner in enumerate(cleaners):
        part = allowance.part(len(cleaners) - done)
        cleaned = cleaner.clean(now, part, is_dry_run=is_dry_run)
        allowance.give_back(part)
        for word, count in cleaned.counts.items():
            counts[word] = counts.get(word, 0) + count
        problems += cleaned.problems
    return Cleaned(counts, problems)
