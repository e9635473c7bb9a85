"""The one writer of a session's log: it gives the seqs and waits for the disk."""

import asyncio
from collections.abc import Callable, Sequence

from cards.log.committer import Committer
from cards.log.store import Entry, RowChange

Committed = Callable[[Sequence[bytes]], None]
Failed = Callable[[Exception], None]


class LogWriteFailed(Exception):
    """The session's frames could not be made durable; its turn is over.

    Frames up to `committed_seq` are stored, none after it.
    """


class SessionWriter:
    """Gives seqs in memory and hands encoded frames to the committer.

    Args:
        session_pk: Primary key of the session's row.
        fence: Of the hold that this process has of the session.
        newest_seq: Seq of the last stored frame; 0 for none.
        on_committed: Called with frames that became durable, in order.
        on_failed: Called once when frames could not be stored.

    Spec: Rulings E2, E3.
    """

    #: Frames after which an emitter gives the event loop a turn, so that an engine
    #: in a tight loop does not keep everybody from reading.
    FRAMES_PER_TURN_OF_LOOP = 64

    def __init__(
        self,
        *,
        session_pk: int,
        fence: int,
        newest_seq: int,
        committer: Committer,
        on_committed: Committed,
        on_failed: Failed,
    ) -> None:
        self._session_pk = session_pk
        self.fence = fence
        self._committer = committer
        self._on_committed = on_committed
        self._on_failed = on_failed
        self._flushes: list[tuple[int, asyncio.Future[None]]] = []
        self._since_yield = 0
        self.next_seq = newest_seq + 1
        self.committed_seq = newest_seq
        self.failure: LogWriteFailed | None = None

    def append(self, data: bytes, changes: tuple[RowChange, ...] = ()) -> None:
        """Hand over the frame that carries `next_seq`; never blocks.

        Raises:
            LogWriteFailed: An earlier frame of the session was not stored.
        """
        if self.failure is not None:
            raise self.failure
        entry = Entry(self._session_pk, self.fence, self.next_seq, data, changes)
        self.next_seq += 1
        self._committer.submit(self, entry)

    async def breathe(self) -> None:
        """Wait while the log is behind; otherwise now and then let others run."""
        self._since_yield += 1
        if not self._committer.has_room:
            await self._committer.room()
            self._since_yield = 0
        elif self._since_yield >= self.FRAMES_PER_TURN_OF_LOOP:
            self._since_yield = 0
            await asyncio.sleep(0)

    async def flush(self) -> None:
        """Wait until every frame handed over so far is durable.

        Raises:
            LogWriteFailed: One of them could not be stored.
        """
        if self.failure is not None:
            raise self.failure
        if self.committed_seq < self.next_seq - 1:
            done = asyncio.get_running_loop().create_future()
            self._flushes.append((self.next_seq - 1, done))
            await done

    def committed(self, entries: Sequence[Entry]) -> None:
        """See `LogSource.committed`."""
        self.committed_seq = entries[-1].seq
        self._on_committed([entry.data for entry in entries])
        for seq, done in self._flushes:
            if seq <= self.committed_seq and not done.done():
                done.set_result(None)
        self._flushes = [pair for pair in self._flushes if not pair[1].done()]

    def commit_failed(self, error: Exception) -> None:
        """See `LogSource.commit_failed`; the seq goes back, so that no hole stays."""
        self.failure = LogWriteFailed(f"the event log was not written: {error}")
        self.failure.__cause__ = error
        self.next_seq = self.committed_seq + 1
        for _, done in self._flushes:
            if not done.done():
                done.set_exception(self.failure)
        self._flushes.clear()
        self._on_failed(self.failure)
