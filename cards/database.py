"""Database work of the sockets, on threads of its own.

Channels and asgiref put all synchronous work of a process on one thread, where one
slow query delays everybody. Here a few threads share the reads, and one thread makes
the small writes, many of them in one transaction: a commit costs a write to disk, and
a hundred sessions that begin at once need not wait for a hundred of them.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar

from django.db import (
    OperationalError,
    close_old_connections,
    connection,
    transaction,
)

P = ParamSpec("P")
R = TypeVar("R")

#: Threads, and so database connections, for the reads of one process.
READERS = 4

#: The threads themselves; everything else goes through the functions below.
readers = ThreadPoolExecutor(READERS, thread_name_prefix="cardwire-reads")
writer = ThreadPoolExecutor(1, thread_name_prefix="cardwire-writes")

#: Held by whoever writes to SQLite in this process. SQLite itself makes a second
#: writer sleep and try again; a lock wakes it at once.
sqlite_write_lock = threading.Lock()


async def run_in_database(
    function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
) -> R:
    """Run a query on a database thread and return its result.

    Raises:
        Exception: Whatever the function raises.
    """
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(
        readers, partial(_with_fresh_connection, partial(function, *args, **kwargs))
    )


def _with_fresh_connection(function: Callable[[], R]) -> R:
    close_old_connections()
    try:
        return function()
    finally:
        close_old_connections()


class _Write(Generic[R]):
    """A small write that waits for its transaction, and what became of it."""

    __slots__ = ("done", "error", "function", "result", "session_pk")

    def __init__(
        self,
        session_pk: int | None,
        function: Callable[[], R],
        done: "asyncio.Future[None]",
    ) -> None:
        self.session_pk = session_pk
        self.function = function
        self.done = done
        self.result: R | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            # A savepoint: one write that fails takes back its own changes only.
            with transaction.atomic():
                self.result = self.function()
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            self.error = error


class WriteBatches:
    """Makes small writes durable, many in one transaction.

    As in the event log, one batch is on its way and the next one gathers. Used on one
    event loop.
    """

    def __init__(self) -> None:
        self._waiting: list[_Write[Any]] = []
        self._is_busy = False

    async def run(
        self,
        session_pk: int | None,
        function: Callable[P, R],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Run an operation in a transaction and return its result once durable.

        Args:
            session_pk: The one session whose row it locks; None for a new one or
                none.

        Raises:
            Exception: Whatever the operation raises; its changes are taken back.
            django.db.Error: The transaction failed; nothing of it is stored.
        """
        loop = asyncio.get_running_loop()
        write = _Write(
            session_pk, partial(function, *args, **kwargs), loop.create_future()
        )
        self._waiting.append(write)
        if not self._is_busy:
            self._begin(loop)
        await write.done
        if write.error is not None:
            raise write.error
        return write.result  # type: ignore[return-value]  # None only if R is

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_busy = True
        batch, self._waiting = self._waiting, []
        future = writer.submit(_with_fresh_connection, partial(_run_batch, batch))
        future.add_done_callback(
            lambda done: loop.call_soon_threadsafe(self._finish, loop, batch, done)
        )

    def _finish(
        self,
        loop: asyncio.AbstractEventLoop,
        batch: list[_Write[Any]],
        done: "Future[None]",
    ) -> None:
        self._is_busy = False
        failure = done.exception()
        for write in batch:
            if isinstance(failure, Exception):
                write.error = failure
            if not write.done.done():
                write.done.set_result(None)
        if self._waiting:
            self._begin(loop)


def _run_batch(batch: list[_Write[Any]]) -> None:
    is_sqlite = connection.vendor == "sqlite"
    with (
        sqlite_write_lock if is_sqlite else nullcontext(),
        transaction.atomic(durable=True),
    ):
        # Every transaction locks sessions in the same order, the log's too, so that
        # two of them never wait for each other.
        for write in sorted(batch, key=_lock_order):
            write.run()
        _check_transaction()


def _check_transaction() -> None:
    """Check that the transaction can still be committed.

    A write whose savepoint could not be taken back, because the connection is lost,
    takes its neighbours with it; Django would roll all of them back without a word.

    Raises:
        django.db.OperationalError: It cannot.
    """
    if connection.needs_rollback or connection.closed_in_transaction:
        raise OperationalError("the connection was lost; nothing was stored")


def _lock_order(write: _Write[Any]) -> tuple[bool, int]:
    return write.session_pk is None, write.session_pk or 0
