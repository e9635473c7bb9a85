"""Writing batches of events with a raw database connection of one's own.

Django's connections belong to requests and threads; the log's writer needs one that
lives as long as it does, and statements that insert thousands of rows at once.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Protocol

import msgspec
import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from cards.database import sqlite_write_lock

#: Seconds that a writer waits for another process's transaction.
LOCK_TIMEOUT_S = 5

#: Rows in one INSERT statement: three parameters a row stay far below SQLite's
#: limit of 32,766, and the four sizes keep its statement cache warm.
_ROWS_PER_INSERT = (512, 64, 8, 1)

#: Written bytes after which SQLite's write-ahead log is worth a checkpoint.
CHECKPOINT_BYTES = 8 * 1024 * 1024


class RowChange(msgspec.Struct, frozen=True):
    """A change of another table in the same transaction as an event.

    Attributes:
        statement: SQL with `%s` placeholders.
        rows: How many rows must change; another count fails the transaction.
    """

    statement: str
    parameters: tuple[object, ...]
    rows: int


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One event to be stored, and what must change together with it.

    Attributes:
        fence: Of the owner that wrote it; refused when the session has another.
    """

    session_pk: int
    fence: int
    seq: int
    data: bytes
    changes: tuple[RowChange, ...] = ()


class StoreUnavailable(Exception):
    """The database cannot be reached or cannot take anything now."""


class EntryRefused(Exception):
    """The database refused an entry of this batch, and would again."""


class OwnerReplaced(EntryRefused):
    """Another worker owns a session of this batch. Spec: Ruling E14."""


class LogStore(Protocol):
    """Where batches of events go; used by one thread at a time."""

    def write(self, entries: Sequence[Entry]) -> None:
        """Store all entries in one transaction, durable on return.

        Raises:
            StoreUnavailable: Nothing was stored; the same may work later.
            EntryRefused: Nothing was stored; at least one entry is at fault.
            OwnerReplaced: Nothing was stored; the same, and the fault is its fence.
        """

    def holds(self, entry: Entry) -> bool:
        """Tell whether this very entry is stored.

        Raises:
            StoreUnavailable: It may work later.
        """

    def checkpoint(self) -> None:
        """Do the store's housekeeping; called on another thread, now and then."""

    def close(self) -> None:
        """Give the connection back; the next write opens a new one."""


def open_store() -> LogStore:
    """Return the store for Django's default database."""
    database = connections["default"]
    if database.vendor == "sqlite":
        return SqliteStore(str(database.settings_dict["NAME"]))
    return PostgresStore(_connection_parameters(database))


def _connection_parameters(database: BaseDatabaseWrapper) -> dict[str, Any]:
    parameters: dict[str, Any] = database.get_connection_params()
    # These belong to Django's own cursors.
    for name in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(name, None)
    return parameters


def _check_rows(change: RowChange, row_count: int) -> None:
    if row_count != change.rows:
        raise EntryRefused(
            f"{row_count} rows changed instead of {change.rows}: {change.statement}"
        )


def _check_fences(current: int, fences: dict[int, int]) -> None:
    if current != len(fences):
        raise OwnerReplaced(
            f"{len(fences) - current} of {len(fences)} sessions have a newer owner"
        )


def _fences_of(entries: Sequence[Entry]) -> dict[int, int]:
    return {entry.session_pk: entry.fence for entry in entries}


class SqliteStore:
    """WAL, synchronous=FULL: a commit is on disk before it is visible."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = sqlite3.connect(
                self._path,
                timeout=LOCK_TIMEOUT_S,
                isolation_level=None,
                check_same_thread=False,
            )
            connection.executescript(
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                "PRAGMA foreign_keys=ON; PRAGMA wal_autocheckpoint=0;"
            )
            self._connection = connection
        return self._connection

    def write(self, entries: Sequence[Entry]) -> None:
        """See `LogStore.write`."""
        try:
            connection = self._connect()
            with sqlite_write_lock:
                self._write_transaction(connection, entries)
        except (sqlite3.IntegrityError, sqlite3.DataError) as error:
            raise EntryRefused(str(error)) from error
        except sqlite3.Error as error:
            self.close()
            raise StoreUnavailable(str(error)) from error

    def _write_transaction(
        self, connection: sqlite3.Connection, entries: Sequence[Entry]
    ) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            fences = _fences_of(entries)
            # One statement whatever their number, so that it stays prepared.
            (current,) = connection.execute(
                "SELECT count(*) FROM json_each(?) AS pair JOIN cards_session"
                " ON cards_session.id = json_extract(pair.value, '$[0]')"
                " AND fence = json_extract(pair.value, '$[1]')",
                [msgspec.json.encode(list(fences.items())).decode()],
            ).fetchone()
            _check_fences(current, fences)
            _insert_rows(connection, entries)
            for change in _changes_of(entries):
                cursor = connection.execute(
                    change.statement.replace("%s", "?"),
                    [_sqlite_form(each) for each in change.parameters],
                )
                _check_rows(change, cursor.rowcount)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def holds(self, entry: Entry) -> bool:
        """See `LogStore.holds`."""
        try:
            row = (
                self._connect()
                .execute(_SELECT.replace("%s", "?"), (entry.session_pk, entry.seq))
                .fetchone()
            )
        except sqlite3.Error as error:
            self.close()
            raise StoreUnavailable(str(error)) from error
        return row is not None and bytes(row[0]) == entry.data

    def checkpoint(self) -> None:
        """Move the write-ahead log into the database file, without blocking."""
        with closing(sqlite3.connect(self._path, timeout=LOCK_TIMEOUT_S)) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """See `LogStore.close`."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _sqlite_form(value: object) -> object:
    # SQLite has no date type: this is the text that Django stores and compares.
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ")
    return value


def _changes_of(entries: Iterable[Entry]) -> Iterable[RowChange]:
    return chain.from_iterable(entry.changes for entry in entries if entry.changes)


def _insert_rows(connection: sqlite3.Connection, entries: Sequence[Entry]) -> None:
    # Few large statements instead of executemany: sqlite3 gives up the interpreter
    # lock once a statement, and getting it back costs more than the insert.
    start = 0
    for size in _ROWS_PER_INSERT:
        statement = _INSERTS[size]
        while len(entries) - start >= size:
            rows = entries[start : start + size]
            connection.execute(
                statement,
                [
                    value
                    for entry in rows
                    for value in (entry.session_pk, entry.seq, entry.data)
                ],
            )
            start += size


_SELECT = "SELECT data FROM cards_event WHERE session_id = %s AND seq = %s"

_INSERTS = {
    # Constants and question marks only.
    size: "INSERT INTO cards_event (session_id, seq, data) VALUES "  # noqa: S608
    + ",".join(["(?,?,?)"] * size)
    for size in _ROWS_PER_INSERT
}


def _lock_sessions(cursor: psycopg.Cursor[Any], fences: dict[int, int]) -> None:
    # Locked until the commit: a worker that takes a session over waits for what its
    # last owner is writing. In order, so that two writers never wait in a circle.
    cursor.execute(
        "SELECT cards_session.id FROM cards_session"
        " JOIN unnest(%s::bigint[], %s::bigint[]) AS held (id, fence)"
        " ON held.id = cards_session.id AND held.fence = cards_session.fence"
        " ORDER BY cards_session.id FOR NO KEY UPDATE OF cards_session",
        (list(fences), list(fences.values())),
    )
    _check_fences(cursor.rowcount, fences)


class PostgresStore:
    """COPY in binary form, one transaction a batch."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        self._parameters = parameters
        self._connection: psycopg.Connection[Any] | None = None

    def _connect(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(**self._parameters)
        return self._connection

    def write(self, entries: Sequence[Entry]) -> None:
        """See `LogStore.write`."""
        try:
            connection = self._connect()
            with connection.transaction(), connection.cursor() as cursor:
                _lock_sessions(cursor, _fences_of(entries))
                with cursor.copy(
                    "COPY cards_event (session_id, seq, data)"
                    " FROM STDIN (FORMAT BINARY)"
                ) as copy:
                    copy.set_types(["int8", "int8", "bytea"])
                    for entry in entries:
                        copy.write_row((entry.session_pk, entry.seq, entry.data))
                for change in _changes_of(entries):
                    # The statements are constants of ours.
                    cursor.execute(change.statement.encode(), change.parameters)
                    _check_rows(change, cursor.rowcount)
        except (psycopg.IntegrityError, psycopg.DataError) as error:
            raise EntryRefused(str(error)) from error
        except psycopg.Error as error:
            self.close()
            raise StoreUnavailable(str(error)) from error

    def holds(self, entry: Entry) -> bool:
        """See `LogStore.holds`."""
        try:
            connection = self._connect()
            with connection.transaction(), connection.cursor() as cursor:
                cursor.execute(_SELECT, (entry.session_pk, entry.seq))
                row = cursor.fetchone()
        except psycopg.Error as error:
            self.close()
            raise StoreUnavailable(str(error)) from error
        return row is not None and bytes(row[0]) == entry.data

    def checkpoint(self) -> None:
        """Do nothing: PostgreSQL checkpoints by itself."""

    def close(self) -> None:
        """See `LogStore.close`."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
