"""Large HTTP bodies, both ways, cost little memory and hold nobody up.

Spec: issue "Artifacts" 4.
"""

import hashlib
import json
import os
import re
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.acceptance.client import CardClient
from tests.acceptance.large_body import body_of
from tests.acceptance.test_slow_client import open_connections
from tests.services import CardwireServer, until

MEGABYTE = 1024 * 1024

#: Of the downloads and uploads whose memory is looked at.
LARGE_BYTES = 200_000_000

#: Bytes that the server of these tests takes.
MAX_BODY_BYTES = 300 * MEGABYTE

APPLICATION = "tests.acceptance.bodies_application:application"

#: Seconds for what is due at once.
PATIENCE_S = 30


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CardwireServer]:
    """A server that lets go of stalled clients soon, shared by the module."""
    server = CardwireServer(
        tmp_path_factory.mktemp("server"),
        application=APPLICATION,
        CARDWIRE_MAX_UPLOAD_BYTES=str(MAX_BODY_BYTES - MEGABYTE),
        CARDWIRE_STALLED_AFTER_S="4",
        CARDWIRE_ENGINE="tests.acceptance.engines.ScriptedEngine",
    )
    try:
        server.start()
        yield server
    finally:
        server.close()


class PeakMemory:
    """The largest resident memory of a server since the last `forget`."""

    def __init__(self, server: CardwireServer) -> None:
        self._process = Path(f"/proc/{server.pid}")
        # Linux: 5 resets the peak.
        (self._process / "clear_refs").write_text("5")
        self._before = self._peak()

    def _peak(self) -> int:
        found = re.search(r"VmHWM:\s+(\d+) kB", (self._process / "status").read_text())
        assert found is not None
        return int(found[1]) * 1024

    def rise(self) -> int:
        return self._peak() - self._before


def spooled_bodies(server: CardwireServer) -> int:
    """Return how many nameless temporary files the server has open."""
    count = 0
    for link in Path(f"/proc/{server.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            count += os.readlink(link).endswith("(deleted)")
    return count


@contextmanager
def http_connection(server: CardwireServer) -> Iterator[HTTPConnection]:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)) as each:
        yield each


def ask(
    server: CardwireServer, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, bytes]:
    """Return status and body of an answer."""
    with http_connection(server) as connection:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()


def connect(server: CardwireServer, buffer_bytes: int = 65536) -> socket.socket:
    client = socket.socket()
    client.settimeout(PATIENCE_S)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    client.connect(("127.0.0.1", server.port))
    return client


def head(method: str, path: str, *headers: str) -> bytes:
    lines = (f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", "")
    return "\r\n".join(lines).encode()


def read_response(stream: BinaryIO, method: str = "GET") -> tuple[int, bytes]:
    """Return status and body; what follows is left in the stream."""
    status = int(stream.readline().split()[1])
    length = 0
    while (line := stream.readline().strip()) != b"":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length" and method != "HEAD":
            length = int(value)
    return status, stream.read(length)


def running_streams(server: CardwireServer) -> int:
    return int(ask(server, "GET", "/test/running")[1])


def read_to_end(client: socket.socket) -> int:
    """Return how many bytes come before the connection ends, however it does."""
    size = 0
    with suppress(ConnectionError):
        while piece := client.recv(MEGABYTE):
            size += len(piece)
    return size


class TestDownload:
    def test_five_at_once_cost_little_memory(self, server: CardwireServer) -> None:
        """Rises < 100 MB with 5 × 200 MB; others are answered meanwhile."""
        sizes: list[int] = []

        def download() -> None:
            with connect(server) as client:
                asked = head("GET", f"/test/stream/{LARGE_BYTES}", "Connection: close")
                client.sendall(asked)
                sizes.append(read_to_end(client))

        downloads = [threading.Thread(target=download) for _ in range(5)]
        with CardClient(server.socket_url) as other:
            memory = PeakMemory(server)
            for each in downloads:
                each.start()
            while any(each.is_alive() for each in downloads):
                assert other.nothing_else() == []
            rise = memory.rise()

        assert len(sizes) == 5
        assert min(sizes) > LARGE_BYTES
        assert rise < 32 * MEGABYTE

    def test_waits_for_its_client(self, server: CardwireServer) -> None:
        """Five clients that read nothing yet: what they have not taken is not made."""
        with ExitStack() as stack, CardClient(server.socket_url) as other:
            memory = PeakMemory(server)
            clients = [stack.enter_context(connect(server)) for _ in range(5)]
            for client in clients:
                client.sendall(head("GET", f"/test/stream/{LARGE_BYTES}"))
                assert client.recv(1, socket.MSG_PEEK)
            for _ in range(100):
                assert other.nothing_else() == []

            assert running_streams(server) == 5
            assert memory.rise() < 32 * MEGABYTE

    def test_comes_whole_one_behind_the_other(self, server: CardwireServer) -> None:
        """Pipelined on one connection, HEAD among them."""
        size = 5_000_000
        with connect(server) as client, client.makefile("rb") as stream:
            for method in ("GET", "HEAD", "GET", "HEAD", "GET"):
                client.sendall(head(method, f"/test/stream/{size}"))
            answers = [
                read_response(stream, method)
                for method in ("GET", "HEAD", "GET", "HEAD", "GET")
            ]

        whole = (200, body_of(size))
        assert answers == [whole, (200, b""), whole, (200, b""), whole]

    def test_ends_with_its_client(self, server: CardwireServer) -> None:
        """The application does not wait for one that is gone."""
        with connect(server) as client:
            client.sendall(head("GET", f"/test/stream/{LARGE_BYTES}"))
            assert client.recv(1000)

        until(lambda: running_streams(server) == 0, "the stream to end")
        until(lambda: open_connections(server) == 0, "the socket to be gone")

    def test_is_cut_when_nothing_is_taken(self, server: CardwireServer) -> None:
        with connect(server) as client:
            client.sendall(head("GET", f"/test/stream/{LARGE_BYTES}"))
            until(lambda: open_connections(server) == 0, "the client to be cut")

            assert read_to_end(client) < LARGE_BYTES
        assert "does not take its response" in server.log

    def test_that_was_answered_whole_is_cut_as_well(
        self, server: CardwireServer
    ) -> None:
        """Case FR-175: the application has ended; what is left must not stay."""
        asked = head("GET", "/test/stream/60000", "Connection: keep-alive")
        with connect(server, buffer_bytes=4096) as client:
            client.sendall(asked * 100)
            client.sendall(head("GET", "/test/stream/60000", "Connection: close"))

            until(lambda: open_connections(server) == 0, "the client to be cut")

    def test_is_left_to_a_client_that_reads_slowly(
        self, server: CardwireServer
    ) -> None:
        """It takes several times as long as a client may take nothing."""
        size = 4 * MEGABYTE
        pause = threading.Event()
        with connect(server) as client:
            client.sendall(head("GET", f"/test/stream/{size}"))
            received = bytearray()
            while len(received) < size:
                received += client.recv(size // 40, socket.MSG_WAITALL)
                # A slow client is what is tested; nothing waits for this.
                pause.wait(0.2)

        assert received.endswith(body_of(size))

    def test_that_breaks_off_is_seen_to_be_incomplete(
        self, server: CardwireServer
    ) -> None:
        with pytest.raises((HTTPException, ConnectionError)):
            ask(server, "GET", "/test/break/1000")

    def test_that_breaks_off_leaves_the_server_whole(
        self, server: CardwireServer
    ) -> None:
        """Daphne would look after no application any more."""
        with suppress(HTTPException, ConnectionError):
            ask(server, "GET", "/test/break/1000")

        status, _ = ask(server, "GET", "/test/break/0")

        assert status == 500


BODY = body_of(LARGE_BYTES)

FORM = (
    b"--frame\r\n"
    b'Content-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
    + BODY
    + b"\r\n--frame--\r\n"
)


class TestUpload:
    @pytest.mark.parametrize(
        ("body", "headers", "is_chunked"),
        [
            (BODY, {}, False),
            (BODY, {}, True),
            (FORM, {"Content-Type": "multipart/form-data; boundary=frame"}, False),
        ],
        ids=["length", "chunked", "form"],
    )
    def test_comes_whole_and_in_pieces(
        self,
        server: CardwireServer,
        body: bytes,
        headers: dict[str, str],
        is_chunked: bool,
    ) -> None:
        pieces = (body[at : at + MEGABYTE] for at in range(0, len(body), MEGABYTE))
        memory = PeakMemory(server)
        with http_connection(server) as connection:
            connection.request(
                "POST",
                "/test/count",
                pieces if is_chunked else body,
                headers,
                encode_chunked=is_chunked,
            )
            answer = json.loads(connection.getresponse().read())

        assert answer == {
            "size": len(body),
            "sha256": hashlib.sha256(body).hexdigest(),
            "largest": 64 * 1024,
        }
        assert memory.rise() < 32 * MEGABYTE
        assert spooled_bodies(server) == 0

    def test_to_django_costs_little_and_holds_nobody_up(
        self, server: CardwireServer
    ) -> None:
        """Django copies the body within the event loop; a route that reads it not."""
        statuses: list[int] = []
        headers = {"Content-Type": "application/json"}

        def upload() -> None:
            answer = ask(server, "POST", "/v1/prompts/req_1/answer", BODY, **headers)
            statuses.append(answer[0])

        uploads = [threading.Thread(target=upload) for _ in range(2)]
        with CardClient(server.socket_url) as other:
            memory = PeakMemory(server)
            for each in uploads:
                each.start()
            while any(each.is_alive() for each in uploads):
                assert other.nothing_else() == []
            rise = memory.rise()

        assert statuses == [404, 404]
        assert rise < 32 * MEGABYTE

    def test_may_be_followed_by_another_request(self, server: CardwireServer) -> None:
        with http_connection(server) as connection:
            for body in (b"", b"x" * 65536, b"y" * 65537, b"z" * 1000):
                connection.request("POST", "/test/count", body)

                assert json.loads(connection.getresponse().read())["size"] == len(body)

    def test_that_nobody_reads_is_given_back(self, server: CardwireServer) -> None:
        answer = ask(server, "POST", "/test/ignore", BODY[:MEGABYTE])

        assert answer == (200, b'{"ignored": true}')
        assert spooled_bodies(server) == 0

    def test_whose_client_goes_away_is_given_back(self, server: CardwireServer) -> None:
        with connect(server) as client:
            client.sendall(head("POST", "/test/count", "Content-Length: 10000000"))
            client.sendall(b"x" * 500_000)
            until(lambda: spooled_bodies(server) == 1, "the body to be spooled")

        until(lambda: spooled_bodies(server) == 0, "the body to be given back")


TOO_LARGE = (413, b'{"detail": "the body is too large"}')


class TestTooLargeUpload:
    def test_is_refused_by_its_length_alone(self, server: CardwireServer) -> None:
        with connect(server) as client, client.makefile("rb") as stream:
            length = f"Content-Length: {MAX_BODY_BYTES + 1}"
            client.sendall(head("POST", "/test/count", length))

            assert read_response(stream) == TOO_LARGE
            assert spooled_bodies(server) == 0

    def test_is_not_asked_for(self, server: CardwireServer) -> None:
        """A client that asks first is not told to go on."""
        with connect(server) as client:
            length = f"Content-Length: {10**15}"
            client.sendall(head("PUT", "/v1/x", length, "Expect: 100-continue"))

            assert client.recv(12) == b"HTTP/1.1 413"

    def test_of_the_largest_size_is_taken(self, server: CardwireServer) -> None:
        with connect(server) as client:
            length = f"Content-Length: {MAX_BODY_BYTES}"
            client.sendall(head("POST", "/test/count", length, "Expect: 100-continue"))

            assert client.recv(12) == b"HTTP/1.1 100"

    def test_is_refused_as_it_grows(self, server: CardwireServer) -> None:
        chunk = b"%x\r\n%b\r\n" % (MEGABYTE, bytes(MEGABYTE))
        with connect(server) as client, client.makefile("rb") as stream:
            client.sendall(head("POST", "/test/count", "Transfer-Encoding: chunked"))
            for _ in range(MAX_BODY_BYTES // MEGABYTE):
                client.sendall(chunk)
            assert spooled_bodies(server) == 1
            client.sendall(chunk)

            assert read_response(stream) == TOO_LARGE
            assert spooled_bodies(server) == 0

    def test_is_answered_although_its_client_sends_all_first(
        self, server: CardwireServer
    ) -> None:
        """Cut in mid-sending it would see no answer; browsers would show none."""
        with connect(server) as client, client.makefile("rb") as stream:
            length = f"Content-Length: {MAX_BODY_BYTES + 1}"
            client.sendall(head("POST", "/test/count", length))
            for _ in range(MAX_BODY_BYTES // MEGABYTE):
                client.sendall(bytes(MEGABYTE))
            client.sendall(b"x")

            assert read_response(stream) == TOO_LARGE
            assert stream.read(1) == b""

    def test_is_refused_behind_a_handshake(self, server: CardwireServer) -> None:
        """Daphne would join it to the handshake in memory."""
        with connect(server) as client, client.makefile("rb") as stream:
            client.sendall(
                head("GET", "/v1/ws", "Upgrade: websocket", "Content-Length: 100000")
            )

            assert read_response(stream) == TOO_LARGE


class TestFullDisk:
    def test_is_told_and_leaves_nothing_behind(self, server: CardwireServer) -> None:
        """A bound on the size of files stands for a disk without room."""
        limit = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (8 * MEGABYTE, limit[1]))
        try:
            status, body = ask(server, "POST", "/test/count", BODY[: 20 * MEGABYTE])
        finally:
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, limit)

        assert status == 507
        assert json.loads(body) == {"detail": "there is no room to store the body"}
        assert spooled_bodies(server) == 0
