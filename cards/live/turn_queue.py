"""The turns of one session that wait in this process for the one that runs.

Spec: Rulings E9, E10.
"""

from collections.abc import Iterable
from dataclasses import replace

from cards.builder import Builder
from cards.operations import StopRequest
from cards.protocol.kinds import SessionEventKind
from cards.protocol.payloads import QueuedMessage, UpdatedInner
from cards.protocol.user_blocks import words_of
from cards.queries import TurnRecord


class TurnQueue:
    """Turns in the order of their acceptance.

    Attributes:
        is_shown: Whether clients may have been told that some wait.
    """

    def __init__(self) -> None:
        self._turns: dict[int, TurnRecord] = {}
        self._last_taken = 0
        self.is_shown = False

    def __len__(self) -> int:
        return len(self._turns)

    def add(self, records: Iterable[TurnRecord]) -> bool:
        """Add those that were never here; tell whether there were any."""
        count = len(self)
        for record in records:
            if record.turn_no > self._last_taken:
                self._turns.setdefault(record.turn_no, record)
        return len(self) > count

    def put_back(self, records: Iterable[TurnRecord]) -> None:
        """Add what is still to be done, taken before or not."""
        for record in records:
            self._turns.setdefault(record.turn_no, record)

    def take(self) -> TurnRecord:
        """Take the first one out."""
        self._last_taken = min(self._turns)
        return self._turns.pop(self._last_taken)

    def stop(self, request: StopRequest, *, is_first_meant: bool) -> bool:
        """Mark what is to be stopped as such; tell whether there was any.

        Args:
            is_first_meant: Whether a request that names no turn means the first.
        """
        meant = [
            turn_no
            for place, (turn_no, record) in enumerate(sorted(self._turns.items()))
            if request.clear_queue
            or request.turn_card_id == record.card_id
            or (request.turn_card_id is None and is_first_meant and place == 0)
        ]
        for turn_no in meant:
            self.mark_stopped(turn_no)
        return bool(meant)

    def mark_stopped(self, turn_no: int) -> None:
        """Mark a turn as stopped by its user, if it waits here."""
        if turn_no in self._turns:
            self._turns[turn_no] = replace(self._turns[turn_no], is_stopped=True)

    def show(self, builder: Builder) -> None:
        """Log what waits; nothing if the log is away."""
        if builder.writer.failure is not None:
            return
        waiting = [
            QueuedMessage(
                event_id=record.event_id, text=words_of(record.message["content"])
            )
            for _, record in sorted(self._turns.items())
        ]
        builder.session_event(SessionEventKind.UPDATED, UpdatedInner(queue=waiting))
        self.is_shown = bool(waiting)
