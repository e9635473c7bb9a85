"""A client that does not read costs no memory and loses nothing."""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.acceptance.client import CardClient, seqs_of
from tests.services import CardwireServer, until

SCRIPTED = {"CARDWIRE_ENGINE": "tests.acceptance.engines.ScriptedEngine"}

MEGABYTE = 1024 * 1024


def memory_bytes(server: CardwireServer) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


@contextmanager
def unread_client(server: CardwireServer, session_id: str) -> Iterator[socket.socket]:
    """A client that makes the handshake and then reads nothing by itself."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
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


def masked_frame(text: bytes) -> bytes:
    """Return a client's frame; the mask of zeros changes nothing."""
    return bytes([0x81, 0x80 | len(text)]) + bytes(4) + text


class TestUnreadClient:
    def test_waits_by_its_cursor(self, own_server: CardwireServer) -> None:
        """Case FR-133: the log waits, memory does not grow."""
        frame_count = 100_004
        with CardClient(f"{own_server.socket_url}?session_id=sess_slow") as reader:
            reader.say("hi")
            reader.until_turn_ends()
            with CardClient(f"{own_server.socket_url}?session_id=sess_slow") as idle:
                before = memory_bytes(own_server)
                reader.say("stream 100000")
                reader.until_turn_ends()
                rise = memory_bytes(own_server) - before
                late = [idle.receive() for _ in range(frame_count)]

        assert rise < 40 * MEGABYTE, "48 MB were streamed to a client that read nothing"
        assert seqs_of(late, idle.trace_id) == list(range(7, 7 + frame_count))


class TestStalledClient:
    """Issue "Liveness and ownership" 10; cases FR-133, FR-139."""

    def test_is_closed_and_resumes_without_loss(self, tmp_path: Path) -> None:
        server = CardwireServer(tmp_path, CARDWIRE_STALLED_AFTER_S="1", **SCRIPTED)
        try:
            server.start()
            url = f"{server.socket_url}?session_id=sess_1"
            with CardClient(url) as reader, unread_client(server, "sess_1"):
                reader.say("stream 100000")
                reader.until_turn_ends()
                until(lambda: "does not read" in server.log, "the stall to be seen")
                reader.say("hi")
                reader.until_turn_ends()
            with CardClient(url) as back:
                frames = back.replay(0)
        finally:
            server.close()

        # A turn of 100,000 pieces, and a small one.
        count = 100_004 + 6
        assert seqs_of(frames, back.trace_id) == list(range(1, count + 1))

    def test_costs_no_memory_however_much_it_asks(self, tmp_path: Path) -> None:
        """Pings without end from a client that reads none of the pongs."""
        server = CardwireServer(tmp_path, **SCRIPTED)
        try:
            server.start()
            with CardClient(server.socket_url) as other:
                before = memory_bytes(server)
                with unread_client(server, "sess_2") as rude:
                    with suppress(ConnectionError):
                        for _ in range(300):
                            rude.sendall(masked_frame(b'{"type":"ping"}') * 1000)
                    until(lambda: "does not read" in server.log, "the stall")
                rise = memory_bytes(server) - before
                assert other.nothing_else() == []
        finally:
            server.close()

        assert rise < 40 * MEGABYTE
