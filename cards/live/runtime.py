"""The running turns of one session: one at a time, in order, to a truthful end.

| what happens | the turn's cards end |
|---|---|
| the engine returns | ok; what it left open is cancelled |
| the engine raises | failed with its ErrorInfo, and one logged session error |
| its user stops it | cancelled |
| nothing is heard of it for too long | failed `orphan_timeout` |
| the server stops | cancelled, and one logged session error `SERVER_STOPPED` |
| its worker was lost | failed `WORKER_LOST`, written by the next owner |
| the log cannot be written | failed `LOG_UNAVAILABLE`, as soon as it can be again |
| another worker owns the session now | as that one finds them |

Spec: EMIT 14; Rulings E9 to E14, E23; design.md 3, 4.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Protocol

from django.db import Error as DatabaseError

from cards.builder import Builder
from cards.database import WriteBatches
from cards.engine import Turn
from cards.engine.block import Context, close_open_below, error_of
from cards.live.artifact_desk import SessionArtifacts
from cards.live.containment import contain_engine
from cards.live.errors import (
    log_unavailable,
    orphan_timeout,
    saving_fails,
    server_stopped,
    worker_lost,
)
from cards.live.new_turns import turn_input
from cards.live.prompt_desk import PromptDesk
from cards.live.running_turn import RunningTurn, log_late_end, run_engine
from cards.live.runtime_settings import RuntimeSettings
from cards.live.said import SaidSoFar
from cards.live.session_log import SessionLog
from cards.live.turn_queue import TurnQueue
from cards.log.changes import injection_taken
from cards.log.committer import Committer
from cards.log.store import OwnerReplaced
from cards.log.writer import LogWriteFailed
from cards.operations import StopRequest
from cards.ports import PromptBook
from cards.protocol.card_tree import Card
from cards.protocol.errors import ErrorInfo
from cards.protocol.kinds import (
    CardKind,
    Channel,
    CloseStatus,
)
from cards.protocol.payloads import MessagePayload
from cards.protocol.watchdog import look
from cards.queries import (
    SessionHistory,
    SessionNews,
    SessionRecord,
    TurnRecord,
    WaitingInjection,
)

logger = logging.getLogger(__name__)

#: Seconds between two looks at a database that is away.
RECOVERY_RETRY_S = 1.0

#: Seconds that a stopped engine has for its own cleaning up before its turn is
#: closed over its head.
CANCEL_GRACE_S = 1.0

#: Shortest time between two looks for silent cards, in milliseconds.
MIN_LOOK_MS = 100


class RuntimeOwner(Protocol):
    """What a runtime needs of whoever holds the session for it."""

    def committed(self, frames: Sequence[bytes]) -> None:
        """Frames became durable, in this order."""

    def trouble(self, error: ErrorInfo) -> None:
        """The log cannot be written."""

    async def lost(self, runtime: "SessionRuntime") -> None:
        """This runtime is of no use any more: the session has another owner."""

    async def give_back(self, fence: int) -> list[TurnRecord] | None:
        """Give the session back, or return the turns that are left to do in it.

        Returns:
            None when there is nothing left to do.

        Raises:
            django.db.Error: The session stays ours.
        """

    async def abandon(self, fence: int) -> None:
        """Give the session back whatever is left to do in it."""


class _Replaced(Exception):
    """Another worker owns the session now."""


class SessionRuntime:
    """Runs the turns of one session while this worker owns it.

    Args:
        fence: Of the hold.
        history: What the log holds already.
        book: Keeps the session's prompts.
        artifacts: Keeps its files.
        writes: For the prompts.
    """

    def __init__(
        self,
        session: SessionRecord,
        owner: RuntimeOwner,
        *,
        fence: int,
        history: SessionHistory,
        settings: RuntimeSettings,
        committer: Committer,
        book: PromptBook,
        artifacts: SessionArtifacts,
        writes: WriteBatches,
    ) -> None:
        self._session = session
        self._owner = owner
        self._settings = settings
        self._log = SessionLog(
            session,
            fence=fence,
            history=history,
            committer=committer,
            tick_interval_ms=settings.tick_interval_ms,
            now_ms=settings.now_ms,
            known=artifacts.known,
            on_committed=self._committed,
            on_failed=self._log_failed,
        )
        self._desk = PromptDesk(session.pk, self, book=book, writes=writes)
        self._artifacts = artifacts
        self._topics_shown = set(history.system_topics)
        self._said = SaidSoFar(session.pk, history)
        self._queue = TurnQueue()
        self._running: RunningTurn | None = None
        self._worker: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._is_replaced = False
        self._has_more = asyncio.Event()
        # Whether settled prompts may wait. Whoever settles one says so, and nobody
        # gives the session back over one, so there is no need to look at each turn.
        self._must_settle = bool(history.newest_seq)

    @property
    def is_idle(self) -> bool:
        """Whether no turn runs or waits."""
        return self._worker is None

    @property
    def fence(self) -> int:
        """Of the hold under which the log is written."""
        return self._log.fence

    def hold_again(self, fence: int) -> None:
        """Go on under a new fence; nobody else owned the session in between."""
        self._log.hold_again(fence)

    def take_up(
        self, records: Iterable[TurnRecord], *, were_shown: bool = False
    ) -> None:
        """Run unfinished turns in their order, then give the session back.

        Those that are known already change nothing.

        Args:
            were_shown: Whether an owner before may have shown that they wait.

        Spec: Rulings E9, E14.
        """
        has_new = self._queue.add(records)
        self._has_more.set()
        if self._worker is None:
            # Somebody may have seen the others wait.
            self._queue.is_shown = were_shown or len(self._queue) > 1
            self._worker = asyncio.create_task(self._work())
        elif self._running is not None and has_new:
            self._queue.show(self._log.builder)

    # What its desk needs.

    @property
    def builder(self) -> Builder:
        """See `DeskOwner.builder`."""
        return self._log.builder

    @property
    def asking_turn(self) -> tuple[int, Card] | None:
        """See `DeskOwner.asking_turn`."""
        running = self._running
        if running is None or running.card is None or not running.card.is_open:
            return None
        return running.record.pk, running.card

    def look_for_silent_cards(self) -> None:
        """See `DeskOwner.look_for_silent_cards`."""
        if self._running is not None:
            self._watch(self._running)

    # Being stopped.

    def interrupt(self, request: StopRequest) -> bool:
        """Stop a turn; see `LiveSession.interrupt`. Spec: Rulings E9, E10."""
        running = self._running
        is_stopped = running is not None and running.is_meant(request)
        if running is not None and is_stopped:
            running.end(CloseStatus.CANCELLED)
        if request.clear_queue or not is_stopped:
            # Accepted, and about to begin.
            is_first_meant = (
                running is None or not running.is_open
            ) and request.may_mean_next(shown_before=self._log.writer.next_seq - 1)
            is_any = self._queue.stop(request, is_first_meant=is_first_meant)
            is_stopped = is_stopped or is_any
        return is_stopped

    def replace(self) -> None:
        """Stop at once: another worker owns the session.

        The log refuses whatever is still said; the engine's work ends, too.

        Spec: Ruling E14.
        """
        self._is_replaced = True
        # What it asked is the next owner's by now.
        self._desk.begin_to_close()
        self._has_more.set()
        if self._running is not None:
            self._running.end(CloseStatus.FAILED)

    async def stop(self, *, grace_s: float) -> None:
        """Begin no turn any more, and end the running one within its grace.

        What waits is left to the next owner. A turn that asks its user has no grace.

        Spec: design.md 1, crash-only.
        """
        self._is_stopping = True
        self._has_more.set()
        self._desk.begin_to_close()
        worker = self._worker
        if worker is None:
            return
        # The answer would hardly come in time, and the question outlives the server.
        asks = asyncio.create_task(self._desk.until_asked())
        await asyncio.wait(
            {worker, asks}, timeout=grace_s, return_when=asyncio.FIRST_COMPLETED
        )
        asks.cancel()
        if self._running is not None:
            self._running.end(CloseStatus.CANCELLED, server_stopped())
        await asyncio.wait([worker])

    # What other connections and workers stored.

    def note(self, news: SessionNews) -> None:
        """Act on what was stored for this session: turns, stops, words.

        Spec: Rulings E9, E10, E23; design.md 4.
        """
        running = self._running
        for record in news.turns:
            if not record.is_stopped:
                continue
            if running is not None and running.record.pk == record.pk:
                running.end(CloseStatus.CANCELLED)
            else:
                self._queue.mark_stopped(record.turn_no)
        self.take_up(news.turns)
        for injection in news.injections:
            self._inject(injection)

    def look_for_settlements(self) -> None:
        """Go on with what users and clients' tools answered. Spec: Ruling E15."""
        if self._worker is None:
            self._must_settle = True
            self.take_up([])
        else:
            self._desk.begin_to_look()

    def _inject(self, injection: WaitingInjection) -> None:
        running = self._running
        if running is None or running.card is None or not running.card.is_open:
            return
        is_new = injection.pk not in running.taken
        if injection.turn_pk != running.record.pk or not is_new:
            return
        builder = self._log.builder
        if builder.writer.failure is not None:
            return
        running.taken.add(injection.pk)
        # In the log before the engine has them: the user's words are seen whatever
        # the engine makes of them. Spec: Ruling E28.
        card = builder.add(
            CardKind.MESSAGE,
            MessagePayload(role="user"),
            card_id=builder.free_card_id(CardKind.MESSAGE, None),
            parent=running.card,
            agent_run_id=running.record.run_id,
            changes=(injection_taken(injection_pk=injection.pk),),
        )
        builder.append(card, Channel.TEXT, injection.text)
        builder.close(card, CloseStatus.OK)
        running.injections.put_nowait(injection.text)
        running.heard.append([injection.text])

    # The work.

    async def _work(self) -> None:
        try:
            await self._run_all()
        except _Replaced:
            await self._lose()
        except Exception:
            logger.exception("the runtime of session %s broke down", self._name)
            # Whoever takes the session next finds the turn lost, and closes it.
            await self._lose()
            await self._owner.abandon(self.fence)
        finally:
            await self._desk.close()
            await self._artifacts.close()
            self._worker = None
            self._log.builder.stop()
        if self._queue and not (self._is_replaced or self._is_stopping):
            # Accepted under a new hold while the desk was closed.
            self.take_up(())

    async def _lose(self) -> None:
        self._is_replaced = True
        await self._owner.lost(self)

    async def _run_all(self) -> None:
        while not self._is_stopping:
            await self._settle_prompts()
            while self._queue and not self._is_stopping:
                await self._run_next()
                await self._settle_prompts()
            await self._linger()
            if self._is_replaced:
                raise _Replaced
            if self._queue or self._is_stopping:
                continue
            left = await self._given_back()
            if self._is_replaced:
                raise _Replaced
            if left is None and not self._queue and not self._must_settle:
                return
            # More came, or the session was taken again.
            self._must_settle = self._must_settle or left is not None
            self._queue.put_back(left or ())
        await self._owner.abandon(self.fence)

    async def _linger(self) -> None:
        self._has_more.clear()
        if self._settings.linger_s and not (self._queue or self._is_replaced):
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.linger_s):
                    await self._has_more.wait()

    async def _settle_prompts(self) -> None:
        """Go on with answers that nobody waits for any more. Spec: Ruling E15."""
        while self._must_settle and not self._is_stopping:
            self._must_settle = False
            try:
                self.take_up(await self._desk.look())
            except (LogWriteFailed, DatabaseError) as failure:
                _raise_if_replaced(failure)
                self._must_settle = True
                await self._recover(None)

    @property
    def _name(self) -> str:
        return self._session.session_id

    async def _given_back(self) -> list[TurnRecord] | None:
        try:
            return await self._owner.give_back(self.fence)
        except DatabaseError as error:
            # Ours, and idle: the next message or the next round finds it so.
            logger.warning("session %s was not given back: %s", self._name, error)
            return None

    async def _run_next(self) -> None:
        record = self._queue.take()
        self._running = RunningTurn(record=record)
        try:
            if record.state == "running":
                await self._log.close_lost_turn(record, worker_lost())
                await self._said.read_back()
            else:
                await self._run_turn(self._running)
        except (LogWriteFailed, DatabaseError) as failure:
            _raise_if_replaced(failure)
            await self._recover(record)
        finally:
            self._running.unwatch()
            self._running = None

    async def _run_turn(self, running: RunningTurn) -> None:
        record = running.record
        if self._queue.is_shown:
            self._queue.show(self._log.builder)
        running.before_seq = self._log.writer.next_seq - 1
        running.card = card = self._log.open_turn(record)
        self._watch(running)
        context = Context(
            builder=self._log.builder,
            desk=self._desk,
            artifacts=self._artifacts,
            turn_card=card,
            run_id=record.run_id,
            model=self._settings.engine.model,
            shows_exceptions=self._settings.shows_exceptions,
        )
        running.heard = context.heard
        self._artifacts.learn_from(record.message["content"])
        turn = Turn(
            context,
            session_id=self._session.session_id,
            session_pk=self._session.pk,
            trace_id=self._session.trace_id,
            turn_no=record.turn_no,
            input=turn_input(record, self._artifacts.open),
            history=self._said.entries,
            topics_shown=self._topics_shown,
            injections=running.injections,
        )
        if record.is_stopped:
            running.end(CloseStatus.CANCELLED)
        await self._artifacts.look()
        # A turn that is not known to have begun is run by the next owner: its engine
        # does nothing before that is stored. Spec: Ruling E14.
        await self._log.writer.flush()
        if running.ending is None:
            await self._run_engine(running, turn)
        if self._is_replaced:
            raise _Replaced
        if self._log.writer.failure is not None:
            raise self._log.writer.failure
        if not self._is_stopping:
            self._desk.close_open()
        status, error = running.ending or self._outcome(running.task)
        self._report_dropped(running)
        self._log.end_turn(card, record, status, error, metrics=turn.metrics.total())
        await self._log.writer.flush()
        await self._desk.forget_turn()
        self._said.remember(record, context)

    def _report_dropped(self, running: RunningTurn) -> None:
        dropped = self._log.builder.take_dropped_count()
        if dropped and running.ending is None:
            logger.warning(
                "session %s: %d frames of the engine came for closed cards",
                self._name,
                dropped,
            )

    async def _run_engine(self, running: RunningTurn, turn: Turn) -> None:
        """Run the engine until it ends, or until its turn has to end without it."""
        running.task = task = contain_engine(run_engine(self._settings.engine, turn))
        is_ending = asyncio.create_task(running.is_ending.wait())
        try:
            await asyncio.wait({task, is_ending}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                await asyncio.wait([task], timeout=CANCEL_GRACE_S)
        finally:
            is_ending.cancel()
        if not task.done():
            # Its cards close under it, so whatever it still says is dropped.
            logger.warning("the engine of session %s does not stop", self._name)
            task.add_done_callback(log_late_end)

    def _outcome(
        self, task: "asyncio.Task[None] | None"
    ) -> tuple[CloseStatus, ErrorInfo | None]:
        if task is None or task.cancelled():
            return CloseStatus.CANCELLED, None
        exception = task.exception()
        if exception is None:
            return CloseStatus.OK, None
        logger.error("the engine failed in session %s", self._name, exc_info=exception)
        return CloseStatus.FAILED, error_of(
            exception, shows_exceptions=self._settings.shows_exceptions
        )

    # The watchdog.

    def _watch(self, running: RunningTurn) -> None:
        """Close what has been silent for too long, and look again when it is due.

        Spec: Ruling E13.
        """
        running.unwatch()
        if self._log.writer.failure is not None or running.ending is not None:
            return
        now = self._settings.now_ms()
        found = look(
            self._log.tree.cards,
            windows_ms=self._settings.windows_ms,
            waiting_at=self._desk.waiting_at,
            now_ms=now,
        )
        for card in found.silent:
            self._close_silent(running, card)
        if found.next_ms is not None and running.ending is None:
            delay_s = max(found.next_ms - now, MIN_LOOK_MS) / 1000
            running.timer = asyncio.get_running_loop().call_later(
                delay_s, self._watch, running
            )

    def _close_silent(self, running: RunningTurn, card: Card) -> None:
        error = orphan_timeout(card.kind)
        if card is running.card:
            close_open_below(self._log.builder, card, CloseStatus.FAILED, error)
            running.end(CloseStatus.FAILED, error)
        else:
            self._log.builder.close(card, CloseStatus.FAILED, error=error)

    # When the log cannot be written.

    def _committed(self, frames: Sequence[bytes]) -> None:
        # The next owner may have gone on already; its followers read the log then.
        if not self._is_replaced:
            self._owner.committed(frames)

    def _log_failed(self, failure: Exception) -> None:
        running = self._running
        is_replaced = isinstance(failure.__cause__, OwnerReplaced)
        # Once a turn: its recovery may fail as often as it is tried.
        if not is_replaced and (running is None or running.ending is None):
            self._owner.trouble(saving_fails())
        if running is not None:
            running.end(CloseStatus.FAILED)

    async def _recover(self, record: TurnRecord | None) -> None:
        """Close what the lost turn left open in the log, once it is back.

        Args:
            record: None when no turn was running.
        """
        while not self._is_replaced:
            try:
                await self._log.restart()
                self._desk.begin_anew()
                if record is not None:
                    await self._log.close_lost_turn(record, log_unavailable())
                    await self._said.read_back()
                return
            except (DatabaseError, LogWriteFailed) as error:
                _raise_if_replaced(error)
                logger.warning("session %s waits for the log: %s", self._name, error)
                await asyncio.sleep(RECOVERY_RETRY_S)
        raise _Replaced


def _raise_if_replaced(failure: Exception) -> None:
    if isinstance(failure.__cause__, OwnerReplaced):
        raise _Replaced from failure
