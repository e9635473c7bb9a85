"""The group-committing writer, with a store in memory."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio

from cards.log import committer as committer_module
from cards.log.committer import Committer
from cards.log.store import Entry, EntryRefused, StoreUnavailable
from cards.log.writer import LogWriteFailed, SessionWriter
from tests.fakes import FakeStore


class Session:
    """A writer and what it was told."""

    def __init__(self, pk: int, committer: Committer) -> None:
        self.frames: list[bytes] = []
        self.failures: list[Exception] = []
        self.writer = SessionWriter(
            session_pk=pk,
            fence=1,
            newest_seq=0,
            committer=committer,
            on_committed=self.frames.extend,
            on_failed=self.failures.append,
        )

    def emit(self, *frames: bytes) -> None:
        for frame in frames:
            self.writer.append(frame)


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest_asyncio.fixture
async def committer(store: FakeStore) -> AsyncIterator[Committer]:
    running = Committer(lambda: store, patience_s=0)
    yield running
    store.gate.set()
    await running.close()


class TestCommitter:
    async def test_tells_of_frames_only_when_they_are_stored(
        self, store: FakeStore, committer: Committer
    ) -> None:
        """Spec: Ruling E3."""
        store.gate.clear()
        session = Session(1, committer)
        session.emit(b"a", b"b")
        await asyncio.sleep(0)
        assert session.frames == []

        store.gate.set()
        await session.writer.flush()

        assert session.frames == [b"a", b"b"]
        assert [(e.seq, e.data) for e in store.entries] == [(1, b"a"), (2, b"b")]

    async def test_gathers_a_batch_while_one_is_in_flight(
        self, store: FakeStore, committer: Committer
    ) -> None:
        store.gate.clear()
        session = Session(1, committer)
        session.emit(b"first")
        await asyncio.sleep(0)
        for number in range(20):
            session.emit(b"%d" % number)
        store.gate.set()
        await session.writer.flush()

        assert store.batches == [1, 20]

    async def test_lets_emitters_wait_when_the_log_is_behind(
        self, store: FakeStore, committer: Committer
    ) -> None:
        store.gate.clear()
        session = Session(1, committer)
        session.emit(b"first")
        await asyncio.sleep(0)
        session.emit(*[b"x"] * committer_module.MAX_WAITING_EVENTS)
        waiting = asyncio.create_task(session.writer.breathe())
        await asyncio.sleep(0)
        assert not waiting.done()

        store.gate.set()
        await waiting

        await session.writer.flush()
        assert len(store.entries) == committer_module.MAX_WAITING_EVENTS + 1

    async def test_counts_bytes_as_well_as_events(
        self, store: FakeStore, committer: Committer
    ) -> None:
        store.gate.clear()
        session = Session(1, committer)
        session.emit(b"x" * committer_module.MAX_WAITING_BYTES)

        assert not committer.has_room

    async def test_fails_only_the_session_whose_entry_is_refused(
        self, store: FakeStore, committer: Committer
    ) -> None:
        """Case FR-65: one poisoned frame fails its own turn, not its neighbours'."""
        store.refused_sessions = {2}
        sessions = [Session(pk, committer) for pk in (1, 2, 3)]
        for session in sessions:
            session.emit(b"a", b"b")
        with pytest.raises(LogWriteFailed):
            await sessions[1].writer.flush()
        await sessions[0].writer.flush()
        await sessions[2].writer.flush()

        assert [each.frames for each in sessions] == [[b"a", b"b"], [], [b"a", b"b"]]
        assert isinstance(sessions[1].failures[0].__cause__, EntryRefused)

    async def test_leaves_no_hole_after_a_failure(
        self, store: FakeStore, committer: Committer
    ) -> None:
        """Spec: Ruling E2."""
        store.gate.clear()
        store.refused_sessions = {1}
        session = Session(1, committer)
        session.emit(b"refused")
        await asyncio.sleep(0)
        session.emit(b"behind it")
        store.gate.set()
        with pytest.raises(LogWriteFailed):
            await session.writer.flush()

        assert session.writer.next_seq == 1
        assert store.entries == []
        with pytest.raises(LogWriteFailed):
            session.emit(b"later")

    async def test_fails_every_session_when_the_store_stays_away(
        self, store: FakeStore, committer: Committer
    ) -> None:
        store.is_away = True
        sessions = [Session(pk, committer) for pk in (1, 2)]
        for session in sessions:
            session.emit(b"a")
        for session in sessions:
            with pytest.raises(LogWriteFailed):
                await session.writer.flush()

        assert isinstance(sessions[0].failures[0].__cause__, StoreUnavailable)

    async def test_works_again_when_the_store_is_back(
        self, store: FakeStore, committer: Committer
    ) -> None:
        store.is_away = True
        lost = Session(1, committer)
        lost.emit(b"a")
        with pytest.raises(LogWriteFailed):
            await lost.writer.flush()
        store.is_away = False
        session = Session(1, committer)
        session.emit(b"b")
        await session.writer.flush()

        assert [entry.data for entry in store.entries] == [b"b"]

    async def test_takes_what_was_stored_for_stored_although_no_answer_came(
        self, store: FakeStore
    ) -> None:
        """A connection that is lost behind the commit costs no turn."""
        patient = Committer(lambda: store, patience_s=30)
        sessions = [Session(pk, patient) for pk in (1, 2)]
        store.loses_answers = True
        for session in sessions:
            session.emit(b"a", b"b")
        for session in sessions:
            await session.writer.flush()
        sessions[0].emit(b"c")
        await sessions[0].writer.flush()
        await patient.close()

        assert [session.failures for session in sessions] == [[], []]
        assert [session.frames for session in sessions] == [
            [b"a", b"b", b"c"],
            [b"a", b"b"],
        ]
        assert len(store.entries) == 5

    async def test_tries_again_while_it_has_patience(self, store: FakeStore) -> None:
        patient = Committer(lambda: store, patience_s=30)
        session = Session(1, patient)
        store.is_away = True
        session.emit(b"a")
        await asyncio.to_thread(store.attempted.wait)
        store.is_away = False
        await session.writer.flush()
        await patient.close()

        assert session.frames == [b"a"]
        assert session.failures == []

    async def test_fails_a_batch_that_raises_something_unexpected(self) -> None:
        class Broken(FakeStore):
            def write(self, entries: Sequence[Entry]) -> None:
                raise MemoryError("no more")

        broken = Committer(Broken, patience_s=0)
        session = Session(1, broken)
        session.emit(b"a")
        with pytest.raises(LogWriteFailed):
            await session.writer.flush()
        await broken.close()

        assert isinstance(session.failures[0].__cause__, MemoryError)


class TestSessionWriter:
    async def test_flushes_at_once_when_nothing_waits(
        self, committer: Committer
    ) -> None:
        await Session(1, committer).writer.flush()

    async def test_gives_the_loop_a_turn_now_and_then(
        self, committer: Committer
    ) -> None:
        writer = Session(1, committer).writer
        others_ran = 0

        async def other() -> None:
            nonlocal others_ran
            while True:
                others_ran += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        for _ in range(writer.FRAMES_PER_TURN_OF_LOOP * 3):
            await writer.breathe()
        task.cancel()

        assert others_ran >= 3
