"""A process that is a worker for a moment: a command beside the servers.

Spec: Ruling E14; interfaces.md, Commands.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from cards.clock import Entropy
from cards.database import WriteBatches
from cards.live.membership import Membership
from cards.log.committer import Committer
from cards.log.store import open_store


@dataclass(frozen=True, slots=True)
class VisitingWorker:
    """What a command needs to own sessions and to write their logs."""

    membership: Membership
    committer: Committer
    writes: WriteBatches
    entropy: Entropy


@asynccontextmanager
async def visiting_worker(
    *, lock_dir: Path, lease_s: float
) -> AsyncIterator[VisitingWorker]:
    """Give a worker that leaves the others in the end, whatever happens.

    Args:
        lock_dir: Where the workers of this machine keep their lock files.
        lease_s: Seconds without a sign of life after which it is lost.
    """
    writes, entropy = WriteBatches(), Entropy()
    membership = Membership(writes, lock_dir=lock_dir, lease_s=lease_s, entropy=entropy)
    committer = Committer(open_store)
    try:
        yield VisitingWorker(membership, committer, writes, entropy)
    finally:
        await membership.leave()
        await committer.close()
