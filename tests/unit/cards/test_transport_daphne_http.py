"""HTTP on daphne with bounded bodies, without daphne's server and without a network."""

import asyncio
import errno
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from daphne import http_protocol
from daphne.http_protocol import HTTPFactory
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from cards.transport import daphne_http
from cards.transport.daphne_http import (
    ANYBODYS_BODY_BYTES,
    MAX_HANDSHAKE_BODY_BYTES,
    PIECE_BYTES,
    BoundedBodies,
    CardwireRequest,
    Outflow,
    install_http,
)
from cards.transport.sockets import Sockets

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_BODY_BYTES = 1_000_000

#: By now ours may stand under its name.
DAPHNES_REQUEST = CardwireRequest.__base__

START = {"type": "http.response.start", "status": 200, "headers": []}


class FakeTcp(StringTransport):  # type: ignore[misc] # twisted is untyped
    """Twisted's end of a connection; what is written waits until a test takes it."""

    offset = 0
    _tempDataLen = 0  # noqa: N815 - twisted's name

    def __init__(self) -> None:
        super().__init__()
        self.is_cut = False

    @property
    def dataBuffer(self) -> bytes:  # noqa: N802 - twisted's name
        return bytes(self.value())

    def fileno(self) -> int:
        raise OSError("no kernel here")

    def abortConnection(self) -> None:  # noqa: N802 - twisted's name
        self.is_cut = True

    def take(self) -> bytes:
        """Let the client read all."""
        written = self.dataBuffer
        self.clear()
        return written


class FakeServer:
    """What a request needs of daphne's server."""

    server_name = ""
    root_path = ""
    request_buffer_size = 8192
    proxy_forwarded_address_header = None

    def __init__(self) -> None:
        self.applications: list[asyncio.Task[None]] = []
        self.messages: list[asyncio.Queue[Message]] = []
        self.gone: list[Any] = []
        self.ws_factory = self
        self.application: Any = None

    def create_application(self, request: Any, scope: Any) -> asyncio.Queue[Message]:
        queue: asyncio.Queue[Message] = asyncio.Queue()
        run = self.application(scope, queue.get, partial(self._reply, request))
        self.applications.append(asyncio.ensure_future(run))
        self.messages.append(queue)
        return queue

    async def _reply(self, request: Any, message: Message) -> None:
        if request not in self.gone:
            request.handle_reply(message)

    def protocol_connected(self, request: Any) -> None:
        """A request began."""

    def protocol_disconnected(self, request: Any) -> None:
        self.gone.append(request)

    def log_action(self, *_: Any) -> None:
        """A line of the access log."""


class Stage:
    """One connection to an application that a test writes."""

    def __init__(self) -> None:
        self.server = FakeServer()
        self.factory = HTTPFactory(self.server)
        # Twisted's timer would ring in a loop that nobody runs here.
        self.factory.timeOut = None
        self.tcp = FakeTcp()
        self.protocol = self.factory.buildProtocol(None)
        self.protocol.makeConnection(self.tcp)
        self.channel = self.protocol._channel

    def serve(self, application: Any) -> None:
        self.server.application = BoundedBodies(application)

    def ask(
        self, *headers: str, method: str = "GET", body: bytes = b"", path: str = "/"
    ) -> None:
        lines = (f"{method} {path} HTTP/1.1", "Host: a", *headers, "", "")
        self.protocol.dataReceived("\r\n".join(lines).encode() + body)

    def post(self, body: bytes, *headers: str) -> None:
        self.ask(f"Content-Length: {len(body)}", *headers, method="POST", body=body)

    def lose(self) -> None:
        self.protocol.connectionLost(Failure(ConnectionDone()))

    @property
    def request(self) -> Any:
        return self.channel.requests[0]

    @property
    def outflow(self) -> Outflow:
        found: Outflow = self.channel.outflow
        return found

    async def settle(self) -> None:
        """Let everything run that can."""
        for _ in range(100):
            await asyncio.sleep(0)

    async def end(self) -> None:
        await asyncio.gather(*self.server.applications)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Sockets:
    """The connections that are looked at for stalls."""
    outflows = Sockets()
    monkeypatch.setattr(daphne_http, "outflows", outflows)
    return outflows


@pytest.fixture
async def stage(
    watch: Sockets, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Stage]:
    for owner, name in (
        (http_protocol, "WebRequest"),
        (HTTPFactory, "protocol"),
        (CardwireRequest, "max_body_bytes"),
        (CardwireRequest, "is_known"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    install_http(max_body_bytes=MAX_BODY_BYTES, stalled_after_s=0)
    stage = Stage()
    yield stage
    stage.lose()
    for task in stage.server.applications:
        task.cancel()


def body_message(body: bytes = b"", more_body: bool = False) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more_body}


class Recorder:
    """An application that keeps what it gets, and answers."""

    def __init__(self) -> None:
        self.pieces: list[Message] = []

    async def __call__(self, _scope: Any, receive: Receive, send: Send) -> None:
        while not self.pieces or self.pieces[-1].get("more_body"):
            self.pieces.append(await receive())
        await send(START)
        await send(body_message(b"done"))

    @property
    def body(self) -> bytes:
        return b"".join(piece["body"] for piece in self.pieces)


async def two_pieces(_scope: Any, _receive: Receive, send: Send) -> None:
    await send(START)
    await send(body_message(b"one", more_body=True))
    await send(body_message(b"two"))
    await send(body_message(b"nobody gets this"))


class TestRequestBody:
    @pytest.mark.parametrize(
        "size", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 500_000]
    )
    async def test_comes_in_pieces(self, stage: Stage, size: int) -> None:
        """Whatever daphne's own buffer size is; more_body is right at every border."""
        recorder, body = Recorder(), bytes(range(250)) * (size // 250 + 1)
        stage.serve(recorder)

        stage.post(body[:size])
        await stage.end()

        assert recorder.body == body[:size]
        assert max(len(piece["body"]) for piece in recorder.pieces) <= PIECE_BYTES
        assert [piece["more_body"] for piece in recorder.pieces] == [True] * (
            size // PIECE_BYTES
        ) + [False]

    async def test_is_not_in_the_queue(self, stage: Stage) -> None:
        stage.serve(Recorder())

        stage.post(bytes(500_000))
        [queue] = stage.server.messages

        assert queue.get_nowait()["body"] == b""
        assert queue.empty()

    async def test_lets_others_have_a_turn_between_pieces(self, stage: Stage) -> None:
        recorder, turns = Recorder(), list[int]()
        stage.serve(recorder)

        async def other() -> None:
            while not stage.server.applications[0].done():
                turns.append(len(recorder.pieces))
                await asyncio.sleep(0)

        stage.post(bytes(10 * PIECE_BYTES))
        await other()

        assert set(turns) >= set(range(11))

    async def test_is_closed_once_it_was_handed_over(self, stage: Stage) -> None:
        """The application has its copy; two of them need not lie on the disk."""
        is_over = asyncio.Event()

        async def read_and_wait(_scope: Any, receive: Receive, _send: Send) -> None:
            while (await receive())["more_body"]:
                assert not is_over.is_set()
            is_over.set()
            await asyncio.Event().wait()

        stage.serve(read_and_wait)
        stage.post(bytes(500_000))
        spooled = stage.request.content._spooled
        assert not spooled.closed
        await is_over.wait()

        assert spooled.closed

    async def test_is_closed_when_the_answer_comes_first(self, stage: Stage) -> None:
        async def refuse(_scope: Any, _receive: Receive, send: Send) -> None:
            await send(START)
            await send(body_message())

        stage.serve(refuse)
        stage.post(bytes(500_000))
        spooled = stage.request.content._spooled
        await stage.end()

        assert spooled.closed

    async def test_ends_with_its_client(self, stage: Stage) -> None:
        """The file is closed, and the application told."""
        got: list[Message] = []

        async def read(_scope: Any, receive: Receive, _send: Send) -> None:
            got.append(await receive())
            stage.lose()
            got.append(await receive())

        stage.serve(read)
        stage.post(bytes(500_000))
        spooled = stage.request.content._spooled
        await stage.end()

        assert [message["type"] for message in got] == [
            "http.request",
            "http.disconnect",
        ]
        assert spooled.closed

    async def test_is_followed_by_the_end_of_the_request(self, stage: Stage) -> None:
        """An application that listens behind the body hears of the end only."""
        got: list[Message] = []

        async def listen(_scope: Any, receive: Receive, send: Send) -> None:
            await receive()
            listening = asyncio.ensure_future(receive())
            await send(START)
            await send(body_message())
            got.append(await listening)

        stage.serve(listen)
        stage.ask()
        await stage.end()

        assert got == [{"type": "http.disconnect"}]

    async def test_of_a_form_is_left_to_the_application(self, stage: Stage) -> None:
        """Twisted would parse it in memory, and refuse what it cannot parse."""
        recorder = Recorder()
        stage.serve(recorder)

        stage.post(b"no form", "Content-Type: multipart/form-data; boundary=x")
        await stage.end()

        assert recorder.body == b"no form"


class TestResponse:
    async def test_waits_while_the_buffer_is_full(self, stage: Stage) -> None:
        stage.serve(two_pieces)
        stage.ask()
        stage.channel.pauseProducing()
        await stage.settle()
        assert stage.tcp.take() == b""

        stage.channel.resumeProducing()
        await stage.settle()

        assert stage.tcp.take().endswith(b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")

    async def test_waits_in_the_middle(self, stage: Stage) -> None:
        async def fill(_scope: Any, _receive: Receive, send: Send) -> None:
            await send(START)
            await send(body_message(b"one", more_body=True))
            # As Twisted does when the buffer has become full.
            stage.channel.pauseProducing()
            await send(body_message(b"two"))

        stage.serve(fill)
        stage.ask()
        await stage.settle()
        assert stage.tcp.take().endswith(b"3\r\none\r\n")

        stage.channel.resumeProducing()
        await stage.end()

        assert stage.tcp.take() == b"3\r\ntwo\r\n0\r\n\r\n"

    async def test_waits_for_the_ones_before_it(self, stage: Stage) -> None:
        """Pipelined: the next request finds the buffer as the last one left it."""
        stage.serve(two_pieces)
        stage.ask()
        stage.ask()
        await stage.settle()
        assert stage.tcp.take().count(b"200 OK") == 2

        stage.channel.pauseProducing()
        for _ in range(3):
            stage.ask()
        await stage.settle()

        assert stage.tcp.take() == b""
        stage.channel.resumeProducing()
        await stage.settle()
        assert stage.tcp.take().count(b"200 OK") == 3

    async def test_ends_its_wait_with_its_client(self, stage: Stage) -> None:
        stage.serve(two_pieces)
        stage.ask()
        stage.channel.pauseProducing()
        await stage.settle()

        stage.lose()
        await stage.end()

        assert stage.tcp.take() == b""

    async def test_to_nobody_lets_others_have_a_turn(self, stage: Stage) -> None:
        sent: list[int] = []

        async def send_on(_scope: Any, _receive: Receive, send: Send) -> None:
            await send(START)
            while len(sent) < 1_000_000:
                await send(body_message(b"x", more_body=True))
                sent.append(1)

        stage.serve(send_on)
        stage.ask()
        stage.lose()
        await stage.settle()

        assert 0 < len(sent) <= 100

    async def test_of_head_has_no_body(self, stage: Stage) -> None:
        """Daphne would send what comes behind the first piece."""
        stage.serve(two_pieces)

        stage.ask(method="HEAD")
        await stage.settle()

        assert stage.tcp.take().endswith(b"\r\n\r\n")
        assert not stage.channel.requests

    async def test_of_304_has_no_body(self, stage: Stage) -> None:
        async def unchanged(_scope: Any, _receive: Receive, send: Send) -> None:
            await send(START | {"status": 304})
            await send(body_message(b"one", more_body=True))
            await send(body_message(b"two"))

        stage.serve(unchanged)
        stage.ask()
        await stage.end()

        assert stage.tcp.take() == b"HTTP/1.1 304 Not Modified\r\n\r\n"

    async def test_that_breaks_off_cuts_the_connection(self, stage: Stage) -> None:
        """Nothing else tells the client that something is missing."""
        stage.serve(two_pieces)
        stage.ask()
        request = stage.request
        stage.channel.pauseProducing()
        await stage.settle()

        request.handle_exception(RuntimeError("no disk"))

        assert stage.tcp.is_cut
        assert stage.tcp.take() == b""

    async def test_that_fails_before_it_begins_is_an_error(self, stage: Stage) -> None:
        stage.serve(Recorder())
        stage.ask()

        stage.request.handle_exception(RuntimeError("no disk"))

        assert stage.tcp.take().startswith(b"HTTP/1.1 500 ")
        assert not stage.tcp.is_cut


class TestStalledResponse:
    """A client that takes nothing is cut, as on a WebSocket."""

    async def test_is_cut(self, stage: Stage, watch: Sockets) -> None:
        watch.stalled_after_s = 30
        stage.serve(two_pieces)
        stage.ask()
        await stage.settle()

        for now in (0, 29):
            watch.close_stalled(now)
            assert not stage.tcp.is_cut
        watch.close_stalled(30)

        assert stage.tcp.is_cut

    async def test_is_spared_while_something_is_taken(
        self, stage: Stage, watch: Sockets
    ) -> None:
        """However little, and although as much is written again; heads count too."""
        watch.stalled_after_s = 30
        stage.serve(two_pieces)
        for now in range(0, 100, 10):
            stage.tcp.take()
            stage.ask(method="HEAD")
            await stage.settle()
            watch.close_stalled(now)

        assert stage.tcp.dataBuffer
        assert not stage.tcp.is_cut

    async def test_is_not_looked_for_before_something_is_written(
        self, stage: Stage, watch: Sockets
    ) -> None:
        stage.serve(Recorder())
        assert watch._open == set()

        stage.ask()
        await stage.end()

        assert watch._open == {stage.outflow}

    async def test_is_forgotten_with_its_connection(
        self, stage: Stage, watch: Sockets
    ) -> None:
        stage.serve(two_pieces)
        stage.ask()
        await stage.settle()

        stage.lose()

        assert watch._open == set()

    def test_is_cut_by_a_close_too(self) -> None:
        """There is no close frame in HTTP."""
        tcp = FakeTcp()

        Outflow(tcp, now=0).close(1001)

        assert tcp.is_cut


def refusal_of(stage: Stage) -> tuple[bytes, Any]:
    head, _, body = stage.tcp.take().partition(b"\r\n\r\n")
    assert b"Connection: close" in head
    return head.splitlines()[0], json.loads(body)


TOO_LARGE = (
    b"HTTP/1.1 413 Request Entity Too Large",
    {"detail": "the body is too large"},
)
NO_ROOM = (
    b"HTTP/1.1 507 Insufficient Storage",
    {"detail": "there is no room to store the body"},
)


class TestTooLargeBody:
    async def test_is_refused_by_its_length(self, stage: Stage) -> None:
        stage.ask(f"Content-Length: {MAX_BODY_BYTES + 1}", method="POST")

        assert refusal_of(stage) == TOO_LARGE
        assert stage.request.content is None

    async def test_is_refused_as_it_grows(self, stage: Stage) -> None:
        chunk = b"%x\r\n%b\r\n" % (MAX_BODY_BYTES, bytes(MAX_BODY_BYTES))
        stage.ask("Transfer-Encoding: chunked", method="POST", body=chunk)
        spooled = stage.request.content
        assert stage.tcp.take() == b""

        stage.protocol.dataReceived(b"1\r\nx\r\n")

        assert refusal_of(stage) == TOO_LARGE
        assert spooled.closed

    async def test_is_not_asked_for(self, stage: Stage) -> None:
        stage.ask(
            f"Content-Length: {MAX_BODY_BYTES + 1}",
            "Expect: 100-continue",
            method="PUT",
        )

        assert refusal_of(stage) == TOO_LARGE

    async def test_is_thrown_away_while_it_comes(self, stage: Stage) -> None:
        """And the connection closed behind it, so that the client reads the answer."""
        stage.post(bytes(MAX_BODY_BYTES + 1))

        assert refusal_of(stage) == TOO_LARGE
        assert stage.tcp.disconnecting
        assert stage.server.applications == []

    async def test_is_waited_for_within_a_bound(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(daphne_http, "LINGER_S", 0)
        stage.ask(f"Content-Length: {MAX_BODY_BYTES + 1}", method="POST")
        assert not stage.tcp.is_cut

        await stage.settle()

        assert stage.tcp.is_cut

    async def test_is_not_waited_for_when_its_client_is_gone(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(daphne_http, "LINGER_S", 0)
        stage.ask(f"Content-Length: {MAX_BODY_BYTES + 1}", method="POST")
        request = stage.request
        stage.lose()

        await stage.settle()

        assert not stage.tcp.is_cut
        assert request in stage.server.gone

    async def test_of_the_largest_size_is_taken(self, stage: Stage) -> None:
        recorder = Recorder()
        stage.serve(recorder)

        stage.post(bytes(MAX_BODY_BYTES))
        await stage.end()

        assert len(recorder.body) == MAX_BODY_BYTES

    async def test_is_smaller_behind_a_handshake(self, stage: Stage) -> None:
        """Daphne joins it to the handshake in memory."""
        length = f"Content-Length: {MAX_HANDSHAKE_BODY_BYTES + 1}"

        stage.ask(length, "Upgrade: WebSocket")

        assert refusal_of(stage) == TOO_LARGE


UNKNOWN = (
    b"HTTP/1.1 401 Unauthorized",
    {
        "detail": "sign in first, or show a token that holds as Authorization: Bearer",
    },
)
UNCLEAR = (
    b"HTTP/1.1 503 Service Unavailable",
    {"detail": "who sends the body cannot be found out right now"},
)

#: A body that is not taken of anybody.
LARGE = ANYBODYS_BODY_BYTES + 1


class Doorman:
    """Says who is known, when a test wants it to."""

    def __init__(self) -> None:
        self.heads: list[Message] = []
        self.verdict: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def __call__(self, head: Message) -> bool:
        self.heads.append(head)
        return await asyncio.shield(self.verdict)


class TestLargeBodyOfSomebody:
    @pytest.fixture
    async def doorman(self, stage: Stage) -> Doorman:
        doorman = Doorman()
        install_http(max_body_bytes=10 * LARGE, stalled_after_s=0, is_known=doorman)
        return doorman

    @staticmethod
    def is_reading(stage: Stage) -> bool:
        return bool(stage.tcp.producerState == "producing")

    async def test_waits_until_its_sender_is_known(
        self, stage: Stage, doorman: Doorman
    ) -> None:
        recorder = Recorder()
        stage.serve(recorder)
        stage.ask(
            f"Content-Length: {LARGE}",
            "Authorization: Bearer x",
            "Cookie: a=b",
            method="POST",
        )
        await stage.settle()
        assert not self.is_reading(stage)
        (head,) = doorman.heads
        assert head["type"] == "http"
        assert (b"authorization", b"Bearer x") in head["headers"]
        assert (b"cookie", b"a=b") in head["headers"]

        doorman.verdict.set_result(True)
        await stage.settle()
        assert self.is_reading(stage)
        stage.protocol.dataReceived(bytes(LARGE))
        await stage.end()

        assert len(recorder.body) == LARGE
        assert len(doorman.heads) == 1

    async def test_of_a_stranger_is_refused(
        self, stage: Stage, doorman: Doorman
    ) -> None:
        stage.ask(f"Content-Length: {LARGE}", method="POST")
        spooled = stage.request.content
        doorman.verdict.set_result(False)
        await stage.settle()

        head = stage.tcp.value()
        assert b"WWW-Authenticate: Bearer" in head
        assert refusal_of(stage) == UNKNOWN
        assert spooled.closed
        # What still comes is thrown away, so that the client reads the answer.
        assert self.is_reading(stage)
        stage.protocol.dataReceived(bytes(LARGE))
        assert stage.tcp.disconnecting
        assert stage.server.applications == []

    async def test_that_grows_waits_too(self, stage: Stage, doorman: Doorman) -> None:
        chunk = b"%x\r\n%b\r\n" % (LARGE, bytes(LARGE))
        stage.ask("Transfer-Encoding: chunked", method="POST")
        await stage.settle()
        assert doorman.heads == []

        stage.protocol.dataReceived(chunk)
        await stage.settle()
        assert not self.is_reading(stage)
        doorman.verdict.set_result(False)
        await stage.settle()

        assert refusal_of(stage) == UNKNOWN

    async def test_is_asked_for_once_its_sender_is_known(
        self, stage: Stage, doorman: Doorman
    ) -> None:
        expect = "Expect: 100-continue"
        stage.ask(f"Content-Length: {LARGE}", expect, method="PUT")
        await stage.settle()
        assert stage.tcp.value() == b""

        doorman.verdict.set_result(True)
        await stage.settle()

        assert stage.tcp.take() == b"HTTP/1.1 100 Continue\r\n\r\n"

    async def test_that_came_whole_is_left_to_the_application(
        self, stage: Stage, doorman: Doorman
    ) -> None:
        recorder = Recorder()
        stage.serve(recorder)
        stage.post(bytes(LARGE))
        doorman.verdict.set_result(False)
        await stage.end()

        assert len(recorder.body) == LARGE
        assert self.is_reading(stage)

    async def test_is_refused_when_nobody_can_tell(
        self, stage: Stage, doorman: Doorman
    ) -> None:
        stage.ask(f"Content-Length: {LARGE}", method="POST")
        doorman.verdict.set_exception(OSError("the database is away"))
        await stage.settle()

        assert refusal_of(stage) == UNCLEAR

    async def test_is_forgotten_with_its_client(
        self, stage: Stage, doorman: Doorman
    ) -> None:
        stage.ask(f"Content-Length: {LARGE}", method="POST")
        asking = stage.request._asking
        await stage.settle()
        stage.lose()
        doorman.verdict.set_result(True)
        await stage.settle()

        assert asking.cancelled()

    async def test_of_a_common_size_is_taken_of_anybody(
        self, stage: Stage, doorman: Doorman
    ) -> None:
        recorder = Recorder()
        stage.serve(recorder)

        stage.post(bytes(ANYBODYS_BODY_BYTES))
        await stage.end()

        assert len(recorder.body) == ANYBODYS_BODY_BYTES
        assert doorman.heads == []


class FullFile:
    """A spooled body on a disk that has room for so many bytes.

    What has none is noticed at the latest when the file's buffer is written.
    """

    def __init__(self, spooled: Any, room_bytes: int, *, is_buffered: bool) -> None:
        self.spooled = spooled
        self._room_bytes = room_bytes
        self._is_buffered = is_buffered

    def write(self, piece: bytes) -> None:
        self._room_bytes -= len(piece)
        if not self._is_buffered:
            self.flush()

    def flush(self) -> None:
        if self._room_bytes < 0:
            raise OSError(errno.ENOSPC, "no space")

    def close(self) -> None:
        # As Python's own files: closed, and then the error, once.
        if not self.spooled.closed:
            self.spooled.close()
            self.flush()


class TestFullDisk:
    async def test_is_told_when_there_can_be_no_file(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "no space")

        monkeypatch.setattr("tempfile.TemporaryFile", fail)
        stage.ask("Content-Length: 500000", method="POST")

        assert refusal_of(stage) == NO_ROOM

    @pytest.mark.parametrize("is_buffered", [False, True])
    async def test_is_told_when_the_body_has_no_room(
        self, stage: Stage, is_buffered: bool
    ) -> None:
        stage.ask("Content-Length: 500000", method="POST")
        content = FullFile(stage.request.content, 499_999, is_buffered=is_buffered)
        stage.request.content = content

        stage.protocol.dataReceived(bytes(499_999))
        assert stage.tcp.take() == b""
        stage.protocol.dataReceived(b"x")

        assert refusal_of(stage) == NO_ROOM
        assert stage.tcp.disconnecting
        assert content.spooled.closed

    async def test_of_the_application_is_told(self, stage: Stage) -> None:
        """Django copies the body before any view could answer."""

        async def fail(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "no space")

        stage.serve(fail)
        stage.ask()
        await stage.end()

        head, _, body = stage.tcp.take().partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 507 ")
        assert json.loads(body) == NO_ROOM[1]

    @pytest.mark.parametrize(
        ("number", "has_begun"), [(errno.ENOSPC, True), (errno.EIO, False)]
    )
    async def test_is_not_told_when_it_is_something_else(
        self, stage: Stage, number: int, has_begun: bool
    ) -> None:
        """Or when the answer has begun: then daphne hears of it."""

        async def fail(_scope: Any, _receive: Receive, send: Send) -> None:
            if has_begun:
                await send(START)
            raise OSError(number, "no disk")

        stage.serve(fail)
        stage.ask()

        with pytest.raises(OSError, match="no disk"):
            await stage.end()


class TestHandshake:
    async def test_is_left_alone(
        self, stage: Stage, watch: Sockets, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also on a connection that served a request before."""
        bodies: list[Any] = []
        monkeypatch.setattr(
            DAPHNES_REQUEST, "process", lambda request: bodies.append(request.content)
        )
        stage.outflow.count(100)
        assert watch._open == {stage.outflow}

        stage.ask("Upgrade: websocket")

        assert bodies[0].read() == b""
        assert watch._open == set()
        assert daphne_http._daphne_request.get() is None


class TestAnotherServer:
    async def test_notices_nothing(self) -> None:
        got: list[Any] = []

        async def application(*arguments: Any) -> None:
            got.extend(arguments)

        given = ({"type": "http"}, object(), object())
        await BoundedBodies(application)(*given)  # type: ignore[arg-type]

        assert got == list(given)


class TestLeftBehind:
    async def test_tasks_do_not_keep_the_request(self, stage: Stage) -> None:
        seen: list[Any] = []

        async def application(*_: Any) -> None:
            seen.append(daphne_http._daphne_request.get())

        stage.serve(application)
        stage.ask()
        await stage.end()

        assert seen == [None]
