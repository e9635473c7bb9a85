"""Many sockets at once: that die without a word, and that all come back together.

Spec: Rulings E5, E26; cases FR-135, FR-141, FR-175, FR-181.
"""

import asyncio
import json
import os
import resource
import socket
import struct
from collections.abc import Callable

import redis
from websockets.asyncio.client import connect

from tests.acceptance.client import CardClient
from tests.acceptance.test_liveness import on, workers
from tests.services import REDIS_URL, CardwireServer, until

__all__ = ["workers"]  # the fixture

CROWD = 300


def open_sockets(server: CardwireServer) -> int:
    """Return how many sockets the server process holds."""
    directory = f"/proc/{server.pid}/fd"
    links = []
    for name in os.listdir(directory):
        try:
            links.append(os.readlink(f"{directory}/{name}"))
        except FileNotFoundError:
            continue
    return sum(link.startswith("socket:") for link in links)


def drop(client: CardClient) -> None:
    """Reset the connection, as a machine that is switched off would."""
    raw = client.socket.socket
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.close()


class TestSocketsThatEnd:
    def test_leave_nothing_behind_however_they_end(
        self, own_server: CardwireServer
    ) -> None:
        """Case FR-175: in the middle of a turn, and the turn goes on."""
        with on(own_server, "sess_1") as watcher:
            watcher.say("wait", event_id="c1")
            watcher.until(lambda frame: frame["type"] == "card.tick")
            before = open_sockets(own_server)
            ends: list[Callable[[CardClient], None]] = [
                lambda client: client.socket.close(1000),
                lambda client: client.socket.close(1001),
                drop,
                lambda client: client.socket.socket.shutdown(socket.SHUT_RDWR),
            ]
            clients = [on(own_server, "sess_1") for _ in range(5) for _ in ends]
            assert open_sockets(own_server) == before + len(clients)
            for number, client in enumerate(clients):
                ends[number % len(ends)](client)

            until(lambda: open_sockets(own_server) == before, "sockets to be closed")
            watcher.send({"type": "session.interrupt"})
            assert watcher.until_turn_ends()[-1]["payload"]["status"] == "cancelled"


class TestCrowdThatComesBack:
    def test_is_served_at_once(self, own_server: CardwireServer) -> None:
        """Case FR-181: all clients in the second after a restart."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        with on(own_server, "sess_1") as client:
            client.say("stream 20")
            client.until_turn_ends()
            wanted = client.raw[1:]
            trace_id = client.trace_id
        own_server.kill()
        own_server.start_again()

        async def come_back() -> list[str]:
            url = f"{own_server.socket_url}?session_id=sess_1"
            async with connect(url, open_timeout=60) as client:
                await client.recv()
                resume = {"type": "session.resume", "trace_id": trace_id, "last_seq": 0}
                await client.send(json.dumps(resume))
                await client.recv()
                return [str(await client.recv()) for _ in wanted]

        async def all_come_back() -> list[list[str]]:
            return await asyncio.gather(*(come_back() for _ in range(CROWD)))

        for got in asyncio.run(all_come_back()):
            assert got == wanted


class TestTwoWorkersUnderLoad:
    def test_lose_no_frame_of_a_burst(
        self, workers: tuple[CardwireServer, CardwireServer]
    ) -> None:
        """Case FR-135: a thousand appends without a pause, seen from elsewhere."""
        first, other = workers
        with on(first, "sess_burst") as here:
            here.say("hi")
            here.until_turn_ends()
            with on(other, "sess_burst") as there:
                here.say("stream 1000")
                assert there.until_turn_ends() == here.until_turn_ends()

    def test_leave_no_keys_of_dead_clients(
        self, workers: tuple[CardwireServer, CardwireServer]
    ) -> None:
        """Case FR-141: the channel layer has channels of workers, not of sockets."""
        layer = redis.Redis.from_url(REDIS_URL)
        with on(workers[0], "sess_keys") as watcher:
            watcher.say("hi")
            watcher.until_turn_ends()
            # Workers that were killed before us are still members for a while.
            before = len(layer.keys("asgi*"))
            clients = [on(server, "sess_keys") for server in workers for _ in range(25)]
            for client in clients:
                drop(client)
            watcher.say("stream 500")
            watcher.until_turn_ends()

        assert len(layer.keys("asgi*")) <= before + len(workers)
