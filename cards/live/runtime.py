"""The running turns of one session: one at a time, in order, to a truthful end.

| what happens | the turn's cards end |
|---|---|
| the engine returns | ok; what it left open is cancelled |
| the engine raises | failed with its ErrorInfo, and one logged session error |
| the turn is stopped | cancelled |
| the log cannot be written | failed `LOG_UNAVAILABLE`, as soon as it can be again |

Spec: EMIT 14; Rulings E9, E11, E12, E28; design.md 3, 4.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import Error as DatabaseError

from cards.builder import Builder
from cards.clock import Entropy, now_ms
from cards.database import run_in_database
from cards.engine import Engine, HistoryEntry, Turn, TurnInput
from cards.engine.block import Context, close_open_below, error_of
from cards.log.changes import session_active, turn_ended, turn_started
from cards.log.committer import Committer
from cards.log.writer import LogWriteFailed, SessionWriter
from cards.protocol.card_tree import Card, CardTree
from cards.protocol.errors import ErrorInfo, make_error
from cards.protocol.hints import MAX_SUMMARY_CHARS, default_hint, shorten
from cards.protocol.ids import MAIN_AGENT
from cards.protocol.kinds import (
    CardKind,
    CloseStatus,
    ErrorType,
    SessionEventKind,
    Severity,
)
from cards.protocol.payloads import (
    ErrorInner,
    QueuedMessage,
    TurnPayload,
    UpdatedInner,
    UserInput,
)
from cards.protocol.snapshot import CardView
from cards.queries import (
    HISTORY_CHARS,
    SessionHistory,
    TurnRecord,
    fold_turn,
    read_history,
    read_page,
)

logger = logging.getLogger(__name__)

#: Seconds between two looks at a database that is away.
RECOVERY_RETRY_S = 1.0

#: Earlier turns that an engine is shown.
HISTORY_TURNS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSettings:
    """What the operator decided about turns."""

    engine: Engine
    tick_interval_ms: int
    shows_exceptions: bool


@dataclass(slots=True, kw_only=True)
class _Running:
    """The turn at work: its record, its card once added, its task, its interrupt."""

    record: TurnRecord
    card: Card | None = None
    task: "asyncio.Task[None] | None" = None
    is_stopped: bool = False


class SessionRuntime:
    """Runs the turns of one session and owns its writer.

    Args:
        session_pk: Primary key of the session's row.
        session_id: Public id.
        trace_id: Durable trace.
        history: What the log holds already.
        on_committed: Told of frames that became durable, in order.
        on_trouble: Told when the log cannot be written.
    """

    def __init__(
        self,
        *,
        settings: RuntimeSettings,
        committer: Committer,
        session_pk: int,
        session_id: str,
        trace_id: str,
        history: SessionHistory,
        on_committed: Callable[[Sequence[bytes]], None],
        on_trouble: Callable[[ErrorInfo], None],
    ) -> None:
        self._settings = settings
        self._committer = committer
        self._session_pk = session_pk
        self._session_id = session_id
        self._trace_id = trace_id
        self._on_committed = on_committed
        self._on_trouble = on_trouble
        self._entropy = Entropy()
        self._topics_shown = set(history.system_topics)
        self._history: deque[HistoryEntry] = deque(
            (HistoryEntry(*said) for said in history.said), maxlen=2 * HISTORY_TURNS
        )
        self._queue: deque[TurnRecord] = deque()
        self._running: _Running | None = None
        self._worker: asyncio.Task[None] | None = None
        self._stops_first = False
        self._start_log(history.newest_seq, CardTree(history.card_ids))

    def _start_log(self, newest: int, tree: CardTree) -> None:
        self._tree = tree
        self._writer = SessionWriter(
            session_pk=self._session_pk,
            newest_seq=newest,
            committer=self._committer,
            on_committed=self._on_committed,
            on_failed=self._log_failed,
        )
        self._builder = Builder(
            session_id=self._session_id,
            trace_id=self._trace_id,
            writer=self._writer,
            tree=tree,
            now_ms=now_ms,
            entropy=self._entropy,
            tick_interval_ms=self._settings.tick_interval_ms,
        )

    @property
    def is_idle(self) -> bool:
        """Whether no turn runs or waits."""
        return self._worker is None

    def free_turn_card_id(self, wanted: str | None) -> str:
        """Return the wanted id for a turn card, or a fresh one. Spec: Ruling E7."""
        return self._builder.free_card_id(CardKind.TURN, wanted)

    def enqueue(self, record: TurnRecord) -> None:
        """Run an accepted turn after those before it. Spec: Ruling E9."""
        self._queue.append(record)
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
            self._worker.add_done_callback(_log_exception)
        elif self._running is not None:
            self._show_queue()

    def interrupt(self) -> bool:
        """Stop the running turn; False when none runs. Spec: Ruling E10."""
        running = self._running
        if running is None and self._worker is not None:
            # Accepted, and the worker is about to begin it.
            self._stops_first = True
            return True
        if running is None or running.task is None or not running.task.cancel():
            return False
        running.is_stopped = True
        return True

    def _show_queue(self) -> None:
        if self._writer.failure is not None:
            return
        waiting = [
            QueuedMessage(event_id=each.event_id, text=each.message["text"])
            for each in self._queue
        ]
        self._builder.session_event(
            SessionEventKind.UPDATED, UpdatedInner(queue=waiting)
        )

    async def _work(self) -> None:
        was_waiting = False
        try:
            while self._queue:
                record = self._queue.popleft()
                self._running = _Running(record=record, is_stopped=self._stops_first)
                self._stops_first = False
                if was_waiting:
                    self._show_queue()
                was_waiting = bool(self._queue)
                try:
                    await self._run_turn(self._running)
                except LogWriteFailed:
                    await self._recover(self._running)
                finally:
                    was_waiting = was_waiting or bool(self._queue)
                    self._running = None
        finally:
            self._worker = None
            self._builder.stop()

    async def _run_turn(self, running: _Running) -> None:
        record = running.record
        running.card = card = self._open_turn(record)
        context = Context(
            builder=self._builder,
            turn_card=card,
            run_id=record.run_id,
            model=self._settings.engine.model,
            shows_exceptions=self._settings.shows_exceptions,
        )
        turn = Turn(
            context,
            session_id=self._session_id,
            session_pk=self._session_pk,
            trace_id=self._trace_id,
            turn_no=record.turn_no,
            input=turn_input(record),
            history=tuple(self._history),
            topics_shown=self._topics_shown,
        )
        running.task = asyncio.create_task(_run_engine(self._settings.engine, turn))
        if running.is_stopped:
            running.task.cancel()
        await asyncio.wait([running.task])
        status, error = self._outcome(running, running.task)
        if self._writer.failure is not None:
            raise self._writer.failure
        self._close_turn(card, record, status, error, turn)
        await self._writer.flush()
        self._remember(record, context.said_text)

    def _open_turn(self, record: TurnRecord) -> Card:
        payload = TurnPayload(
            turn_no=record.turn_no, channel="chat", input=user_input(record)
        )
        text = record.message["text"]
        return self._builder.add(
            CardKind.TURN,
            payload,
            card_id=record.card_id,
            parent=None,
            agent_run_id=record.run_id,
            hint=default_hint(
                CardKind.TURN, payload, summary=shorten(text, MAX_SUMMARY_CHARS)
            ),
            changes=(
                turn_started(turn_pk=record.pk, first_seq=self._writer.next_seq),
                session_active(session_pk=self._session_pk, now=_utc_now()),
            ),
        )

    def _outcome(
        self, running: _Running, task: "asyncio.Task[None]"
    ) -> tuple[CloseStatus, ErrorInfo | None]:
        exception = None if task.cancelled() else task.exception()
        if exception is not None and not isinstance(exception, LogWriteFailed):
            logger.error(
                "the engine failed in session %s", self._session_id, exc_info=exception
            )
        # However an engine takes it, its user has stopped it. Spec: Ruling E10.
        if task.cancelled() or running.is_stopped:
            return CloseStatus.CANCELLED, None
        if exception is None:
            return CloseStatus.OK, None
        return CloseStatus.FAILED, error_of(
            exception, shows_exceptions=self._settings.shows_exceptions
        )

    def _close_turn(
        self,
        card: Card,
        record: TurnRecord,
        status: CloseStatus,
        error: ErrorInfo | None,
        turn: Turn | None,
    ) -> None:
        close_open_below(self._builder, card, status, error)
        self._builder.close(
            card,
            status,
            error=error,
            metrics=turn.metrics.total() if turn else None,
            changes=(
                turn_ended(turn_pk=record.pk),
                session_active(session_pk=self._session_pk, now=_utc_now()),
            ),
        )
        if error is not None:
            self._builder.session_event(
                SessionEventKind.ERROR, ErrorInner(error=error), severity=Severity.ERROR
            )
        self._tree.forget_turn()

    def _remember(self, record: TurnRecord, said: str) -> None:
        words = record.message["text"][:HISTORY_CHARS]
        self._history.append(HistoryEntry("user", words, record.turn_no))
        if said:
            self._history.append(
                HistoryEntry("assistant", said[:HISTORY_CHARS], record.turn_no)
            )

    # When the log cannot be written.

    def _log_failed(self, failure: Exception) -> None:
        self._on_trouble(
            make_error(
                ErrorType.OVERLOADED,
                "the event log cannot be written; the turn will be closed as failed",
                code="LOG_UNAVAILABLE",
                user_message="Your conversation cannot be saved right now.",
            )
        )
        if self._running is not None and self._running.task is not None:
            self._running.task.cancel()

    async def _recover(self, running: _Running) -> None:
        """Close in the log what the lost turn left open there, once it is back.

        The log is the truth: what is open is found by folding its frames, because
        some of what this process emitted was never stored.
        """
        while True:
            try:
                await self._close_lost_turn(running)
                return
            except (DatabaseError, LogWriteFailed) as error:
                logger.warning(
                    "session %s waits for the event log: %s", self._session_id, error
                )
                await asyncio.sleep(RECOVERY_RETRY_S)

    async def _close_lost_turn(self, running: _Running) -> None:
        history = await run_in_database(read_history, self._session_pk, turns=0)
        await self._deliver_stored(self._writer.committed_seq, history.newest_seq)
        self._builder.stop()
        self._start_log(history.newest_seq, CardTree(history.card_ids))
        record = running.record
        fold = await run_in_database(fold_turn, self._session_pk, record.pk)
        if fold is None:
            card: Card | None = self._open_turn(record)
        else:
            card = self._adopt(fold)
        if card is not None:
            error = make_error(
                ErrorType.INTERNAL,
                "the event log could not be written during this turn",
                code="LOG_UNAVAILABLE",
                user_message="This answer was lost because it could not be saved.",
                retryable=True,
            )
            self._close_turn(card, record, CloseStatus.FAILED, error, None)
        await self._writer.flush()

    async def _deliver_stored(self, after_seq: int, newest: int) -> None:
        # A commit whose answer got lost is in the log although it "failed".
        while after_seq < newest:
            page = await run_in_database(
                read_page, self._session_pk, after_seq=after_seq, up_to_seq=newest
            )
            self._on_committed(page.frames)
            after_seq = page.last_seq

    def _adopt(self, cards: Sequence[CardView]) -> Card | None:
        """Enter folded cards into the tree; return the turn's if it is open."""
        turn_card: Card | None = None
        for view in cards:
            kind = CardKind(view.card_kind)
            card = Card(
                card_id=view.card_id,
                kind=kind,
                parent_card_id=view.parent_card_id,
                agent_id=view.agent_id or MAIN_AGENT,
                agent_run_id=None,
                opened_ms=now_ms(),
                is_open=view.status == "open",
            )
            self._tree.adopt(card)
            if kind is CardKind.TURN:
                turn_card = card if card.is_open else None
        return turn_card


async def _run_engine(engine: Engine, turn: Turn) -> None:
    # Called within the task: an engine may fail before it gives a coroutine.
    try:
        await engine.run(turn)
    except SystemExit as error:
        # asyncio would end the whole process with it.
        raise RuntimeError(f"the engine called sys.exit({error.code!r})") from error


def turn_input(record: TurnRecord) -> TurnInput:
    """Return what an engine gets to know of an accepted message."""
    message = record.message
    return TurnInput(
        text=message["text"],
        blocks=message["content"],
        event_id=record.event_id,
        coordinator_mode=message["coordinator_mode"],
        plan_confirmation=message["plan_confirmation"],
    )


def user_input(record: TurnRecord) -> UserInput:
    """Return the user's words as the log shows them. Spec: Ruling E28."""
    return UserInput(
        event_id=record.event_id,
        text=record.message["text"],
        content=record.message["content"],
    )


def _utc_now() -> datetime:
    return datetime.fromtimestamp(now_ms() / 1000, UTC)


def _log_exception(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("a session's worker died", exc_info=task.exception())
