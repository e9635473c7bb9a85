"""Where a session's prompts are asked, waited for and settled.

The desk belongs to the session's owner. What it does to a wait's row goes in one
transaction with the frame that tells of it, so a crash between two steps leaves a
state from which the next owner goes on:

| a crash after | leaves | then |
|---|---|---|
| the row is stored | a wait that nobody saw | it is swept |
| the prompt is logged | an open wait | it is shown again and may be answered |
| an answer is claimed | a settled wait | the next owner continues with it, once |
| the continuation is stored | a queued turn, a settled wait | reply, then the turn |
| the reply is logged | nothing, or the queued turn | the turn is run |

Whoever waits gets the answer only once the reply is durable: a worker that was
replaced meanwhile cannot act on it.

Spec: design.md 5; Rulings E10, E13, E15, E17, E24.
"""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Protocol

import msgspec
from django.db import Error as DatabaseError

from cards.builder import Builder
from cards.clock import utc_now, utc_of
from cards.database import WriteBatches, run_in_database
from cards.engine.asking import PromptUnavailable
from cards.engine.desk import ClientCall, Prompt
from cards.live.new_turns import turn_of_answer
from cards.log.store import RowChange
from cards.log.writer import LogWriteFailed
from cards.operations import continue_session
from cards.ports import NewWait, PromptBook, Settlement
from cards.protocol.card_tree import Card
from cards.protocol.ids import MAIN_AGENT
from cards.protocol.kinds import CardKind, PromptKind
from cards.protocol.payloads import PromptReplyPayload, PromptUserPayload
from cards.protocol.prompts import mint_request_id
from cards.protocol.snapshot import decode_stored
from cards.queries import TurnRecord

logger = logging.getLogger(__name__)

#: The kind of a wait for a client's tool, beside the prompt kinds.
CLIENT_TOOL = "client_tool"

#: Seconds until a wait whose end could not be stored is looked at again.
RETRY_S = 1.0


#: `prompt.reply` has another word for one of the user's. Spec: Ruling E15.
_REPLY_OF_DECISION = {"cancel": "cancelled"}


@dataclass(slots=True, kw_only=True)
class _Waiter:
    """Somebody in the running turn who waits.

    Attributes:
        request_id: Another one when it is asked again.
        anchor: The card that cannot expire meanwhile.
        done: Given the settlement once that is durable.
    """

    request_id: str
    kind: str
    anchor: Card
    done: "asyncio.Future[Settlement]"
    timer: asyncio.TimerHandle | None = None


class DeskOwner(Protocol):
    """What a desk needs of the runtime that it belongs to."""

    @property
    def builder(self) -> Builder:
        """Makes the frames; another one after the log was away."""

    @property
    def asking_turn(self) -> tuple[int, Card] | None:
        """Key and card of the running turn; None when none runs or its card closed."""

    def look_for_silent_cards(self) -> None:
        """Have the watchdog look. Spec: Ruling E13."""

    def take_up(self, records: list[TurnRecord]) -> None:
        """Run these turns."""


class PromptDesk:
    """The prompts of one session in this process.

    Args:
        session_pk: The session.
        book: Keeps the rows.
    """

    def __init__(
        self,
        session_pk: int,
        owner: DeskOwner,
        *,
        book: PromptBook,
        writes: WriteBatches,
    ) -> None:
        self._session_pk = session_pk
        self._owner = owner
        self._book = book
        self._writes = writes
        self._waiters: dict[str, _Waiter] = {}
        # Settled here; their rows may stand until the log is written.
        self._settled: set[str] = set()
        self._looks = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closing = False
        self._has_asked = asyncio.Event()

    @property
    def waiting_at(self) -> frozenset[str]:
        """Ids of the cards under which somebody waits. Spec: Ruling E13."""
        return frozenset(each.anchor.card_id for each in self._waiters.values())

    async def until_asked(self) -> None:
        """Return once somebody waits for the user."""
        await self._has_asked.wait()

    # Asking.

    async def ask(self, prompt: Prompt) -> Settlement:
        """See `Desk.ask`. Spec: Ruling E15."""
        request_id = mint_request_id(self._builder.random_hex)
        await self._open(request_id, prompt.kind, prompt.timeout_ms)
        self._check_turn()
        waiter = self._enter(request_id, prompt.kind, prompt.anchor, prompt.timeout_ms)
        try:
            self._show(
                PromptUserPayload(
                    request_id=request_id,
                    kind=prompt.kind,
                    inner=msgspec.to_builtins(prompt.inner),
                    timeout_ms=prompt.timeout_ms,
                ),
                agent_id=prompt.agent_id,
                agent_run_id=prompt.agent_run_id,
            )
            return await waiter.done
        finally:
            self._withdraw(waiter.request_id)

    async def call(self, tool: ClientCall, *, timeout_ms: int) -> None:
        """See `Desk.call`. Spec: Ruling E24."""
        card_id = self._builder.free_card_id(CardKind.TOOL, None)
        await self._open(card_id, CLIENT_TOOL, timeout_ms)
        self._check_turn()
        tool.reserve(
            card_id,
            shown=self._book.wait_shown(
                card_id, frame=b"", seq=self._builder.writer.next_seq
            ),
            removed=self._removed(card_id, "called"),
        )
        async with tool:
            waiter = self._enter(card_id, CLIENT_TOOL, tool.card, timeout_ms)
            try:
                tool.settle(await waiter.done)
            finally:
                self._leave(card_id)
        # As with a reply: a worker that was replaced does not act on it.
        await self._builder.writer.flush()

    def permission_key(self, tool_name: str, tool_input: object) -> str:
        """See `Desk.permission_key`."""
        return self._book.permission_key(tool_name, tool_input)

    async def is_granted(self, permission_key: str) -> bool:
        """See `Desk.is_granted`."""
        return await run_in_database(
            self._book.is_granted, self._session_pk, permission_key
        )

    @property
    def _builder(self) -> Builder:
        return self._owner.builder

    def _check_turn(self) -> None:
        # Whoever asks on after the end of its turn would wait for ever.
        if self._owner.asking_turn is None or self._builder.writer.failure is not None:
            raise PromptUnavailable("the turn has ended")

    async def _open(self, request_id: str, kind: str, timeout_ms: int) -> None:
        self._check_turn()
        turn = self._owner.asking_turn
        wait = NewWait(
            request_id=request_id,
            session_pk=self._session_pk,
            turn_pk=turn[0] if turn else 0,
            kind=kind,
            created_at=utc_of(self._builder.now_ms()),
            timeout_ms=timeout_ms,
        )
        try:
            await self._writes.run(self._session_pk, self._book.open_wait, wait)
        except DatabaseError as error:
            logger.warning("a prompt was not stored: %s", error)
            raise PromptUnavailable from error

    def _enter(
        self, request_id: str, kind: str, anchor: Card, timeout_ms: int
    ) -> _Waiter:
        loop = asyncio.get_running_loop()
        waiter = _Waiter(
            request_id=request_id,
            kind=kind,
            anchor=anchor,
            done=loop.create_future(),
        )
        self._waiters[request_id] = waiter
        self._note_who_waits()
        if timeout_ms:
            waiter.timer = loop.call_later(
                timeout_ms / 1000, self._begin_lapse, request_id
            )
        return waiter

    def _leave(self, request_id: str) -> _Waiter | None:
        """Let nobody wait for this any more; its cards start a fresh window."""
        waiter = self._waiters.get(request_id)
        if waiter is None:
            return None
        self._owner.look_for_silent_cards()
        del self._waiters[request_id]
        self._note_who_waits()
        if waiter.timer is not None:
            waiter.timer.cancel()
        self._owner.look_for_silent_cards()
        return waiter

    def _note_who_waits(self) -> None:
        if any(each.kind != CLIENT_TOOL for each in self._waiters.values()):
            self._has_asked.set()
        else:
            self._has_asked.clear()

    def _show(
        self, payload: PromptUserPayload, *, agent_id: str, agent_run_id: str | None
    ) -> None:
        self._builder.prompt_user(
            payload,
            agent_id=agent_id,
            agent_run_id=agent_run_id,
            change_of=lambda frame, seq: self._book.wait_shown(
                payload.request_id, frame=frame, seq=seq
            ),
        )

    # Withdrawing.

    def _withdraw(self, request_id: str) -> None:
        """Say that nobody waits any more, unless the prompt was settled.

        Spec: Ruling E10.
        """
        waiter = self._leave(request_id)
        is_lost = self._builder.writer.failure is not None
        # What a stopping server or a lost log leaves stays answerable.
        if waiter is None or self._is_closing or is_lost:
            return
        # Else its reply is on the way to the log.
        if request_id not in self._settled:
            self._reply(_reply_of(request_id, "cancelled"))

    def close_open(self) -> None:
        """Withdraw everything that the ending turn still waits for. Spec: Ruling E10.

        A client's tool is withdrawn by the close of its card.
        """
        for request_id, waiter in tuple(self._waiters.items()):
            waiter.done.cancel()
            if waiter.kind != CLIENT_TOOL:
                self._withdraw(request_id)

    async def forget_turn(self) -> None:
        """Forget what was settled in a turn whose end is stored."""
        async with self._looks:
            self._settled.clear()

    def begin_to_close(self) -> None:
        """Leave what is open from now on to the next owner: this server stops."""
        self._is_closing = True

    def begin_anew(self) -> None:
        """Forget what was done in frames that the log has lost."""
        self._waiters.clear()
        self._settled.clear()
        self._note_who_waits()

    # Settling.

    def begin_to_look(self) -> None:
        """Go on with what was settled, in the background."""
        self._begin(self._look_and_take_up())

    async def _look_and_take_up(self) -> None:
        self._owner.take_up(await self.look())

    async def look(self) -> list[TurnRecord]:
        """Go on with what was settled, wherever that was.

        Returns:
            Turns that go on with answers for which nobody waits any more.

        Raises:
            django.db.Error: The database is away.
            LogWriteFailed: The log cannot be written.

        Spec: Ruling E15.
        """
        records: list[TurnRecord] = []
        async with self._looks:
            settlements = await run_in_database(
                self._book.settlements, [self._session_pk]
            )
            for settlement in settlements:
                try:
                    record = await self._go_on_with(settlement)
                except (DatabaseError, LogWriteFailed):
                    raise
                except Exception as error:  # noqa: BLE001 - logged, and given on
                    await self._give_up(settlement, error)
                    continue
                if record is not None:
                    records.append(record)
            if settlements:
                await self._builder.writer.flush()
        return records

    async def _go_on_with(self, settlement: Settlement) -> TurnRecord | None:
        request_id = settlement.request_id
        waiter = self._waiters.get(request_id)
        turn = self._owner.asking_turn
        is_of_running_turn = turn is not None and turn[0] == settlement.turn_pk
        if request_id in self._settled:
            return None
        if settlement.rejection and (waiter is not None or not is_of_running_turn):
            await self._ask_again(settlement, waiter)
        elif waiter is not None:
            await self._deliver(settlement, waiter)
        elif not is_of_running_turn:
            # Else it is just being withdrawn.
            return await self._continue_with(settlement)
        return None

    async def _give_up(self, settlement: Settlement, error: Exception) -> None:
        """End a wait whose answer cannot be used: better than to look for ever.

        Whoever waits gets the error.
        """
        request_id = settlement.request_id
        logger.error(
            "nobody can go on with the answer to %s", request_id, exc_info=error
        )
        waiter = self._leave(request_id)
        if waiter is not None and not waiter.done.done():
            waiter.done.set_exception(error)
        if settlement.kind != CLIENT_TOOL and request_id not in self._settled:
            self._reply(_reply_of(request_id, "cancelled"))
        elif waiter is None:
            await self._writes.run(
                self._session_pk, self._book.wait_dropped, request_id
            )

    async def _deliver(self, settlement: Settlement, waiter: _Waiter) -> None:
        if waiter.kind == CLIENT_TOOL:
            # The close of its card is the reply.
            self._settled.add(settlement.request_id)
        else:
            self._reply(_reply_to(settlement))
            await self._builder.writer.flush()
            self._leave(settlement.request_id)
        if not waiter.done.done():
            waiter.done.set_result(settlement)

    def _reply(self, reply: PromptReplyPayload) -> None:
        self._settled.add(reply.request_id)
        self._builder.prompt_reply(
            reply, changes=self._removed(reply.request_id, reply.decision)
        )

    def _removed(self, request_id: str, decision: str) -> tuple[RowChange, ...]:
        return self._book.wait_removed(
            self._session_pk, request_id, decision, utc_of(self._builder.now_ms())
        )

    async def _continue_with(self, settlement: Settlement) -> TurnRecord | None:
        request_id = settlement.request_id
        if settlement.kind == CLIENT_TOOL:
            # Its card was closed with its turn.
            await self._writes.run(
                self._session_pk, self._book.wait_dropped, request_id
            )
            return None
        # Before the turn is stored: what cannot be told is not gone on with.
        reply = _reply_to(settlement)
        text = self._words_of(settlement)
        record: TurnRecord | None = None
        if text is not None:
            record = await self._writes.run(
                self._session_pk,
                continue_session,
                session_pk=self._session_pk,
                is_due=lambda: self._book.is_settled(request_id),
                asking_turn_pk=settlement.turn_pk,
                turn=turn_of_answer(
                    settlement,
                    text=text,
                    prompt=self._book.prompt_of(settlement),
                    random_hex=self._builder.random_hex,
                    now=utc_now(),
                ),
            )
            if record is None:
                return None
        self._reply(reply)
        return record

    def _words_of(self, settlement: Settlement) -> str | None:
        try:
            return self._book.continuation_text(settlement)
        except (msgspec.MsgspecError, LookupError, TypeError, ValueError):
            # Better answered for nothing than asked for ever.
            logger.exception("no turn can go on with %s", settlement.request_id)
            return None

    async def _ask_again(self, settlement: Settlement, waiter: _Waiter | None) -> None:
        """Ask anew what got an answer that cannot be carried out. Spec: Ruling E19."""
        old = decode_stored(settlement.frame)
        inner = self._book.prompt_of(settlement)
        request_id = mint_request_id(self._builder.random_hex)
        wait = NewWait(
            request_id=request_id,
            session_pk=self._session_pk,
            turn_pk=settlement.turn_pk,
            kind=settlement.kind,
            created_at=utc_of(self._builder.now_ms()),
            timeout_ms=0,
        )
        await self._writes.run(self._session_pk, self._book.open_wait, wait)
        if waiter is not None:
            if self._waiters.pop(settlement.request_id, None) is None:
                # Withdrawn meanwhile; the new wait was seen by nobody.
                return
            self._waiters[request_id] = waiter
            waiter.request_id = request_id
        self._show(
            PromptUserPayload(
                request_id=request_id,
                kind=PromptKind(settlement.kind),
                inner=inner | {"rejection_reason": settlement.rejection},
                timeout_ms=0,
            ),
            agent_id=old.envelope.agent_id or MAIN_AGENT,
            agent_run_id=old.envelope.agent_run_id or None,
        )
        self._reply(_reply_of(settlement.request_id, "denied", settlement.rejection))

    # Time.

    def _begin_lapse(self, request_id: str) -> None:
        self._begin(self._lapse(request_id))

    async def _lapse(self, request_id: str) -> None:
        # The clocks of two threads may differ by less than the wire can tell.
        while request_id in self._waiters:
            try:
                await self._writes.run(
                    self._session_pk, self._book.lapse, request_id, utc_now()
                )
                await self._look_and_take_up()
            except DatabaseError as error:
                logger.warning("a prompt's end waits for the database: %s", error)
            if request_id in self._waiters:
                await asyncio.sleep(RETRY_S)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(self._run(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # Cancelled before it began, it would be missed as never awaited.
        task.add_done_callback(lambda _: work.close())

    @staticmethod
    async def _run(work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except (DatabaseError, LogWriteFailed) as error:
            # Rows stand: the runtime looks again before it gives the session back.
            logger.warning("settled prompts wait: %s", error)
        except Exception:
            logger.exception("a look at settled prompts broke down")

    async def close(self) -> None:
        """End what is still done in the background."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _reply_to(settlement: Settlement) -> PromptReplyPayload:
    decision = settlement.decision
    return _reply_of(
        settlement.request_id,
        _REPLY_OF_DECISION.get(decision, decision),
        settlement.reason,
    )


def _reply_of(request_id: str, decision: str, reason: str = "") -> PromptReplyPayload:
    return msgspec.convert(
        {"request_id": request_id, "decision": decision}
        | ({"reason": reason} if reason else {}),
        PromptReplyPayload,
    )
