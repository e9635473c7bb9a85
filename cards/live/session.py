"""A session as this process has it: who follows it, where its log ends, who runs it."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from math import inf

from django.db import Error as DatabaseError

from cards.clock import utc_now
from cards.database import run_in_database
from cards.live.artifact_desk import SessionArtifacts
from cards.live.audience import Audience
from cards.live.new_turns import SubmittedTurn, turn_of_message
from cards.live.runtime import SessionRuntime
from cards.live.said import HISTORY_TURNS
from cards.live.services import SessionServices
from cards.log.tail import Tail
from cards.operations import (
    NOTHING_TO_STOP,
    AcceptedTurn,
    NewTurn,
    OpenedSession,
    StopOutcome,
    StopRequest,
    accept_message,
    open_session,
    settle_wait,
    stop_turns,
    store_injection,
)
from cards.ownership import Hold, abandon_session, give_back_session, take_session
from cards.ports import OpenPrompt
from cards.principals import Principal
from cards.protocol.client_messages import (
    PromptUserResponse,
    ToolResult,
    UserMessage,
    has_files,
    nothing_waits,
)
from cards.protocol.errors import ErrorInfo
from cards.protocol.ids import mint_event_id, mint_trace_id
from cards.queries import (
    NO_HISTORY,
    SessionHistory,
    SessionNews,
    SessionRecord,
    TurnRecord,
    find_own_session,
    log_bounds,
    read_history,
    read_news,
)
from cards.rounds import look_once
from cards.transport import Batch

logger = logging.getLogger(__name__)


class LiveSession:
    """One session in this process, shared by all its connections.

    Args:
        session_id: Public id.
        principal: Who owns it, or will once it has a row.
        record: Its row; None when it has none yet.
        newest: Seq of its last logged frame; 0 for none.
        on_stored: Told its primary key once it has a row.

    Spec: Rulings E1, E2, E14, E26.
    """

    def __init__(
        self,
        services: SessionServices,
        *,
        session_id: str,
        principal: Principal,
        record: SessionRecord | None,
        newest: int,
        on_stored: "Callable[[int, LiveSession], None]",
    ) -> None:
        self.session_id = session_id
        self.principal = principal
        self.record = record
        self.trace_id = (
            record.trace_id if record else mint_trace_id(services.entropy.hex)
        )
        self.audience = Audience(newest)
        self.is_gone = False
        self._services = services
        self._on_stored = on_stored
        self._runtime: SessionRuntime | None = None
        # Runtimes that come to their end although others own the session.
        self._replaced: set[SessionRuntime] = set()
        self._lock = asyncio.Lock()
        self._looks = asyncio.Lock()
        self._uses = 0
        self._submissions: set[asyncio.Task[SubmittedTurn]] = set()
        if record is not None:
            on_stored(record.pk, self)

    @property
    def tail(self) -> Tail[Batch]:
        """The recent frames, up to the newest that followers may be shown."""
        return self.audience.tail

    @property
    def is_idle(self) -> bool:
        """Whether nobody follows and nothing runs, so that it can be let go."""
        is_used = self._uses > 0 or bool(self._submissions)
        return not self.audience.followers and not self.is_working and not is_used

    @property
    def is_working(self) -> bool:
        """Whether turns of the session run or wait in this process."""
        return self._runtime is not None and not self._runtime.is_idle

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the session from being let go before somebody follows it."""
        self._uses += 1
        try:
            yield
        finally:
            self._uses -= 1

    # Its row.

    async def store(self) -> SessionRecord:
        """Return the session's row, made now if there was none.

        Raises:
            SessionTaken: Somebody else made it first.
            TooManySessions: Its principal may own no more.

        Spec: Ruling E1.
        """
        with self.in_use():
            async with self._lock:
                if self.record is None:
                    await self._open()
            return self._row

    async def _open(self, first_turn: NewTurn | None = None) -> OpenedSession:
        opened = await self._services.writes.run(
            None,
            open_session,
            session_id=self.session_id,
            trace_id=self.trace_id,
            principal=self.principal,
            now=utc_now(),
            session_limit=self._services.session_limit,
            first_turn=first_turn,
            me=self._services.membership.candidate,
        )
        if opened.record.trace_id != self.trace_id:
            await self._adopt(opened.record)
        else:
            self.record = opened.record
            self._on_stored(opened.record.pk, self)
        return opened

    async def _adopt(self, record: SessionRecord) -> None:
        """Take the row that another process made in between; its trace counts."""
        bounds = await run_in_database(log_bounds, record.pk)
        oldest, newest = bounds or (1, 0)
        self.trace_id = record.trace_id
        self.audience.begin_anew(newest)
        self.record = record
        self._on_stored(record.pk, self)
        # Those who follow were here before its first frame, and are shown that one.
        self.audience.greet_anew(oldest - 1)

    async def look_for_row(self) -> None:
        """Find out whether another worker made the session meanwhile.

        Raises:
            django.db.Error: The database cannot be read.

        Spec: Rulings E1, E26.
        """
        with self.in_use():
            async with self._lock:
                if self.record is not None:
                    return
                record = await run_in_database(
                    find_own_session, self.session_id, self.principal
                )
                if record is not None:
                    await self._adopt(record)

    @property
    def _row(self) -> SessionRecord:
        if self.record is None:
            raise RuntimeError("the session has no row yet")
        return self.record

    # What the user says.

    async def submit(self, message: UserMessage) -> SubmittedTurn:
        """Accept a user message, to be run after those before it.

        Raises:
            SessionTaken: The session belongs to somebody else.
            TooManySessions: Its principal may own no more.
            MessageConflict: The event_id stands for another message.
            QueueFull: Too many messages wait.
            RemoteProtocolError: One of its files is refused.

        Spec: Rulings E8, E9.
        """
        submission = asyncio.create_task(self._submit(message))
        submission.add_done_callback(self._submissions.discard)
        self._submissions.add(submission)
        # A client that is gone by now does not take back what it said: a turn that
        # is stored must be run.
        return await asyncio.shield(submission)

    async def _submit(self, message: UserMessage) -> SubmittedTurn:
        await self._services.membership.join()
        if self.record is None and has_files(message):
            # Another worker may have stored what the message refers to.
            await self.look_for_row()
        random_hex = self._services.entropy.hex
        async with (
            self._services.user_files.received(
                message,
                session_id=self.session_id,
                session_pk=self.record.pk if self.record else None,
                event_id=message.event_id or mint_event_id(random_hex),
            ) as received,
            self._lock,
        ):
            new = turn_of_message(
                message, received, random_hex=random_hex, now=utc_now()
            )
            return await self._accept(new)

    async def _accept(self, new: NewTurn) -> SubmittedTurn:
        if self.record is None:
            opened = await self._open(new)
            if opened.turn is not None:
                self._begin_first(opened.turn, opened.hold)
                return SubmittedTurn(opened.turn, is_new=True)
        accepted = await self._services.writes.run(
            self._row.pk,
            accept_message,
            session_pk=self._row.pk,
            turn=new,
            queue_limit=self._services.queue_limit,
            me=self._services.membership.candidate,
        )
        await self._see_to(accepted)
        return SubmittedTurn(accepted.turn, is_new=accepted.is_new)

    def _begin_first(self, turn: TurnRecord, hold: Hold | None) -> None:
        if hold is not None:
            # Nobody has written to a session that was made just now.
            self._start_runtime(hold, NO_HISTORY).take_up([turn])

    async def _see_to(self, accepted: AcceptedTurn) -> None:
        if accepted.hold is not None:
            runtime = await self._runtime_of(
                accepted.hold,
                accepted_no=accepted.turn.turn_no if accepted.is_new else inf,
            )
            runtime.take_up([accepted.turn] if accepted.is_new else [])
        elif accepted.is_new:
            self._services.doorbell.call(self._row.pk)

    async def interrupt(self, request: StopRequest) -> StopOutcome:
        """Stop a turn, whoever runs it. Spec: Rulings E9, E10."""
        if self.record is None:
            return NOTHING_TO_STOP
        runtime = self._runtime if self.is_working else None
        is_stopped = runtime is not None and runtime.interrupt(request)
        if is_stopped and not request.clear_queue and request.turn_card_id is None:
            return StopOutcome(is_stopped=True, is_running=True)
        # Stored for its owner, and for whoever takes over from that one.
        stored = await self._services.writes.run(
            self.record.pk, stop_turns, self.record.pk, request
        )
        if stored.is_stopped and runtime is None:
            self._services.doorbell.call(self.record.pk)
            await self.take_over()
        return replace(stored, is_stopped=is_stopped or stored.is_stopped)

    async def inject(self, text: str) -> bool:
        """Give words to the running turn; False when none runs. Spec: Ruling E23."""
        if self.record is None:
            return False
        is_kept = await self._services.writes.run(
            self.record.pk,
            store_injection,
            session_pk=self.record.pk,
            text=text,
            now=utc_now(),
        )
        if is_kept and self.is_working:
            await self.look_for_work()
        elif is_kept:
            self._services.doorbell.call(self.record.pk)
        return is_kept

    async def settle(self, answer: PromptUserResponse | ToolResult) -> None:
        """Settle a prompt or a client's tool, and have somebody go on with it.

        Raises:
            RemoteProtocolError: Nothing waits under this id, or the answer does not
                fit; the prompt then stays open.

        Spec: Rulings E15, E16, E24.
        """
        if self.record is None:
            raise nothing_waits(answer)
        book, now, pk = self._services.book, utc_now(), self.record.pk
        if isinstance(answer, PromptUserResponse):
            request_id, claim = (
                answer.request_id,
                partial(book.claim_answer, pk, answer, now),
            )
        else:
            request_id, claim = (
                answer.tool_use_id,
                partial(book.claim_result, pk, answer, now),
            )
        # Most of the answers that come too late need no place in the line.
        if not await run_in_database(book.may_be_settled, pk, request_id):
            raise nothing_waits(answer)
        await self._claim(claim, now)

    async def _claim(self, claim: Callable[[], None], now: datetime) -> None:
        await self._services.membership.join()
        with self.in_use():
            async with self._lock:
                hold = await self._services.writes.run(
                    self._row.pk,
                    settle_wait,
                    session_pk=self._row.pk,
                    claim=claim,
                    now=now,
                    me=self._services.membership.candidate,
                )
                if hold is None:
                    self._services.doorbell.call(self._row.pk)
                else:
                    (await self._runtime_of(hold)).look_for_settlements()

    async def open_prompts(self, newest: int) -> list[OpenPrompt]:
        """Return the prompts that may be answered and lie within the log up to a seq.

        What settles one of them meanwhile lies behind that seq.

        Args:
            newest: What the tail reached when it was looked at last.

        Raises:
            django.db.Error: The database cannot be read.

        Spec: Ruling E1; EMIT 2.4.2.
        """
        if self.record is None:
            return []
        prompts = await run_in_database(
            self._services.book.open_prompts, self._row.pk, utc_now()
        )
        return [prompt for prompt in prompts if prompt.seq <= newest]

    # Who runs it.

    async def take_over(self) -> None:
        """Become the owner if there is none that lives, and do what is left to do.

        Spec: Ruling E14.
        """
        await self._services.membership.join()
        me = self._services.membership.candidate
        if me is None or self.record is None:
            return
        with self.in_use():
            async with self._lock:
                hold = await self._services.writes.run(
                    self.record.pk, take_session, self.record.pk, me, utc_now()
                )
                if hold is not None:
                    (await self._runtime_of(hold)).take_up([])

    async def _runtime_of(
        self, hold: Hold, *, accepted_no: float = inf
    ) -> SessionRuntime:
        """Return what runs the session under a hold, made now if need be.

        Args:
            accepted_no: Of the turn that was accepted just now; turns before it were
                left by another owner.
        """
        runtime = self._runtime
        if runtime is not None and hold.fence == runtime.fence:
            return runtime
        if runtime is not None and hold.is_new and hold.fence == runtime.fence + 1:
            runtime.hold_again(hold.fence)
            return runtime
        # Others may have written since, or left something to do.
        history = await run_in_database(read_history, self._row.pk, turns=HISTORY_TURNS)
        news = await run_in_database(read_news, self._row.pk)
        if history.newest_seq > self.tail.newest_seq:
            self.audience.skip_to(history.newest_seq)
        known = await run_in_database(self._services.shelf.known, self._row.pk)
        runtime = self._start_runtime(hold, history, known)
        were_shown = any(turn.turn_no < accepted_no for turn in news.turns)
        runtime.take_up(news.turns, were_shown=were_shown)
        return runtime

    def _start_runtime(
        self,
        hold: Hold,
        history: SessionHistory,
        known: Sequence[tuple[str, str]] = (),
    ) -> SessionRuntime:
        self._let_go()
        runtime = SessionRuntime(
            self._row,
            self,
            fence=hold.fence,
            history=history,
            settings=self._services.settings,
            committer=self._services.committer,
            book=self._services.book,
            artifacts=SessionArtifacts(
                self._row.pk,
                fence=lambda: runtime.fence,
                shelf=self._services.shelf,
                writes=self._services.writes,
                known=known,
            ),
            writes=self._services.writes,
        )
        self._runtime = runtime
        return runtime

    @property
    def fence(self) -> int | None:
        """Of the hold under which turns run or wait here; None when none do."""
        runtime = self._runtime
        return runtime.fence if runtime is not None and self.is_working else None

    async def owner_replaced(self, fence: int) -> None:
        """Stop what runs here under a hold that others have taken over.

        Raises:
            django.db.Error: The database cannot be read.

        Spec: Ruling E14.
        """
        if self.fence == fence:
            logger.warning("session %s was taken by another worker", self.session_id)
            self._let_go()
            await self.look_at_log()

    def end(self) -> None:
        """Stop what runs here, and tell those who follow: the session is deleted."""
        self.is_gone = True
        self._let_go()
        self.audience.tell_deleted()

    def _let_go(self) -> None:
        runtime = self._runtime
        if runtime is not None and not runtime.is_idle:
            self._replaced.add(runtime)
            runtime.replace()
        self._runtime = None

    async def look_for_work(self) -> None:
        """Act on what was stored for the owner, if that is this process.

        Raises:
            django.db.Error: The database cannot be read.
        """
        if self.is_working:
            self.look_for_settlements()
            self.note(await run_in_database(read_news, self._row.pk))

    def look_for_settlements(self) -> None:
        """Go on with answers, if this process is the owner."""
        if self._runtime is not None and self.is_working:
            self._runtime.look_for_settlements()

    def note(self, news: SessionNews) -> None:
        """Act on what was stored for the owner, if that is this process."""
        if self._runtime is not None and self.is_working:
            self._runtime.note(news)

    async def stop(self, *, grace_s: float) -> None:
        """End what runs here within its grace. Spec: design.md 1."""
        runtimes = self._replaced | ({self._runtime} if self._runtime else set())
        await asyncio.gather(*(each.stop(grace_s=grace_s) for each in runtimes))

    # What its runtime says.

    def committed(self, frames: Sequence[bytes]) -> None:
        """See `RuntimeOwner.committed`."""
        self.audience.extend(frames)
        self._services.doorbell.ring(self._row.pk, self.tail.newest_seq)

    def trouble(self, error: ErrorInfo) -> None:
        """See `RuntimeOwner.trouble`."""
        self.audience.report_trouble(error)

    async def lost(self, runtime: SessionRuntime) -> None:
        """See `RuntimeOwner.lost`; the followers go on with what the next one wrote."""
        self._replaced.discard(runtime)
        if self._runtime is runtime:
            self._runtime = None
        await look_once(self.look_at_log(), what="frames of another worker")

    async def give_back(self, fence: int) -> list[TurnRecord] | None:
        """See `RuntimeOwner.give_back`."""
        return await self._services.writes.run(
            self._row.pk,
            give_back_session,
            self._row.pk,
            fence=fence,
            has_more=self._services.book.has_settlements,
        )

    async def abandon(self, fence: int) -> None:
        """See `RuntimeOwner.abandon`; without a database, the lease does it."""
        try:
            await self._services.writes.run(
                self._row.pk, abandon_session, self._row.pk, fence=fence
            )
        except DatabaseError as error:
            logger.warning("session %s was not given back: %s", self.session_id, error)

    # What another process wrote.

    async def look_at_log(self, newest: int | None = None) -> None:
        """Show the followers what another worker wrote.

        Args:
            newest: Seq that the log reaches, if that is known.

        Raises:
            django.db.Error: The database cannot be read.

        Spec: Ruling E26; design.md 1.
        """
        # Rings may come faster than a page is read; one look then sees it all.
        async with self._looks:
            if self.record is not None and not self.is_working:
                await self.audience.catch_up(
                    self.record.pk, newest, is_served=lambda: self.is_working
                )
