"""What a client that stops reading costs, and how soon a turn stops."""

import json
import time
from collections.abc import Callable
from statistics import median

from benchmarks.clients import await_turns, give_order, sessions, undisturbed
from benchmarks.orders import Order
from benchmarks.results import Result, at_most
from benchmarks.servers import CARDWIRE, Server, data_directory
from benchmarks.wire_client import WireConnection, watch

#: Chunks of 480 bytes on the wire: 200 MB.
CHUNKS = 417_000

INTERRUPTS = 5


def unread_stream() -> list[Result]:
    """200 MB to a session of which one client reads all and another one nothing."""
    with data_directory() as data_dir, Server(CARDWIRE, data_dir) as server:
        with sessions(server, 1):
            pass
        with server.connect("sess_unread") as reader:
            reader.receive()
            give_order(server, reader, Order(count=1))
            await_turns([reader])
            with server.connect("sess_unread") as idle, undisturbed():
                idle.receive()
                memory_bytes = server.memory_bytes()
                server.forget_peak_memory()
                give_order(server, reader, Order(count=CHUNKS))
                await_turns([reader])
                rise_bytes = server.peak_memory_bytes() - memory_bytes
    return [
        Result(
            "unread-200-mb",
            {"memory_rise_mb": rise_bytes / 1e6},
            (at_most("memory_rise_mb", 64),),
        )
    ]


def interrupts() -> list[Result]:
    """From the interrupt to the close of a turn with many open cards."""
    return [
        _interrupted("interrupt-50-tools", "50 tools", 50),
        _interrupted("interrupt-2000-tools", "2000 tools", 2000),
        _interrupted("interrupt-1500-deep", "1500 agents in each other", 1500),
    ]


def _interrupted(name: str, text: str, cards: int) -> Result:
    seconds: list[float] = []
    with (
        data_directory() as data_dir,
        Server(CARDWIRE, data_dir) as server,
        server.connect("sess_interrupt") as connection,
    ):
        connection.receive()
        for number in range(INTERRUPTS):
            seconds.append(_interrupt(connection, f"turn-{number}", text, cards))
    return Result(
        name,
        {"seconds": median(seconds), "slowest_s": max(seconds)},
        (at_most("slowest_s", 1),),
    )


def _interrupt(
    connection: WireConnection, event_id: str, text: str, cards: int
) -> float:
    message = {"type": "user.message", "event_id": event_id, "text": text}
    before = connection.frames
    connection.send(json.dumps(message))
    # The turn's own card, too.
    watch([connection], _counter(before + 1 + cards))
    start = time.perf_counter()
    connection.send(json.dumps({"type": "session.interrupt"}))
    await_turns([connection])
    return time.perf_counter() - start


def _counter(wanted: int) -> Callable[[WireConnection], bool]:
    def count(connection: WireConnection) -> bool:
        connection.count()
        return connection.frames >= wanted

    return count
