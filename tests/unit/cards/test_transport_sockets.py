"""All open sockets of the process."""

import asyncio

import pytest

from cards.transport import sockets as sockets_module
from cards.transport.sockets import Sockets
from cards.transport.stalls import Progress


class FakeSocket:
    """A socket that does what a test says; closing it removes it from `home`."""

    def __init__(self, home: Sockets | None = None) -> None:
        self.home = home
        self.progress = Progress(since=0)
        self.unsent_bytes = 0
        self.closed_with: list[int] = []
        self.let_go = asyncio.Event()
        self.is_cut = False

    def close(self, code: int) -> None:
        self.closed_with.append(code)
        if self.home is not None:
            asyncio.get_running_loop().call_soon(self.home.remove, self)

    def close_stalled(self) -> None:
        self.let_go.set()

    def cut(self) -> None:
        self.is_cut = True


class BrokenSocket(FakeSocket):
    """A socket that cannot be looked at, as a bug would have it."""

    @property
    def unsent_bytes(self) -> int:
        raise TypeError("broken")

    @unsent_bytes.setter
    def unsent_bytes(self, _value: int) -> None:
        """Nothing to keep."""


@pytest.fixture
def sockets() -> Sockets:
    """Without a timer of their own: the tests look."""
    return Sockets()


class TestStalledSockets:
    """Issue "Liveness and ownership" 10."""

    def test_are_let_go(self, sockets: Sockets) -> None:
        stalled, idle = FakeSocket(), FakeSocket()
        for socket in (stalled, idle):
            sockets.add(socket)
        sockets.stalled_after_s = 30
        stalled.unsent_bytes = 18

        sockets.close_stalled(now=10)
        sockets.close_stalled(now=39)
        assert not stalled.let_go.is_set()
        sockets.close_stalled(now=40)

        assert stalled.let_go.is_set()
        assert not idle.let_go.is_set()

    def test_are_not_those_that_read_slowly(self, sockets: Sockets) -> None:
        """One byte within the time is enough, however long it takes altogether."""
        slow = FakeSocket()
        sockets.add(slow)
        sockets.stalled_after_s = 30
        slow.progress.written_bytes = 1000

        for look in range(1000):
            slow.unsent_bytes = 1000 - look
            sockets.close_stalled(now=29 * look)

        assert not slow.let_go.is_set()

    async def test_are_looked_for_on_and_on(self, sockets: Sockets) -> None:
        """One timer for all, and a look that fails is not the last one."""
        failed = asyncio.Event()
        asyncio.get_running_loop().set_exception_handler(lambda *_: failed.set())
        sockets.stalled_after_s = 0.04
        broken, stalled = BrokenSocket(), FakeSocket()
        stalled.unsent_bytes = 1
        sockets.add(broken)
        await failed.wait()
        sockets.remove(broken)
        sockets.add(stalled)

        await stalled.let_go.wait()

        assert stalled.closed_with == []


class TestCloseAll:
    """Issue "Liveness and ownership" 7."""

    async def test_waits_for_those_that_take_it(self, sockets: Sockets) -> None:
        taking = [FakeSocket(sockets) for _ in range(3)]
        for socket in taking:
            sockets.add(socket)

        await sockets.close_all(1001)

        assert [socket.closed_with for socket in taking] == [[1001]] * 3
        assert not any(socket.is_cut for socket in taking)

    async def test_cuts_those_that_do_not(
        self, sockets: Sockets, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sockets_module, "CLOSE_GRACE_S", 0)
        deaf, taking = FakeSocket(), FakeSocket(sockets)
        for socket in (deaf, taking):
            sockets.add(socket)

        await sockets.close_all(1001)

        assert deaf.closed_with == [1001]
        assert deaf.is_cut

    async def test_reaches_one_that_opens_meanwhile(self, sockets: Sockets) -> None:
        await sockets.close_all(1001)
        late = FakeSocket(sockets)

        sockets.add(late)

        assert late.closed_with == [1001]
