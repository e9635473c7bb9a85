"""The group-committing writer: one batch in flight, the next one gathering.

An idle log commits a frame at once; a busy one batches by itself, because frames
gather while the previous batch is on its way to disk. There is no timer.

Everything here runs on the event loop, except `_write`, which has the one thread
that touches the store.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Protocol

from cards.log.store import (
    CHECKPOINT_BYTES,
    Entry,
    EntryRefused,
    LogStore,
    OwnerReplaced,
    StoreUnavailable,
)

logger = logging.getLogger(__name__)

#: Events and bytes that may wait for a commit; beyond, emitters wait. 5,000 frames
#: of half a kilobyte are about 25 ms of writing.
MAX_WAITING_EVENTS = 5000
MAX_WAITING_BYTES = 4 * 1024 * 1024

#: Seconds that a batch is tried again while the database is away.
PATIENCE_S = 10.0
RETRY_S = 0.25


class LogSource(Protocol):
    """A session's writer, told what became of its entries."""

    def committed(self, entries: Sequence[Entry]) -> None:
        """These entries, in their order, are durable."""

    def commit_failed(self, error: Exception) -> None:
        """None of the entries still out is stored, and none will be."""


class Committer:
    """Takes entries from all sessions of the process and makes them durable.

    Args:
        open_store: Makes the store; called once, on the writing thread.
        patience_s: Seconds to try again while the store is unavailable.
    """

    def __init__(
        self, open_store: Callable[[], LogStore], *, patience_s: float = PATIENCE_S
    ) -> None:
        self._open_store = open_store
        self._patience_s = patience_s
        self._store: LogStore | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cardwire-log")
        self._housekeeping = ThreadPoolExecutor(
            1, thread_name_prefix="cardwire-checkpoint"
        )
        self._bytes_since_checkpoint = 0
        self._waiting: list[tuple[LogSource, Entry]] = []
        self._waiting_bytes = 0
        self._in_flight: list[tuple[LogSource, Entry]] = []
        self._is_flush_scheduled = False
        self._room = asyncio.Event()
        self._room.set()
        self._drained = asyncio.Event()
        self._drained.set()

    def submit(self, source: LogSource, entry: Entry) -> None:
        """Accept an entry for the next batch; never blocks.

        Whoever emits in a loop awaits `room()` when `has_room` is False.
        """
        self._waiting.append((source, entry))
        self._drained.clear()
        self._waiting_bytes += len(entry.data)
        if (
            self._waiting_bytes >= MAX_WAITING_BYTES
            or len(self._waiting) >= MAX_WAITING_EVENTS
        ):
            self._room.clear()
        if not self._in_flight and not self._is_flush_scheduled:
            self._is_flush_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    @property
    def has_room(self) -> bool:
        """Whether emitters may go on without waiting."""
        return self._room.is_set()

    async def room(self) -> None:
        """Wait until the log is no longer behind."""
        await self._room.wait()

    def _flush(self) -> None:
        self._is_flush_scheduled = False
        if self._in_flight or not self._waiting:
            return
        self._in_flight, self._waiting = self._waiting, []
        self._waiting_bytes = 0
        self._room.set()
        entries = [entry for _, entry in self._in_flight]
        loop = asyncio.get_running_loop()
        future = self._thread.submit(self._write, entries)
        future.add_done_callback(
            lambda done: loop.call_soon_threadsafe(self._finish, done)
        )

    def _finish(self, done: "Future[dict[int, Exception]]") -> None:
        batch, self._in_flight = self._in_flight, []
        try:
            failures = done.result()
        except Exception as error:
            logger.exception("a batch of %d events was not written", len(batch))
            failures = {entry.session_pk: error for _, entry in batch}
        self._report(batch, failures)
        if self._waiting and not self._is_flush_scheduled:
            self._flush()
        elif not self._waiting:
            self._drained.set()

    def _report(
        self, batch: Iterable[tuple[LogSource, Entry]], failures: dict[int, Exception]
    ) -> None:
        by_source: dict[LogSource, list[Entry]] = {}
        for source, entry in batch:
            by_source.setdefault(source, []).append(entry)
        for source, entries in by_source.items():
            error = failures.get(entries[0].session_pk)
            if error is None:
                source.committed(entries)
            else:
                self._forget(source)
                source.commit_failed(error)

    def _forget(self, source: LogSource) -> None:
        # What the failed session emitted since would leave a hole before it.
        self._waiting = [pair for pair in self._waiting if pair[0] is not source]
        self._waiting_bytes = sum(len(entry.data) for _, entry in self._waiting)

    # On the writing thread from here on.

    def _write(self, entries: list[Entry]) -> dict[int, Exception]:
        """Write a batch; return the error of each session that has one."""
        try:
            self._write_patiently(entries)
        except EntryRefused as error:
            logger.warning("writing a refused batch session by session: %s", error)
            return self._write_piecewise(entries)
        except StoreUnavailable as error:
            logger.exception("the event log cannot be written")
            return {entry.session_pk: error for entry in entries}
        self._count_bytes(sum(len(entry.data) for entry in entries))
        return {}

    def _write_piecewise(self, entries: list[Entry]) -> dict[int, Exception]:
        failures: dict[int, Exception] = {}
        session_pk = attrgetter("session_pk")
        for pk, group in groupby(sorted(entries, key=session_pk), key=session_pk):
            try:
                self._write_patiently(list(group))
            except OwnerReplaced as error:
                logger.warning("session %d has another owner now", pk)
                failures[pk] = error
            except (EntryRefused, StoreUnavailable) as error:
                logger.exception("the events of session %d were not written", pk)
                failures[pk] = error
        return failures

    def _write_patiently(self, entries: list[Entry]) -> None:
        if self._store is None:
            self._store = self._open_store()
        deadline = time.monotonic() + self._patience_s
        is_told = False
        while True:
            try:
                # The connection may have been lost behind the commit.
                if not (is_told and self._store.holds(entries[-1])):
                    self._store.write(entries)
                return
            except StoreUnavailable as error:
                if time.monotonic() >= deadline:
                    raise
                if not is_told:
                    logger.warning("the event log is away, trying again: %s", error)
                    is_told = True
                time.sleep(RETRY_S)

    def _count_bytes(self, count: int) -> None:
        self._bytes_since_checkpoint += count
        if self._bytes_since_checkpoint >= CHECKPOINT_BYTES and self._store:
            self._bytes_since_checkpoint = 0
            self._housekeeping.submit(self._store.checkpoint).add_done_callback(
                _log_failure
            )

    async def close(self) -> None:
        """Wait for the batch in flight, then give connection and threads back."""
        await self._drained.wait()
        loop = asyncio.get_running_loop()
        if self._store is not None:
            await loop.run_in_executor(self._thread, self._store.close)
        for executor in (self._thread, self._housekeeping):
            await loop.run_in_executor(None, partial(executor.shutdown, wait=True))


def _log_failure(done: "Future[None]") -> None:
    error = done.exception()
    if error is not None:
        logger.warning("a checkpoint of the event log failed: %s", error)
