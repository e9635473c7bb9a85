"""The transport on daphne's protocol, without daphne and without a network."""

import asyncio
import socket
from collections.abc import Callable, Iterator

import pytest
from daphne.ws_protocol import WebSocketFactory
from twisted.internet.testing import StringTransport

from cards.transport import Batch
from cards.transport import daphne as daphne_module
from cards.transport.daphne import (
    ANSWER_OVERHEAD_BYTES,
    MAX_UNREAD_ANSWER_BYTES,
    CardwireWebSocketProtocol,
    DaphneTransport,
    _start,
    _stop,
)
from cards.transport.sockets import CLOSE_GRACE_S, Sockets
from cards.transport.stalls import Progress

CLOSE_1013 = b"\x88\x02" + (1013).to_bytes(2, "big")

PONG = Batch([b'{"type":"pong"}'])


class FakeTcp(StringTransport):  # type: ignore[misc] # twisted is untyped
    """Twisted's end of a connection over a real pair of sockets.

    What is written is kept; what a test sends into `ours` is what the kernel has.
    """

    offset = 0
    _tempDataLen = 0  # noqa: N815 - twisted's name

    def __init__(self, ours: socket.socket) -> None:
        super().__init__()
        self.dataBuffer = b""
        self.fileno = ours.fileno
        self.is_cut = False

    def abortConnection(self) -> None:  # noqa: N802 - twisted's name
        self.is_cut = True


class FakeTimer:
    """Autobahn's timer, which a test lets ring."""

    def __init__(self) -> None:
        self.calls: list[FakeCall] = []

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> "FakeCall":
        self.calls.append(FakeCall(delay_s, callback))
        return self.calls[-1]


class FakeCall:
    """One call that waits for its time."""

    def __init__(self, delay_s: float, callback: Callable[[], None]) -> None:
        self.delay_s = delay_s
        self.ring = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Stage:
    """An open connection with everything around it that a test touches."""

    def __init__(self, ours: socket.socket, theirs: socket.socket) -> None:
        self.ours = ours
        self.theirs = theirs
        self.tcp = FakeTcp(ours)
        self.timer = FakeTimer()
        factory = WebSocketFactory(None, reactor=object())
        factory.setProtocolOptions(autoPingTimeout=30)
        factory._batched_timer = self.timer
        self.protocol = CardwireWebSocketProtocol()
        self.protocol.factory = factory
        self.protocol.makeConnection(self.tcp)
        self.protocol.closeHandshakeTimeout = CLOSE_GRACE_S
        # What a handshake leaves behind.
        self.protocol.websocket_version = 13
        self.protocol.current_frame = None
        self.protocol.inside_message = False
        self.protocol._perMessageCompress = None
        self.protocol.state = CardwireWebSocketProtocol.STATE_OPEN
        self.transport = DaphneTransport(self.protocol, now=0)
        self.protocol.cardwire_transport = self.transport
        self.tcp.registerProducer(self.transport, True)
        self.timer.calls.clear()

    @property
    def written(self) -> bytes:
        return bytes(self.tcp.value())

    def fall_behind(self, at: float) -> None:
        """Let a look at that time find something unsent."""
        self.transport.progress.look(1, now=at)


@pytest.fixture
def stage() -> Iterator[Stage]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Stage(ours, theirs)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Sockets:
    """Sockets that are looked at for stalls."""
    sockets = Sockets()
    sockets.stalled_after_s = 30
    monkeypatch.setattr(daphne_module, "sockets", sockets)
    return sockets


class TestUnsentBytes:
    """Issue "Liveness and ownership" 10: Twisted's own buffer and the kernel's."""

    def test_are_what_twisted_and_the_kernel_hold(self, stage: Stage) -> None:
        assert stage.transport.unsent_bytes == 0

        stage.ours.sendall(b"x" * 1000)
        in_kernel = stage.transport.unsent_bytes
        stage.tcp.dataBuffer, stage.tcp.offset = b"y" * 500, 200
        stage.tcp._tempDataLen = 7

        assert in_kernel >= 1000
        assert stage.transport.unsent_bytes == in_kernel + 307

    def test_shrink_as_the_client_reads(self, stage: Stage) -> None:
        stage.ours.sendall(b"x" * 1000)
        before = stage.transport.unsent_bytes

        stage.theirs.recv(1000)

        assert stage.transport.unsent_bytes == 0 < before

    def test_are_twisteds_where_the_kernel_does_not_tell(self, stage: Stage) -> None:
        with open("/dev/null", "rb") as no_socket:
            stage.tcp.fileno = no_socket.fileno
            stage.tcp.dataBuffer = b"y" * 500

            assert stage.transport.unsent_bytes == 500


class TestAnswers:
    """Issue "Liveness and ownership" 10: memory is bounded, whatever is asked."""

    def test_go_out_while_the_client_is_behind(self, stage: Stage) -> None:
        stage.transport.pauseProducing()

        stage.transport.write(PONG)

        assert stage.written == PONG.framed

    def test_are_bounded(self, stage: Stage) -> None:
        stage.transport.pauseProducing()
        room = MAX_UNREAD_ANSWER_BYTES // (len(PONG.framed) + ANSWER_OVERHEAD_BYTES)

        for _ in range(room + 1000):
            stage.transport.write(PONG)

        assert stage.written == PONG.framed * room + CLOSE_1013

    def test_of_the_websocket_layer_are_bounded_too(self, stage: Stage) -> None:
        """Autobahn's pongs pass by the transport."""
        stage.transport.pauseProducing()
        room = MAX_UNREAD_ANSWER_BYTES // ANSWER_OVERHEAD_BYTES

        for _ in range(room + 1000):
            stage.protocol.onPing(b"")

        assert stage.written == b"\x8a\x00" * room + CLOSE_1013

    def test_count_from_the_moment_of_falling_behind(self, stage: Stage) -> None:
        half = Batch([b"x" * (MAX_UNREAD_ANSWER_BYTES * 2 // 3)])
        for _ in range(3):
            stage.transport.pauseProducing()
            stage.transport.write(half)
            stage.transport.resumeProducing()

        assert stage.written == half.framed * 3


class TestLettingGo:
    """Issue "Liveness and ownership" 10; case FR-175."""

    def test_closes_with_try_again_later_and_cuts_after_the_grace(
        self, stage: Stage
    ) -> None:
        stage.transport.close_stalled()
        [cutting] = stage.timer.calls

        assert stage.written == CLOSE_1013
        assert cutting.delay_s == CLOSE_GRACE_S
        assert not stage.tcp.is_cut
        cutting.ring()
        assert stage.tcp.is_cut

    def test_says_so_once(self, stage: Stage) -> None:
        stage.transport.close_stalled()
        stage.transport.close_stalled()

        assert stage.written == CLOSE_1013
        assert not stage.tcp.is_cut

    def test_cuts_one_that_said_goodbye_and_takes_nothing(self, stage: Stage) -> None:
        stage.protocol.onCloseFrame(1000, b"")
        assert stage.tcp.disconnecting

        stage.transport.close_stalled()

        assert stage.tcp.is_cut

    def test_writes_nothing_any_more(self, stage: Stage) -> None:
        stage.transport.close(1001)
        closed = stage.written
        stage.transport.write(PONG)
        stage.transport.close(1001)

        assert stage.written == closed


class TestPing:
    """A dead client is found, a slow one is not taken for one."""

    async def test_is_not_sent_while_another_is_unanswered(self, stage: Stage) -> None:
        """Daphne asks every 20 s; the client has 30 s."""
        stage.protocol._sendAutoPing()
        first = stage.written
        stage.protocol._sendAutoPing()
        payload = stage.protocol.autoPingPending

        assert stage.written == first
        [timer] = stage.timer.calls
        answer(stage, payload)
        assert timer.is_cancelled
        stage.protocol._sendAutoPing()
        assert len(stage.written) == 2 * len(first)

    async def test_drops_a_client_that_has_everything_and_does_not_answer(
        self, stage: Stage, watch: Sockets
    ) -> None:
        stage.protocol._sendAutoPing()

        stage.timer.calls[0].ring()

        assert stage.tcp.is_cut

    async def test_waits_while_something_is_unsent(
        self, stage: Stage, watch: Sockets
    ) -> None:
        """Its pong is behind what a slow client still reads; then it is asked anew."""
        stage.protocol._sendAutoPing()
        stage.tcp.dataBuffer = b"x" * 1000

        stage.timer.calls[0].ring()
        stage.protocol._sendAutoPing()

        assert not stage.tcp.is_cut
        assert len(stage.timer.calls) == 2

    async def test_waits_for_one_that_was_behind_a_moment_ago(
        self, stage: Stage, watch: Sockets
    ) -> None:
        """Its machine has taken all, the program may still be reading."""
        stage.protocol._sendAutoPing()
        stage.fall_behind(at=asyncio.get_running_loop().time())

        stage.timer.calls[0].ring()

        assert not stage.tcp.is_cut

    async def test_leaves_a_machine_that_is_gone_to_the_look_for_stalls(
        self, stage: Stage, watch: Sockets
    ) -> None:
        """The ping itself stays unsent: nobody acknowledges it."""
        stage.protocol._sendAutoPing()
        stage.tcp.dataBuffer = stage.written
        watch._open.add(stage.transport)

        stage.timer.calls[0].ring()
        assert not stage.tcp.is_cut
        for now in (0, 30):
            watch.close_stalled(now)
        stage.timer.calls[-1].ring()

        assert stage.tcp.is_cut

    async def test_alone_decides_where_nobody_looks_for_stalls(
        self, stage: Stage, watch: Sockets
    ) -> None:
        watch.stalled_after_s = 0
        stage.protocol._sendAutoPing()
        stage.tcp.dataBuffer = b"x" * 1000

        stage.timer.calls[0].ring()

        assert stage.tcp.is_cut


def answer(stage: Stage, payload: bytes) -> None:
    """Let the client's pong arrive; its mask of zeros changes nothing."""
    stage.protocol.dataReceived(bytes([0x8A, 0x80 | len(payload)]) + bytes(4) + payload)


class WaitingSocket:
    """A socket whose client goes once it is told."""

    def __init__(self, home: Sockets) -> None:
        self.progress = Progress(since=0)
        self.unsent_bytes = 0
        self.closed_with: list[int] = []
        self._home = home
        home.add(self)

    def close(self, code: int) -> None:
        self.closed_with.append(code)
        asyncio.get_running_loop().call_soon(self._home.remove, self)

    def close_stalled(self) -> None:
        """Nothing waits for it."""

    def cut(self) -> None:
        """It goes by itself."""


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> WaitingSocket:
    """The one open socket of the process."""
    home = Sockets()
    monkeypatch.setattr(daphne_module, "sockets", home)
    return WaitingSocket(home)


class TestStartAndStop:
    """Issue "Liveness and ownership" 7."""

    def test_a_start_that_fails_is_logged(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail() -> None:
            raise RuntimeError("no disk")

        _start(fail)

        assert "the start was not orderly" in caplog.text
        assert "no disk" in caplog.text

    async def test_a_stop_that_fails_is_logged(
        self, caplog: pytest.LogCaptureFixture, waiting: WaitingSocket
    ) -> None:
        async def fail() -> None:
            raise RuntimeError("no disk")

        await _stop(fail, 60)

        assert "the stop was not orderly" in caplog.text
        assert "no disk" in caplog.text
        assert waiting.closed_with == [1001]

    async def test_a_stop_that_hangs_is_bounded(
        self, caplog: pytest.LogCaptureFixture, waiting: WaitingSocket
    ) -> None:
        """As while the database is away; clients are told nevertheless."""

        async def hang() -> None:
            await asyncio.Event().wait()

        await _stop(hang, 0)

        assert "ending all the same" in caplog.text
        assert waiting.closed_with == [1001]

    async def test_sockets_are_closed_behind_the_work(
        self, waiting: WaitingSocket
    ) -> None:
        async def work() -> None:
            assert waiting.closed_with == []

        await _stop(work, 60)

        assert waiting.closed_with == [1001]
