"""A client that does not read costs no memory and loses nothing."""

import json
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from tests.acceptance.client import CardClient, seqs_of
from tests.services import CardwireServer, until

SCRIPTED = {"CARDWIRE_ENGINE": "tests.acceptance.engines.ScriptedEngine"}

MEGABYTE = 1024 * 1024

#: The server's close frame. Spec: RFC 6455 5.5.1, 7.4.
TRY_AGAIN_LATER = b"\x88\x02" + struct.pack("!H", 1013)

#: Longer than any frame of the streams here.
LONGEST_FRAME_BYTES = 2000

#: States of /proc/net/tcp in which a socket is a connection: not listening, and not
#: waiting for stragglers after its end.
NO_CONNECTION = ("0A", "06")


def memory_bytes(server: CardwireServer) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def stalls_seen(server: CardwireServer) -> int:
    """Return how many clients the server has let go because they did not read."""
    return server.log.count("does not read")


def open_connections(server: CardwireServer) -> int:
    """Return how many TCP connections the server holds."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(
        int(row[1].partition(":")[2], 16) == server.port
        and row[3] not in NO_CONNECTION
        and row[9] != "0"
        for row in rows
    )


@contextmanager
def unread_client(
    server: CardwireServer, session_id: str, buffer_bytes: int = 4096
) -> Iterator[socket.socket]:
    """A client that makes the handshake and then reads nothing by itself."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        client.connect(("127.0.0.1", server.port))
        client.sendall(
            f"GET /v1/ws?session_id={session_id} HTTP/1.1\r\n"
            f"Host: 127.0.0.1:{server.port}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        assert client.recv(12) == b"HTTP/1.1 101"
        yield client


def masked_frame(payload: bytes, opcode: int = 1) -> bytes:
    """Return a client's frame; the mask of zeros changes nothing."""
    return bytes([0x80 | opcode, 0x80 | len(payload)]) + bytes(4) + payload


def server_frames(stream: bytes) -> Iterator[tuple[int, bytes]]:
    """Give opcode and payload of each whole frame behind the handshake."""
    at = stream.index(b"\r\n\r\n") + 4
    while at + 4 <= len(stream):
        size, start = stream[at + 1], at + 2
        if size == 126:
            size, start = int.from_bytes(stream[at + 2 : at + 4]), at + 4
        if start + size > len(stream):
            return
        yield stream[at] & 0x0F, stream[start : start + size]
        at = start + size


def read_until(client: socket.socket, end: bytes, rest_s: float = 0) -> bytes:
    """Read up to what is the end, with a rest after each of the first 60 reads."""
    received = bytearray()
    while end not in received[-LONGEST_FRAME_BYTES:]:
        piece = client.recv(65536)
        assert piece, "the server hung up"
        received += piece
        if rest_s and len(received) < 60 * 65536:
            time.sleep(rest_s)
    return bytes(received)


def begin(url: str, text: str) -> None:
    """Start a turn and leave it alone."""
    with CardClient(url) as starter:
        starter.say(text)
        starter.until(lambda frame: frame["type"] == "card.add")


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CardwireServer]:
    """A server that lets go of stalled clients soon, shared by the module."""
    data_dir = tmp_path_factory.mktemp("server")
    server = CardwireServer(data_dir, CARDWIRE_STALLED_AFTER_S="4", **SCRIPTED)
    try:
        server.start()
        yield server
    finally:
        server.close()


class TestUnreadClient:
    def test_waits_by_its_cursor(self, own_server: CardwireServer) -> None:
        """Case FR-133: the log waits, memory does not grow."""
        frame_count = 125_004
        with CardClient(f"{own_server.socket_url}?session_id=sess_slow") as reader:
            reader.say("hi")
            reader.until_turn_ends()
            with CardClient(f"{own_server.socket_url}?session_id=sess_slow") as idle:
                before = memory_bytes(own_server)
                reader.say("stream 125000")
                reader.until_turn_ends()
                rise = memory_bytes(own_server) - before
                late = [idle.receive() for _ in range(frame_count)]

        assert rise < 32 * MEGABYTE, "60 MB were streamed to a client that read nothing"
        assert seqs_of(late, idle.trace_id) == list(range(7, 7 + frame_count))


class TestStalledClient:
    """Issue "Liveness and ownership" 10; cases FR-133, FR-139."""

    def test_is_closed_and_resumes_without_loss(self, watched: CardwireServer) -> None:
        url = f"{watched.socket_url}?session_id=sess_1"
        with unread_client(watched, "sess_1") as stalled:
            stalls = stalls_seen(watched)
            begin(url, "stream 40000")
            until(lambda: stalls_seen(watched) > stalls, "the stall to be seen")
            # Awake within the grace, it finds the reason behind what was sent.
            received = read_until(stalled, TRY_AGAIN_LATER)
        opened, *texts = [
            text for opcode, text in server_frames(received) if opcode == 1
        ]
        trace_id = json.loads(opened)["payload"]["inner"]["trace_id"]
        seen = seqs_of([json.loads(text) for text in texts], trace_id)
        with CardClient(url) as back:
            back.resume(seen[-1])
            frames = back.until_turn_ends()
            back.say("hi")
            frames += back.until_turn_ends()

        # A turn of 40,000 pieces, and a small one.
        count = 40_004 + 6
        assert seen + seqs_of(frames, trace_id) == list(range(1, count + 1))

    def test_that_said_goodbye_is_cut(self, watched: CardwireServer) -> None:
        """Case FR-175: what it does not take must not keep its socket."""
        url = f"{watched.socket_url}?session_id=sess_2"
        with CardClient(url) as reader, unread_client(watched, "sess_2") as leaving:
            reader.say("stream 20000")
            reader.until_turn_ends()
            leaving.sendall(masked_frame(struct.pack("!H", 1000), opcode=8))

            until(lambda: open_connections(watched) == 1, "the socket to be gone")

            assert reader.nothing_else() == []

    @pytest.mark.parametrize(
        "question",
        [masked_frame(b'{"type":"ping"}'), masked_frame(b"x" * 125, opcode=9)],
        ids=["ping", "websocket-ping"],
    )
    def test_costs_no_memory_however_much_it_asks(
        self, own_server: CardwireServer, question: bytes
    ) -> None:
        """Pings without end from a client that reads none of the pongs."""
        with CardClient(own_server.socket_url) as other:
            before = memory_bytes(own_server)
            with unread_client(own_server, "sess_3") as rude:
                with suppress(ConnectionError):
                    for _ in range(300):
                        rude.sendall(question * 1000)
                until(lambda: stalls_seen(own_server) == 1, "the stall to be seen")
            rise = memory_bytes(own_server) - before
            assert other.nothing_else() == []

        assert rise < 32 * MEGABYTE


class TestSlowClient:
    """Issue "Liveness and ownership" 10; cases FR-133, FR-139."""

    def test_that_reads_gets_everything(self, watched: CardwireServer) -> None:
        """It is behind for several times what a stalled client has."""
        last_seq = 40_004
        with unread_client(watched, "sess_4", buffer_bytes=65536) as slow:
            begin(f"{watched.socket_url}?session_id=sess_4", "stream 40000")
            received = read_until(slow, b'"seq":%d,' % last_seq, rest_s=0.1)
            slow.sendall(masked_frame(b'{"type":"ping"}'))
            received += read_until(slow, b'{"type":"pong"}')

        opened, *frames = [json.loads(text) for _, text in server_frames(received)]
        trace_id = opened["payload"]["inner"]["trace_id"]
        assert seqs_of(frames, trace_id) == list(range(1, last_seq + 1))


class TestStop:
    """Issue "Liveness and ownership" 7; case FR-177."""

    def test_is_not_held_up_by_a_client_that_does_not_read(
        self, own_server: CardwireServer
    ) -> None:
        url = f"{own_server.socket_url}?session_id=sess_5"
        with CardClient(url) as reader, unread_client(own_server, "sess_5"):
            reader.say("stream 20000")
            reader.until_turn_ends()
            own_server.send_signal(signal.SIGTERM)
            with pytest.raises(ConnectionClosed) as closed:
                reader.receive()
            own_server.stop()

        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001
        assert "ending all the same" not in own_server.log


def leave_well(url: str) -> None:
    CardClient(url).socket.close(1000)


def leave_for_good(url: str) -> None:
    CardClient(url).socket.close(1001)


def cut_the_line(url: str) -> None:
    """End with a reset instead of a farewell."""
    with CardClient(url) as client:
        line = client.socket.socket
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.close()


def be_killed(url: str) -> None:
    script = (
        "import sys, websockets.sync.client as client\n"
        "with client.connect(sys.argv[1]) as socket:\n"
        "    print(len(socket.recv()), flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.kill()


class TestGoneClient:
    """Case FR-175: in mid-turn; no socket is left, and the turn goes on."""

    @pytest.mark.parametrize(
        "leave", [leave_well, leave_for_good, cut_the_line, be_killed]
    )
    def test_leaves_no_socket_and_the_turn_goes_on(
        self, watched: CardwireServer, leave: Callable[[str], None]
    ) -> None:
        url = f"{watched.socket_url}?session_id=sess_{leave.__name__}"
        with CardClient(url) as starter:
            starter.say("listen")
            starter.until(lambda frame: frame["type"] == "card.close")
        leave(url)

        until(lambda: open_connections(watched) == 0, "all sockets to be gone")

        with CardClient(url) as back:
            back.send({"type": "user.inject", "text": "enough"})
            assert back.until_turn_ends()[-1]["payload"]["status"] == "ok"
