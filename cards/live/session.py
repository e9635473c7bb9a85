"""A session as this process has it: who follows it, where its log ends, who runs it."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol

from cards.clock import Entropy, now_ms
from cards.database import run_in_database
from cards.live.runtime import RuntimeSettings, SessionRuntime
from cards.log.committer import Committer
from cards.log.tail import Tail
from cards.operations import accept_message, name_session, open_session
from cards.principals import Principal
from cards.protocol.client_messages import UserMessage, blocks_of, text_of
from cards.protocol.errors import ErrorInfo
from cards.protocol.hints import shorten
from cards.protocol.ids import is_safe_id, mint_event_id, mint_run_id, mint_trace_id
from cards.protocol.json_form import json_form
from cards.queries import (
    AcceptedMessage,
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
        self._settings = settings
        self._entropy = entropy
        self._runtime: SessionRuntime | None = None
        self._lock = asyncio.Lock()

    @property
    def is_idle(self) -> bool:
        """Whether nobody follows and nothing runs, so that it can be let go."""
        is_resting = self._runtime is None or self._runtime.is_idle
        return not self.followers and is_resting and not self._lock.locked()

    async def store(self) -> SessionRecord:
        """Return the session's row, made now if there was none.

        Raises:
            SessionTaken: Somebody else made it first.

        Spec: Ruling E1.
        """
        async with self._lock:
            return await self._store()

    async def _store(self) -> SessionRecord:
        if self.record is None:
            self.record = await run_in_database(
                open_session,
                session_id=self.session_id,
                trace_id=self.trace_id,
                principal=self.principal,
                now=_utc_now(),
            )
            if self.record.trace_id != self.trace_id:
                # Another process made the row in between; its trace counts.
                self.trace_id = self.record.trace_id
                self.tail = Tail(
                    await run_in_database(newest_seq, self.record.pk), Batch
                )
        return self.record

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
        async with self._lock:
            record = await self._store()
            runtime = await self._runtime_of(record)
            turn, is_new = await self._accept(record, runtime, message, queue_limit)
            if is_new:
                runtime.enqueue(turn)
        return turn, is_new

    def interrupt(self) -> bool:
        """Stop the running turn; False when none runs. Spec: Ruling E10."""
        return self._runtime is not None and self._runtime.interrupt()

    async def _accept(
        self,
        record: SessionRecord,
        runtime: SessionRuntime,
        message: UserMessage,
        queue_limit: int,
    ) -> tuple[TurnRecord, bool]:
        given = message.event_id
        wanted = f"turn_{given}" if given is not None and is_safe_id(given) else None
        accepted = accepted_message(message)
        turn, is_new = await run_in_database(
            accept_message,
            session_pk=record.pk,
            event_id=given or mint_event_id(self._entropy.hex),
            card_id=runtime.free_turn_card_id(wanted),
            run_id=mint_run_id(self._entropy.hex),
            message=accepted,
            queue_limit=queue_limit,
            now=_utc_now(),
        )
        if is_new and turn.turn_no == 1:
            await run_in_database(
                name_session,
                session_pk=record.pk,
                title=shorten(accepted["text"], TITLE_CHARS),
            )
        return turn, is_new

    async def _runtime_of(self, record: SessionRecord) -> SessionRuntime:
        if self._runtime is None:
            history = await run_in_database(read_history, record.pk, turns=50)
            self._runtime = SessionRuntime(
                settings=self._settings,
                committer=self._committer,
                session_pk=record.pk,
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
