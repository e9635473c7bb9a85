"""Closing what lost workers left open, without running anything.

A running server does the same in its rounds; this is for when none runs, and for an
operator who wants to see it done.

Spec: Ruling E14; interfaces.md, Commands.
"""

from dataclasses import dataclass

from cards.clock import now_ms, utc_now
from cards.database import run_in_database
from cards.live.errors import worker_lost
from cards.live.session_log import SessionLog
from cards.live.visiting import VisitingWorker
from cards.ownership import (
    abandon_session,
    forget_workers,
    gone_workers,
    lost_sessions,
    take_session,
)
from cards.queries import (
    TurnRecord,
    count_open_cards,
    find_session_by_pk,
    read_history,
    unfinished_turns,
)


@dataclass(slots=True)
class Found:
    """What was left open, or would be closed.

    Attributes:
        sessions: That a lost worker owned or left in the middle of a turn.
        turns: That nobody runs any more.
        cards: Open ones in those turns.
    """

    sessions: int = 0
    turns: int = 0
    cards: int = 0


class OrphanCleanup:
    """One run of the clean-up.

    Args:
        worker: Owns a session while it cleans.
    """

    def __init__(self, worker: VisitingWorker) -> None:
        self._membership = worker.membership
        self._committer = worker.committer
        self._writes = worker.writes

    async def run(self, *, is_dry_run: bool) -> Found:
        """Close everything that was left open.

        Args:
            is_dry_run: Only count.

        Raises:
            django.db.Error: The database is away; what was closed stays closed.
            LogWriteFailed: The log cannot be written; likewise.
        """
        found = Found()
        me = self._membership.me
        gone = await run_in_database(gone_workers, me, utc_now())
        for session_pk in await run_in_database(lost_sessions, gone):
            if is_dry_run:
                await self._count(session_pk, found)
            else:
                await self._close(session_pk, found)
        if not is_dry_run:
            await self._writes.run(None, forget_workers, me, gone)
        return found

    async def _count(self, session_pk: int, found: Found) -> None:
        found.sessions += 1
        for turn in await self._lost_turns(session_pk):
            found.turns += 1
            found.cards += await run_in_database(count_open_cards, session_pk, turn.pk)

    async def _close(self, session_pk: int, found: Found) -> None:
        await self._membership.join()
        hold = await self._writes.run(
            session_pk, take_session, session_pk, self._membership.me, utc_now()
        )
        record = await run_in_database(find_session_by_pk, session_pk)
        if hold is None or record is None:
            # Somebody else was faster, or it is gone altogether.
            return
        found.sessions += 1
        log = SessionLog(
            record,
            fence=hold.fence,
            history=await run_in_database(read_history, session_pk, turns=0),
            committer=self._committer,
            tick_interval_ms=0,
            now_ms=now_ms,
            on_committed=lambda frames: None,
            on_failed=lambda failure: None,
        )
        for turn in await self._lost_turns(session_pk):
            found.turns += 1
            found.cards += await log.close_lost_turn(turn, worker_lost())
        await self._writes.run(
            session_pk, abandon_session, session_pk, fence=hold.fence
        )

    async def _lost_turns(self, session_pk: int) -> list[TurnRecord]:
        turns = await run_in_database(unfinished_turns, session_pk)
        return [turn for turn in turns if turn.state == "running"]
