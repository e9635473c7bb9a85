"""A client that does not read costs no memory and loses nothing."""

import re
from pathlib import Path

from tests.acceptance.client import CardClient, seqs_of
from tests.services import CardwireServer

MEGABYTE = 1024 * 1024


def memory_bytes(server: CardwireServer) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


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
