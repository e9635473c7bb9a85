"""The sessions that this process has live, each once, and its rounds.

Spec: Rulings E1, E14, E26, E27; design.md 1, 4.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from django.db import Error as DatabaseError

from cards.clock import Entropy, utc_now
from cards.database import WriteBatches, run_in_database
from cards.deletion import deleted_among
from cards.live.membership import Membership
from cards.live.runtime_settings import RuntimeSettings
from cards.live.services import SessionServices
from cards.live.session import LiveSession
from cards.live.user_files import UserFiles
from cards.local_paths import LocalPaths
from cards.log.committer import Committer
from cards.log.doorbell import Doorbell
from cards.operations import SessionTaken
from cards.ownership import (
    forget_workers,
    gone_workers,
    owners_replaced,
    sessions_owned_by,
    unowned_with_work,
)
from cards.ports import ArtifactShelf, PromptBook
from cards.principals import Principal
from cards.protocol.ids import mint_session_id
from cards.queries import (
    SessionRecord,
    find_session,
    find_session_by_pk,
    find_session_of_trace,
    newest_seq,
    newest_seqs,
    sessions_at_work,
    sessions_with_news,
)
from cards.rounds import look_again_and_again, look_once

logger = logging.getLogger(__name__)

#: Seconds between two rounds: how late a lost ring is found out.
ROUND_S = 1.0

#: How far behind the last round one looks; clocks of workers differ less.
RECENT = timedelta(seconds=10)

#: How often within a lease it is renewed, and the lost are looked for.
RENEWALS_PER_LEASE = 3

#: What the rounds look at, in the server's log.
LOOKED_AT = "sessions and leases"

#: Most sessions that one round takes over.
MAX_TAKEN_PER_ROUND = 100

#: Most prompts that lapse in one transaction.
MAX_LAPSED = 500


class Hub:
    """Finds, makes and lets go of live sessions; one per process.

    Args:
        committer: Writes the log for all of them.
        settings: For their runtimes.
        queue_limit: Messages that may wait in one session. Spec: Ruling E9.
        session_limit: Sessions that one principal may own; 0 for any number.
        lock_dir: Where the workers of this machine keep their lock files.
        lease_s: Seconds without a sign of life after which a worker is lost.
        book: Keeps the prompts.
        shelf: Keeps the files.
        local_paths: Where messages may name files of the server.
        sweep_interval_s: Seconds between two looks for prompts that are older than
            they may get; 0 for none.
        layer: Channel layer to the other workers; None when there are none.
    """

    def __init__(
        self,
        *,
        committer: Committer,
        settings: RuntimeSettings,
        queue_limit: int,
        session_limit: int,
        lock_dir: Path,
        lease_s: float,
        book: PromptBook,
        shelf: ArtifactShelf,
        local_paths: LocalPaths,
        sweep_interval_s: float = 0,
        layer: object = None,
    ) -> None:
        self.entropy = Entropy()
        writes = WriteBatches()
        self._membership = Membership(
            writes, lock_dir=lock_dir, lease_s=lease_s, entropy=self.entropy
        )
        self._doorbell = Doorbell(layer, self._membership.me.worker_id)
        self._services = SessionServices(
            committer=committer,
            writes=writes,
            settings=settings,
            entropy=self.entropy,
            membership=self._membership,
            doorbell=self._doorbell,
            book=book,
            shelf=shelf,
            user_files=UserFiles(shelf, local_paths),
            queue_limit=queue_limit,
            session_limit=session_limit,
        )
        self._lease_s = lease_s
        self._sweep_interval_s = sweep_interval_s
        # A session without a row belongs to nobody yet: two principals who name the
        # same new id each have their own, until one of them makes the row.
        self._sessions: dict[tuple[Principal, str], LiveSession] = {}
        self._stored: dict[int, LiveSession] = {}
        self._awaited: set[LiveSession] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._looks: set[asyncio.Task[None]] = set()
        self._looking: set[LiveSession] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._resent: dict[str, datetime] = {}
        self._looked_at = utc_now()

    @property
    def model(self) -> str:
        """Name of the engine's model; "" for none."""
        return self._services.settings.engine.model

    @property
    def queue_limit(self) -> int:
        """Messages that may wait in one session. Spec: Ruling E9."""
        return self._services.queue_limit

    @property
    def session_limit(self) -> int:
        """Sessions that one principal may own; 0 for any number."""
        return self._services.session_limit

    @property
    def is_stopping(self) -> bool:
        """Whether this worker begins nothing new any more."""
        return self._membership.candidate is None

    # Its sessions.

    async def attach(self, session_id: str | None, principal: Principal) -> LiveSession:
        """Return a session of the principal, with or without a row yet.

        Args:
            session_id: None mints one.

        Raises:
            SessionTaken: Somebody else owns a session of that id.

        Spec: Rulings E1, E14, E27.
        """
        if session_id is None:
            return self._enter(mint_session_id(self.entropy.hex), principal, None, 0)
        live = await self._attach_named(session_id, principal)
        if live.record is None:
            # Its client knows the id from somewhere; others may know it too.
            self._awaited.add(live)
        return live

    async def _attach_named(self, session_id: str, principal: Principal) -> LiveSession:
        live = self._sessions.get((principal, session_id))
        if live is not None:
            with live.in_use():
                await look_once(live.look_at_log(), what=LOOKED_AT)
            return live
        record = await run_in_database(find_session, session_id)
        if record is not None and record.principal != principal:
            raise SessionTaken(session_id)
        newest = await run_in_database(newest_seq, record.pk) if record else 0
        # Another connection may have been faster while the database was asked.
        live = self._sessions.get((principal, session_id))
        live = live or self._enter(session_id, principal, record, newest)
        if record is not None and record.owner:
            # Perhaps nobody runs it any more; whoever is here must not wait for that.
            self._in_background(self._take_over(live))
        return live

    async def attach_to_trace(
        self, trace_id: str, principal: Principal
    ) -> LiveSession | None:
        """Return the principal's session of that trace; None if there is none."""
        session_id = await run_in_database(find_session_of_trace, trace_id, principal)
        return None if session_id is None else await self.attach(session_id, principal)

    def _enter(
        self,
        session_id: str,
        principal: Principal,
        record: SessionRecord | None,
        newest: int,
    ) -> LiveSession:
        live = LiveSession(
            self._services,
            session_id=session_id,
            principal=principal,
            record=record,
            newest=newest,
            on_stored=self._stored.__setitem__,
        )
        self._sessions[principal, session_id] = live
        return live

    def release(self, live: LiveSession) -> None:
        """Let a session go once nobody follows it and nothing runs in it."""
        if not live.is_idle:
            return
        self._drop(live)

    def _drop(self, live: LiveSession) -> None:
        # Another one of the same name may have come after a deletion.
        if self._sessions.get((live.principal, live.session_id)) is live:
            del self._sessions[live.principal, live.session_id]
        self._awaited.discard(live)
        if live.record is not None:
            self._stored.pop(live.record.pk, None)

    def _sweep(self) -> None:
        # Sessions whose turn outlived their sockets are let go here.
        for live in tuple(self._sessions.values()):
            self.release(live)

    # Its rounds.

    def start(self) -> None:
        """Begin to make rounds and to hear the other workers; once."""
        if not self._tasks:
            self._loop = asyncio.get_running_loop()
            renewal_s = self._lease_s / RENEWALS_PER_LEASE
            self._tasks = [
                # Apart from the others, which may take their time.
                self._begin_rounds(self.renew, renewal_s),
                self._begin_rounds(self.find_the_lost, renewal_s),
                self._begin_rounds(self.look_around, ROUND_S),
                asyncio.create_task(self._doorbell.listen(self._rung)),
            ]
            if self._sweep_interval_s:
                self._tasks.append(
                    self._begin_rounds(self.sweep_waits, self._sweep_interval_s)
                )

    def _begin_rounds(
        self, look: Callable[[], Coroutine[None, None, None]], pause_s: float
    ) -> "asyncio.Task[None]":
        return asyncio.create_task(
            look_again_and_again(look, pause_s=pause_s, what=LOOKED_AT)
        )

    async def renew(self) -> None:
        """Say that this worker lives, and let go of what it has lost meanwhile.

        Raises:
            django.db.Error: The database is away.
            OSError: The lock file cannot be made.

        Spec: Ruling E14.
        """
        await self._membership.join()
        await self._membership.renew()
        await self._look_for_replaced()
        for session_pk in await run_in_database(deleted_among, list(self._stored)):
            self._end(session_pk)

    async def _look_for_replaced(self) -> None:
        """Stop what others took over while this process stood still for too long.

        The log refuses its frames anyway; its work and its clients cannot wait for
        the next one.
        """
        held = {
            pk: live.fence
            for pk, live in self._stored.items()
            if live.fence is not None
        }
        if not held:
            return
        replaced = await run_in_database(owners_replaced, self._membership.me, held)
        for pk in replaced:
            if pk in self._stored:
                await self._stored[pk].owner_replaced(held[pk])

    async def find_the_lost(self) -> None:
        """Take over what nobody runs any more.

        Raises:
            django.db.Error: The database is away.
            OSError: The lock file cannot be made.

        Spec: Ruling E14.
        """
        await self._membership.join()
        me = self._membership.me
        gone = await run_in_database(gone_workers, me, utc_now())
        lost = await run_in_database(
            sessions_owned_by, [*gone, me.worker_id], limit=MAX_TAKEN_PER_ROUND
        )
        lost += await run_in_database(unowned_with_work, limit=MAX_TAKEN_PER_ROUND)
        lost += await self._sessions_with_settlements()
        for session_pk in lost:
            live = self._stored.get(session_pk)
            if live is None or not live.is_working:
                await self._take_over_by_pk(session_pk)
        if gone:
            await self._services.writes.run(None, forget_workers, me, gone)

    async def _sessions_with_settlements(self) -> list[int]:
        book = self._services.book
        await self._services.writes.run(
            None, book.lapse_due, utc_now(), limit=MAX_TAKEN_PER_ROUND
        )
        return await run_in_database(
            book.sessions_with_settlements, limit=MAX_TAKEN_PER_ROUND
        )

    async def sweep_waits(self) -> None:
        """Settle the prompts that are older than they may get.

        The next looks for the lost go on with them.

        Raises:
            django.db.Error: The database is away.

        Spec: Ruling E17.
        """
        lapse, now = self._services.book.lapse_expired, utc_now()
        count = MAX_LAPSED
        while count == MAX_LAPSED:
            count = await self._services.writes.run(None, lapse, now, limit=MAX_LAPSED)

    async def _take_over_by_pk(self, session_pk: int) -> None:
        record = await run_in_database(find_session_by_pk, session_pk)
        if record is not None:
            live = await self.attach(record.session_id, record.principal)
            await live.take_over()

    async def _take_over(self, live: LiveSession) -> None:
        await live.take_over()
        await live.look_at_log()

    async def look_around(self) -> None:
        """Find out what a lost ring would have told.

        Raises:
            django.db.Error: The database is away.

        Spec: design.md 1.
        """
        self._sweep()
        working = {pk: live for pk, live in self._stored.items() if live.is_working}
        if working:
            for pk in await run_in_database(self._with_news, list(working)):
                await working[pk].look_for_work()
        self._awaited = {live for live in self._awaited if live.record is None}
        for live in tuple(self._awaited):
            await live.look_for_row()
        await self._resend()
        # This process or the database may have stood still since the last look.
        since, now = self._looked_at - RECENT, utc_now()
        written = await run_in_database(
            sessions_at_work, self._membership.me.worker_id, since=since
        )
        followed = [
            pk
            for pk in written
            if pk in self._stored and not self._stored[pk].is_working
        ]
        if followed:
            newest = await run_in_database(newest_seqs, followed)
            for pk, seq in newest.items():
                if pk in self._stored:
                    await self._stored[pk].look_at_log(seq)
        self._looked_at = now

    def _with_news(self, session_pks: list[int]) -> set[int]:
        settled = self._services.book.settlements(session_pks)
        return {
            *sessions_with_news(session_pks),
            *(settlement.session_pk for settlement in settled),
        }

    async def _resend(self) -> None:
        """Show again what an operator had sent again, once."""
        now = utc_now()
        prompts = await run_in_database(self._services.book.resent, now - RECENT, now)
        for prompt in prompts:
            live = self._stored.get(prompt.session_pk)
            if live is not None and self._resent.get(prompt.request_id) != (
                prompt.resent_at
            ):
                live.audience.resend(prompt)
        self._resent = {
            prompt.request_id: prompt.resent_at
            for prompt in prompts
            if prompt.resent_at is not None
        }

    def nudge(self, session_pk: int) -> None:
        """Say from any thread that something was stored for a session's owner."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._nudged, session_pk)

    def _nudged(self, session_pk: int) -> None:
        live = self._stored.get(session_pk)
        if live is not None and live.is_working:
            self._in_background(live.look_for_work())
        else:
            self._services.doorbell.call(session_pk)
            self._in_background(self._take_over_by_pk(session_pk))

    def forget(self, session_pk: int) -> None:
        """Say from any thread that a session is deleted."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._forgotten, session_pk)

    def _forgotten(self, session_pk: int) -> None:
        self._end(session_pk)
        self._services.doorbell.call(session_pk)

    def _end(self, session_pk: int) -> None:
        live = self._stored.get(session_pk)
        if live is not None:
            self._drop(live)
            live.end()

    def _rung(self, newest: dict[int, int], called: Sequence[int]) -> None:
        for pk, seq in newest.items():
            if pk in self._stored:
                self._in_background(self._stored[pk].look_at_log(seq))
        for pk in called:
            if pk in self._stored:
                self._in_background(self._heed_call(pk))

    async def _heed_call(self, session_pk: int) -> None:
        if session_pk in self._stored:
            await self._stored[session_pk].look_for_work()
        if await run_in_database(deleted_among, [session_pk]):
            self._end(session_pk)

    def look_at(self, live: LiveSession) -> None:
        """Have the followers of a session shown what other workers wrote of it."""
        # One at a time: a client may ping as often as it likes.
        if live.record is None or live.is_working or live in self._looking:
            return
        self._looking.add(live)
        self._in_background(live.look_at_log()).add_done_callback(
            lambda _: self._looking.discard(live)
        )

    def _in_background(self, look: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(look_once(look, what=LOOKED_AT))
        self._looks.add(task)
        task.add_done_callback(self._looks.discard)
        # Cancelled before it began, it would be missed as never awaited.
        task.add_done_callback(lambda _: look.close())
        return task

    # Its end.

    async def stop(self, *, grace_s: float) -> None:
        """Begin no turn any more, end what runs, and leave the other workers.

        Args:
            grace_s: Seconds that running turns have to end by themselves.

        Spec: design.md 1, crash-only: it is a courtesy, nothing depends on it.
        """
        self._membership.begin_to_leave()
        await asyncio.gather(
            *(live.stop(grace_s=grace_s) for live in tuple(self._sessions.values()))
        )
        for task in (*self._tasks, *self._looks):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._looks, return_exceptions=True)
        await self._doorbell.close()
        try:
            await self._membership.leave()
        except DatabaseError as error:
            logger.warning("the lease is left to expire: %s", error)
