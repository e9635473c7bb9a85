"""This process as one of the workers: its lease, and whether it may own sessions.

Spec: Ruling E14; design.md 4; docs/decisions/0004-a-lease-per-worker.md.
"""

import asyncio
from datetime import timedelta
from pathlib import Path

from cards.clock import Entropy, utc_now
from cards.database import WriteBatches
from cards.ownership import ThisWorker, renew_lease, retire
from cards.process_lock import ProcessLock, kernel_id


class Membership:
    """Joins the workers once, keeps the lease, and leaves in the end.

    Args:
        writes: For its row.
        lock_dir: Where the workers of this machine keep their lock files.
        lease_s: Seconds without a sign of life after which a worker is lost.
    """

    def __init__(
        self, writes: WriteBatches, *, lock_dir: Path, lease_s: float, entropy: Entropy
    ) -> None:
        self.me = ThisWorker(
            worker_id="wrk_" + entropy.hex(8),
            kernel_id=kernel_id(),
            lock_dir=lock_dir,
            lease=timedelta(seconds=lease_s),
        )
        self._writes = writes
        self._lock = ProcessLock(lock_dir, self.me.worker_id)
        self._joining = asyncio.Lock()
        self._has_joined = False
        self._is_leaving = False

    @property
    def candidate(self) -> ThisWorker | None:
        """Who may take a session; None once this worker leaves."""
        return None if self._is_leaving else self.me

    async def join(self) -> None:
        """Be known to the others before owning anything.

        Raises:
            django.db.Error: The database cannot be written.
            OSError: The lock file cannot be made.
        """
        if self._has_joined or self._is_leaving:
            return
        async with self._joining:
            if not self._has_joined:
                self._lock.take()
                await self.renew()
                self._has_joined = True

    async def renew(self) -> None:
        """Say that this worker lives.

        Raises:
            django.db.Error: The database cannot be written.
        """
        await self._writes.run(None, renew_lease, self.me, utc_now())

    def begin_to_leave(self) -> None:
        """Take no session any more."""
        self._is_leaving = True

    async def leave(self) -> None:
        """Be forgotten by the others, who may take at once what was left.

        Raises:
            django.db.Error: The row stays until the lease expires.
        """
        self.begin_to_leave()
        # Also of a worker that could never join, so that no file is left behind.
        self._lock.release()
        if self._has_joined:
            self._has_joined = False
            await self._writes.run(None, retire, self.me)
