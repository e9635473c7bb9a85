"""A session as this process has it: who follows it, where its log ends, who runs it."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from cards.clock import Entropy, now_ms
from cards.database import WriteBatches, run_in_database
from cards.live.runtime import HISTORY_TURNS, RuntimeSettings, SessionRuntime
from cards.log.committer import Committer
from cards.log.tail import Tail
from cards.operations import NewTurn, accept_message, open_session
from cards.principals import Principal
from cards.protocol.client_messages import UserMessage, blocks_of, text_of
from cards.protocol.errors import ErrorInfo
from cards.protocol.hints import shorten
from cards.protocol.ids import (
    is_safe_id,
    mint_card_id,
    mint_event_id,
    mint_run_id,
    mint_trace_id,
)
from cards.protocol.json_form import json_form
from cards.protocol.kinds import CardKind
from cards.queries import (
    NO_HISTORY,
    AcceptedMessage,
    SessionHistory,
    SessionRecord,
    TurnRecord,
    newest_seq,
    read_history,
)
from cards.transport import Batch

#: Longest automatic title in characters. Spec: Ruling E29.
TITLE_CHARS = 80


class Follower(Protocol):
    """A connection that follows a session."""

    def pump(self) -> None:
        """Send what is new, as far as the client keeps up."""

    def report_trouble(self, error: ErrorInfo) -> None:
        """Tell this client of trouble that cannot be logged."""


class LiveSession:
    """One session in this process, shared by all its connections.

    Args:
        session_id: Public id.
        principal: Who owns it, or will once it has a row.
        record: Its row; None when it has none yet.
        newest: Seq of its last logged frame; 0 for none.

    Spec: Rulings E1, E2, E26.
    """

    def __init__(
        self,
        *,
        session_id: str,
        principal: Principal,
        record: SessionRecord | None,
        newest: int,
        committer: Committer,
        writes: WriteBatches,
        settings: RuntimeSettings,
        entropy: Entropy,
    ) -> None:
        self.session_id = session_id
        self.principal = principal
        self.record = record
        self.trace_id = record.trace_id if record else mint_trace_id(entropy.hex)
        self.tail: Tail[Batch] = Tail(newest, Batch)
        self.followers: set[Follower] = set()
        self._committer = committer
        self._writes = writes
        self._settings = settings
        self._entropy = entropy
        self._runtime: SessionRuntime | None = None
        self._lock = asyncio.Lock()
        self._uses = 0
        self._submissions: set[asyncio.Task[tuple[TurnRecord, bool]]] = set()

    @property
    def is_idle(self) -> bool:
        """Whether nobody follows and nothing runs, so that it can be let go."""
        is_resting = self._runtime is None or self._runtime.is_idle
        is_used = self._uses > 0 or bool(self._submissions)
        return not self.followers and is_resting and not is_used

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the session from being let go before somebody follows it."""
        self._uses += 1
        try:
            yield
        finally:
            self._uses -= 1

    async def store(self) -> SessionRecord:
        """Return the session's row, made now if there was none.

        Raises:
            SessionTaken: Somebody else made it first.

        Spec: Ruling E1.
        """
        with self.in_use():
            async with self._lock:
                await self._store()
            return self._row

    async def _store(self, first_turn: NewTurn | None = None) -> TurnRecord | None:
        """Make the row if there is none; return the turn stored with it, if any."""
        if self.record is not None:
            return None
        record, turn = await self._writes.run(
            open_session,
            session_id=self.session_id,
            trace_id=self.trace_id,
            principal=self.principal,
            now=_utc_now(),
            first_turn=first_turn,
        )
        if record.trace_id != self.trace_id:
            # Another process made the row in between; its trace counts.
            self.trace_id = record.trace_id
            self.tail = Tail(await run_in_database(newest_seq, record.pk), Batch)
        self.record = record
        return turn

    async def submit(
        self, message: UserMessage, *, queue_limit: int
    ) -> tuple[TurnRecord, bool]:
        """Accept a user message and run it after those before it.

        Returns:
            The turn, and whether it is new.

        Raises:
            SessionTaken: The session belongs to somebody else.
            MessageConflict: The event_id stands for another message.
            QueueFull: Too many messages wait.

        Spec: Rulings E8, E9.
        """
        submission = asyncio.create_task(self._submit(message, queue_limit))
        submission.add_done_callback(self._submissions.discard)
        self._submissions.add(submission)
        # A client that is gone by now does not take back what it said: a turn that
        # is stored must be run.
        return await asyncio.shield(submission)

    async def _submit(
        self, message: UserMessage, queue_limit: int
    ) -> tuple[TurnRecord, bool]:
        async with self._lock:
            new = self._new_turn(message)
            turn, is_new = await self._store(new), True
            if turn is not None:
                # Nobody has written to a session that was made just now.
                runtime = self._start_runtime(NO_HISTORY)
            else:
                runtime = await self._runtime_of()
                turn, is_new = await self._accept(runtime, new, queue_limit)
            if is_new:
                runtime.enqueue(turn)
        return turn, is_new

    def _new_turn(self, message: UserMessage) -> NewTurn:
        given = message.event_id
        wanted = f"turn_{given}" if given is not None and is_safe_id(given) else None
        accepted = accepted_message(message)
        return NewTurn(
            event_id=given or mint_event_id(self._entropy.hex),
            card_id=wanted or mint_card_id(CardKind.TURN, self._entropy.hex),
            run_id=mint_run_id(self._entropy.hex),
            message=accepted,
            title=shorten(accepted["text"], TITLE_CHARS),
            accepted_at=_utc_now(),
        )

    def interrupt(self) -> bool:
        """Stop the running turn; False when none runs. Spec: Ruling E10."""
        return self._runtime is not None and self._runtime.interrupt()

    async def _accept(
        self, runtime: SessionRuntime, new: NewTurn, queue_limit: int
    ) -> tuple[TurnRecord, bool]:
        card_id = runtime.free_turn_card_id(new.card_id)
        return await self._writes.run(
            accept_message,
            session_pk=self._row.pk,
            turn=replace(new, card_id=card_id),
            queue_limit=queue_limit,
        )

    @property
    def _row(self) -> SessionRecord:
        if self.record is None:
            raise RuntimeError("the session has no row yet")
        return self.record

    async def _runtime_of(self) -> SessionRuntime:
        if self._runtime is not None:
            return self._runtime
        return self._start_runtime(
            await run_in_database(read_history, self._row.pk, turns=HISTORY_TURNS)
        )

    def _start_runtime(self, history: SessionHistory) -> SessionRuntime:
        self._runtime = SessionRuntime(
            settings=self._settings,
            committer=self._committer,
            session_pk=self._row.pk,
            session_id=self.session_id,
            trace_id=self.trace_id,
            history=history,
            on_committed=self._committed,
            on_trouble=self._trouble,
        )
        return self._runtime

    def _committed(self, frames: Sequence[bytes]) -> None:
        self.tail.extend(frames)
        for follower in tuple(self.followers):
            follower.pump()

    def _trouble(self, error: ErrorInfo) -> None:
        for follower in tuple(self.followers):
            follower.report_trouble(error)


def accepted_message(message: UserMessage) -> AcceptedMessage:
    """Return a checked user message in the form that is stored."""
    content = [
        {"type": block.type, "text": json_form(block.text)}
        for block in blocks_of(message)
    ]
    return AcceptedMessage(
        text=text_of(message),
        content=content,
        coordinator_mode=message.coordinator_mode,
        plan_confirmation=message.plan_confirmation,
    )


def _utc_now() -> datetime:
    return datetime.fromtimestamp(now_ms() / 1000, UTC)
