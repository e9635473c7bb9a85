"""What was said in a session, as the next turn's engine is shown it.

Spec: engine-api.md, Turn.history.
"""

from collections import deque

from cards.database import run_in_database
from cards.engine import HistoryEntry
from cards.engine.block import Context
from cards.protocol.user_blocks import words_of
from cards.queries import HISTORY_CHARS, SessionHistory, TurnRecord, read_history

#: Earlier turns that an engine is shown.
HISTORY_TURNS = 50


class SaidSoFar:
    """The words of the last turns, oldest first, bounded.

    Args:
        history: What the log holds already.
    """

    def __init__(self, session_pk: int, history: SessionHistory) -> None:
        self._session_pk = session_pk
        self._entries: deque[HistoryEntry] = deque(maxlen=2 * HISTORY_TURNS)
        self._enter(history)

    def _enter(self, history: SessionHistory) -> None:
        self._entries.extend(HistoryEntry(*said) for said in history.said)

    @property
    def entries(self) -> tuple[HistoryEntry, ...]:
        """All of it, as it is now."""
        return tuple(self._entries)

    def remember(self, record: TurnRecord, context: Context) -> None:
        """Add a turn, as it would be read back from the log."""
        for words in (words_of(record.message["content"]), *context.heard_texts):
            self._add("user", words, record)
        if said := context.said_text:
            self._add("assistant", said, record)

    def _add(self, role: str, words: str, record: TurnRecord) -> None:
        self._entries.append(HistoryEntry(role, words[:HISTORY_CHARS], record.turn_no))

    async def read_back(self) -> None:
        """Read it from the log: a lost turn belongs to it like any other.

        Raises:
            django.db.Error: The log cannot be read.
        """
        history = await run_in_database(
            read_history, self._session_pk, turns=HISTORY_TURNS
        )
        self._entries.clear()
        self._enter(history)
