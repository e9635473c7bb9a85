"""One client's connection: a cursor into its session's log, and what the client says.

Everything logged reaches the client by the cursor: live, replayed or both, it is the
same read. What concerns this connection alone (opened, resumed, errors about its own
frames) goes out in a trace of the connection's own and is not logged.

Spec: EMIT 2; Rulings E1 to E5, E25, E26.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Literal

from django.core.exceptions import ObjectDoesNotExist
from django.db import Error as DatabaseError
from msgspec import UNSET
from msgspec.structs import replace

from cards.clock import now_ms
from cards.database import run_in_database
from cards.live.decoding import decoded
from cards.live.errors import session_deleted
from cards.live.hub import Hub
from cards.live.session import LiveSession
from cards.operations import (
    MessageConflict,
    QueueFull,
    SessionTaken,
    StopRequest,
    TooManySessions,
)
from cards.ports import OpenPrompt
from cards.principals import Principal
from cards.protocol.client_messages import (
    DEFAULT_LIMITS,
    AnyClientMessage,
    FrameLimits,
    Ping,
    PromptUserResponse,
    SessionCreate,
    SessionInterrupt,
    SessionResume,
    ToolResult,
    UserInject,
    UserMessage,
    check_session_id,
)
from cards.protocol.close_codes import CloseCode
from cards.protocol.codec import (
    PONG,
    encode_event,
    name_message,
)
from cards.protocol.envelope import Envelope, format_timestamp
from cards.protocol.errors import (
    ErrorInfo,
    RemoteProtocolError,
    make_error,
    refuse,
)
from cards.protocol.events import SessionEvent
from cards.protocol.ids import MAIN_AGENT, mint_event_id, mint_trace_id
from cards.protocol.json_form import clean_text
from cards.protocol.kinds import (
    ErrorType,
    ResumeFailure,
    Role,
    SessionEventKind,
    Severity,
)
from cards.protocol.payloads import (
    ErrorInner,
    OpenedInner,
    Payload,
    ResumedInner,
    ResumeFailedInner,
    SessionEventPayload,
    UpdatedInner,
)
from cards.protocol.replay import plan_replay
from cards.queries import log_bounds, read_page
from cards.transport import Batch, Transport

logger = logging.getLogger(__name__)

PROTOCOL_VERSION = "2.0"

#: What works in this release; a client shows nothing that is False. Spec: EMIT 1.
CAPABILITIES = {
    "streaming": True,
    "tools": True,
    "client_tools": True,
    "sub_agents": True,
    "tasks": True,
    "teams": True,
    "plan_review": True,
    "artifacts": True,
    "recovery": True,
}

_PONG = Batch([PONG])


class Connection:
    """The server's end of one WebSocket.

    Args:
        hub: Where the sessions are.
        transport: The way to the client.
        principal: Who the client is.
        admit: Refuses messages by raising RemoteProtocolError before they have any
            effect.
        limits: What a frame of the client may hold.
    """

    def __init__(
        self,
        hub: Hub,
        transport: Transport,
        principal: Principal,
        admit: Callable[[AnyClientMessage], None],
        limits: FrameLimits = DEFAULT_LIMITS,
    ) -> None:
        self._hub = hub
        self._limits = limits
        self._admit = admit
        self._transport = transport
        self._principal = principal
        self._trace_id = mint_trace_id(hub.entropy.hex)
        self._next_seq = 1
        self._live: LiveSession | None = None
        self._named_session = False
        self._cursor = 0
        # Where the cursor has been in this session.
        self._shown = 0
        # Counts moves of the cursor: a page that was read for an older place is not
        # sent any more.
        self._moves = 0
        self._catching_up: asyncio.Task[None] | None = None
        self._is_greeting = False
        self._writable = asyncio.Event()
        self._writable.set()
        transport.on_writable(self._transport_drained)

    # The session's log, by the cursor.

    def pump(self) -> None:
        """Send what is new, as far as the client keeps up. Spec: Rulings E3, E4."""
        live = self._live
        if live is None or self._catching_up is not None or self._is_greeting:
            return
        while self._cursor < live.tail.newest_seq and self._transport.is_writable:
            batch = live.tail.after(self._cursor)
            if batch is None:
                self._catching_up = asyncio.create_task(self._catch_up(live))
                self._catching_up.add_done_callback(self._caught_up)
                return
            self._transport.write(batch)
            self._cursor += len(batch)

    async def _catch_up(self, live: LiveSession) -> None:
        """Read pages of the log until the tail reaches back to the cursor."""
        record = live.record
        while (
            record is not None
            and live is self._live
            and self._cursor + 1 < live.tail.oldest_seq
        ):
            if not self._transport.is_writable:
                # Meanwhile the client may go to another place or session.
                await self._until_writable()
                continue
            moves = self._moves
            page = await run_in_database(
                read_page,
                record.pk,
                after_seq=self._cursor,
                up_to_seq=live.tail.newest_seq,
            )
            if moves != self._moves or not self._transport.is_writable:
                continue
            if page.frames:
                self._transport.write(Batch(page.frames))
            self._cursor = max(page.last_seq, self._cursor)
            if not page.frames:
                # Pruned from under the reader: go on with what is kept.
                self._cursor = live.tail.oldest_seq - 1

    def _caught_up(self, task: "asyncio.Task[None]") -> None:
        self._catching_up = None
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            logger.error("reading the log for a client failed", exc_info=error)
            self.close(CloseCode.INTERNAL_ERROR)
            return
        self.pump()

    async def _until_writable(self) -> None:
        while not self._transport.is_writable:
            self._writable.clear()
            await self._writable.wait()

    def _transport_drained(self) -> None:
        self._writable.set()
        self.pump()

    def _move_cursor(self, seq: int) -> None:
        # A client that has it shown again has seen it before.
        self._shown = max(self._shown, self._cursor)
        self._cursor = seq
        self._moves += 1

    def _begin_at(self, seq: int) -> None:
        self._move_cursor(seq)
        self._shown = seq

    # Frames of this connection alone.

    def _tell(
        self,
        kind: SessionEventKind,
        inner: Payload,
        severity: Severity = Severity.INFO,
    ) -> None:
        no_card: Literal[""] = ""
        event = SessionEvent(
            envelope=Envelope(
                event_id=mint_event_id(self._hub.entropy.hex),
                session_id=self._live.session_id if self._live else "",
                trace_id=self._trace_id,
                card_id=no_card,
                card_kind=no_card,
                seq=self._next_seq,
                timestamp=format_timestamp(now_ms()),
                agent_id=MAIN_AGENT,
                agent_role=Role.SYSTEM,
                severity=severity,
            ),
            payload=SessionEventPayload(kind=kind, inner=inner),
        )
        self._next_seq += 1
        self._transport.write(Batch([encode_event(event)]))

    def tell_error(self, error: ErrorInfo) -> None:
        """Answer a frame of this client with an error. Spec: EMIT 16."""
        self._tell(SessionEventKind.ERROR, ErrorInner(error=error), Severity.ERROR)

    def refuse(self, text: str, error: ErrorInfo) -> None:
        """Answer a frame that has no effect, and say which message it held.

        Several may be on their way, so the client must know.

        Spec: EMIT 12, 16.
        """
        named = name_message(text)
        if named:
            details = {} if error.details is UNSET else error.details
            error = replace(error, details=details | named)
        self.tell_error(error)

    def report_trouble(self, error: ErrorInfo) -> None:
        """See `Follower.report_trouble`."""
        self.tell_error(error)

    def greet_anew(self, seq: int) -> None:
        """See `Follower.greet_anew`."""
        if self._live is not None:
            self._begin_at(seq)
            self._tell_opened(self._live, seq, ())
            self.pump()

    def tell_deleted(self) -> None:
        """See `Follower.tell_deleted`. Spec: Ruling E5."""
        if self._live is not None:
            self.tell_error(session_deleted())
            self._tell(
                SessionEventKind.RESUME_FAILED,
                ResumeFailedInner(
                    trace_id=self._live.trace_id,
                    reason=ResumeFailure.SESSION_NOT_FOUND,
                ),
            )

    async def _greet(self, live: LiveSession) -> None:
        """Bind the client to a session, tell it so, and show what it is asked.

        Spec: Ruling E1; EMIT 2.4.2.
        """
        newest = live.tail.newest_seq
        # Nothing goes out meanwhile: the reply to a prompt must not come before it.
        self._is_greeting = True
        try:
            with live.in_use():
                prompts = await live.open_prompts(newest)
                if live is not self._live:
                    self._follow(live, newest)
        finally:
            self._is_greeting = False
        self._tell_opened(live, newest, prompts)
        self.pump()

    def _tell_opened(
        self, live: LiveSession, newest: int, prompts: Sequence[OpenPrompt]
    ) -> None:
        self._tell(
            SessionEventKind.OPENED,
            OpenedInner(
                protocol_version=PROTOCOL_VERSION,
                model=self._hub.model or UNSET,
                capabilities=CAPABILITIES,
                trace_id=live.trace_id,
                last_seq=newest,
            ),
        )
        for prompt in prompts:
            self.resend(prompt)

    def resend(self, prompt: OpenPrompt) -> None:
        """See `Follower.resend`. Spec: EMIT 2.4.2; Ruling E3."""
        if prompt.seq <= self._cursor:
            self._transport.write(Batch([prompt.frame]))

    # Opening and ending.

    async def open(self, session_id: str | None) -> None:
        """Greet the client, bound to the session that its URL names.

        Args:
            session_id: From the URL; None mints one. A bad one or somebody else's
                is answered by an error after `opened` for a fresh session.

        Spec: EMIT 2.2; Ruling E1.
        """
        refusal: RemoteProtocolError | None = None
        try:
            if session_id is not None:
                check_session_id(session_id)
            live = await self._hub.attach(session_id, self._principal)
            self._named_session = session_id is not None
        except (RemoteProtocolError, SessionTaken) as error:
            refusal = (
                error
                if isinstance(error, RemoteProtocolError)
                else _session_not_found()
            )
            live = await self._hub.attach(None, self._principal)
        await self._greet(live)
        if refusal is not None:
            self.tell_error(refusal.error)

    def _follow(self, live: LiveSession, newest: int) -> None:
        self._unfollow()
        self._live = live
        self._begin_at(newest)
        live.audience.followers.add(self)

    def _unfollow(self) -> None:
        if self._live is not None:
            self._live.audience.followers.discard(self)
            self._hub.release(self._live)
            self._live = None

    def close(self, code: int) -> None:
        """Close the socket; the session goes on. Spec: EMIT 16."""
        self._transport.close(code)

    def end(self) -> None:
        """Forget the connection; its socket is gone."""
        if self._catching_up is not None:
            self._catching_up.cancel()
        self._unfollow()

    # What the client says.

    def pong(self) -> None:
        """Answer a ping, and look for what a lost ring would have told.

        Spec: EMIT 2.3; Ruling E25; design.md 1.
        """
        self._transport.write(_PONG)
        if self._live is not None:
            self._hub.look_at(self._live)

    async def receive(self, text: str) -> None:
        """Act on one text frame; whatever it holds, the connection lives.

        Spec: EMIT 9, 16; Ruling E22.
        """
        try:
            message = await decoded(text, self._limits)
            self._admit(message)
            await self._handle(message)
        except Exception as error:  # noqa: BLE001 - the client must hear of each
            self.refuse(text, _error_of(error))

    async def _handle(self, message: AnyClientMessage) -> None:
        match message:
            case Ping():
                self.pong()
            case SessionCreate():
                await self._create(message)
            case UserMessage():
                await self._submit(message)
            case SessionResume():
                await self._resume(message)
            case SessionInterrupt():
                await self._interrupt(message)
            case UserInject():
                await self._inject(message)
            case ToolResult() | PromptUserResponse():
                await self._bound.settle(message)

    @property
    def _bound(self) -> LiveSession:
        if self._live is None:
            raise RuntimeError("the connection was not opened")
        if self._live.is_gone:
            raise _session_not_found()
        return self._live

    async def _create(self, message: SessionCreate) -> None:
        if message.session_id is None:
            await self._greet(self._bound)
            return
        try:
            live = await self._hub.attach(message.session_id, self._principal)
            await live.store()
        except SessionTaken as error:
            raise _session_not_found() from error
        except TooManySessions as error:
            raise self._too_many_sessions() from error
        self._named_session = True
        await self._greet(live)

    async def _submit(self, message: UserMessage) -> None:
        live = self._bound
        try:
            turn = await live.submit(message)
        except SessionTaken as error:
            raise _session_not_found() from error
        except TooManySessions as error:
            raise self._too_many_sessions() from error
        except MessageConflict as error:
            raise refuse(
                "the event_id was used for another message",
                code="EVENT_ID_REUSED",
                field="event_id",
                allowed="a fresh event_id for each message",
            ) from error
        except QueueFull as error:
            raise RemoteProtocolError(
                make_error(
                    ErrorType.OVERLOADED,
                    f"{self._hub.queue_limit} messages wait in the session",
                    code="QUEUE_FULL",
                    user_message="Please wait until I am done with what you asked.",
                )
            ) from error
        if not turn.is_new:
            self._tell(
                SessionEventKind.UPDATED,
                UpdatedInner(turn_card_id=turn.record.card_id),
            )

    def _too_many_sessions(self) -> RemoteProtocolError:
        return RemoteProtocolError(
            make_error(
                ErrorType.OVERLOADED,
                f"you own {self._hub.session_limit} sessions, which is the most",
                code="TOO_MANY_SESSIONS",
                user_message="You have too many conversations to begin another one.",
                retryable=False,
            )
        )

    async def _interrupt(self, message: SessionInterrupt) -> None:
        live = await self._stored_of(message.trace_id)
        outcome = await live.interrupt(
            StopRequest(
                turn_card_id=message.turn_card_id,
                clear_queue=message.clear_queue,
                seen_seq=max(self._shown, self._cursor),
            )
        )
        if not outcome.is_stopped:
            # The turn that was meant has ended; another one may be running.
            self._tell(
                SessionEventKind.UPDATED,
                UpdatedInner(state="running" if outcome.is_running else "idle"),
            )

    async def _stored_of(self, trace_id: str | None) -> LiveSession:
        """Return the session, whose row another worker may have made just now."""
        live = self._bound
        _check_trace(live, trace_id)
        if live.record is None:
            await live.look_for_row()
        return live

    async def _inject(self, message: UserInject) -> None:
        live = await self._stored_of(message.trace_id)
        if not await live.inject(clean_text(message.text)):
            raise refuse("no turn is running", code="NO_RUNNING_TURN")

    async def _resume(self, message: SessionResume) -> None:
        live = await self._session_of_trace(message.trace_id)
        if live is None:
            self._resume_failed(message, ResumeFailure.UNKNOWN_TRACE)
            return
        with live.in_use():
            await self._resume_in(live, message)

    async def _resume_in(self, live: LiveSession, message: SessionResume) -> None:
        oldest, newest = 1, 0
        if live.record is not None:
            await live.look_at_log()
            bounds = await run_in_database(log_bounds, live.record.pk)
            if bounds is None:
                self._resume_failed(message, ResumeFailure.SESSION_NOT_FOUND)
                return
            # What is committed but not yet in the tail comes live right after.
            oldest, newest = bounds[0], live.tail.newest_seq
        plan = plan_replay(
            last_seq=message.last_seq,
            oldest_seq=min(oldest, newest + 1),
            newest_seq=newest,
        )
        if isinstance(plan, ResumeFailure):
            self._resume_failed(message, plan)
            return
        if live is not self._live:
            self._follow(live, live.tail.newest_seq)
        self._tell(
            SessionEventKind.RESUMED,
            ResumedInner(
                trace_id=live.trace_id, from_seq=plan.from_seq, to_seq=plan.to_seq
            ),
        )
        # Never ahead: an earlier resume may have promised what is not sent yet.
        self._move_cursor(min(self._cursor, plan.from_seq - 1))
        self.pump()

    async def _session_of_trace(self, trace_id: str) -> LiveSession | None:
        live = self._live
        if live is None or trace_id == live.trace_id:
            return live
        if self._named_session or live.record is not None:
            return None
        # A client that kept only its trace: nothing binds this connection yet.
        return await self._hub.attach_to_trace(trace_id, self._principal)

    def _resume_failed(self, message: SessionResume, reason: ResumeFailure) -> None:
        self._tell(
            SessionEventKind.RESUME_FAILED,
            ResumeFailedInner(trace_id=message.trace_id, reason=reason),
        )


def _error_of(error: Exception) -> ErrorInfo:
    """Return what a client is told when its frame had no effect."""
    if isinstance(error, RemoteProtocolError):
        return error.error
    if isinstance(error, ObjectDoesNotExist):
        # Deleted meanwhile; who follows it is about to be told.
        return _session_not_found().error
    if isinstance(error, DatabaseError):
        logger.error("a client frame met a database that is away", exc_info=error)
        return make_error(
            ErrorType.OVERLOADED,
            "the database is unavailable; the frame had no effect",
            code="DATABASE_UNAVAILABLE",
            user_message="This cannot be saved right now; please try again.",
        )
    logger.error("a client frame could not be handled", exc_info=error)
    return make_error(
        ErrorType.INTERNAL,
        "the frame could not be handled; it had no effect",
        code="NOT_HANDLED",
        retryable=True,
    )


def _check_trace(live: LiveSession, trace_id: str | None) -> None:
    if trace_id is not None and trace_id != live.trace_id:
        raise refuse(
            "trace_id is not the trace of this session",
            code="UNKNOWN_TRACE",
            field="trace_id",
            allowed="the trace_id of session.event(opened)",
        )


def _session_not_found() -> RemoteProtocolError:
    return refuse(
        "there is no such session", code="SESSION_NOT_FOUND", field="session_id"
    )
