"""In-memory stand-ins for the event log."""

import threading
from collections.abc import Sequence

from cards.log.store import Entry, EntryRefused, StoreUnavailable


class FakeStore:
    """A log store in memory that can be away or refuse sessions.

    Attributes:
        entries: What was stored, in order.
        batches: Sizes of the stored batches.
        is_away: Whether writing fails as if the database were gone.
        loses_answers: Whether writing fails although everything is stored.
        refused_sessions: Sessions whose entries are refused.
        gate: Closed, it holds the writing thread back.
        attempted: Set once something was to be written.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.batches: list[int] = []
        self.is_away = False
        self.loses_answers = False
        self.refused_sessions: set[int] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.attempted = threading.Event()

    def write(self, entries: Sequence[Entry]) -> None:
        self.gate.wait()
        self.attempted.set()
        if self.is_away:
            raise StoreUnavailable("away")
        if any(entry.session_pk in self.refused_sessions for entry in entries):
            raise EntryRefused("refused")
        if entries[0] in self.entries:
            raise EntryRefused("stored before")
        self.entries.extend(entries)
        self.batches.append(len(entries))
        if self.loses_answers:
            self.loses_answers = False
            raise StoreUnavailable("gone behind the commit")

    def holds(self, entry: Entry) -> bool:
        return entry in self.entries

    def checkpoint(self) -> None:
        """Nothing to do in memory."""

    def close(self) -> None:
        """Nothing to give back."""
