"""What the clients of all benchmarks do: open sessions, give orders, await turns."""

import gc
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count

from benchmarks.orders import Order
from benchmarks.servers import Server
from benchmarks.wire_client import WireConnection, watch

_message_numbers = count(1)


@contextmanager
def sessions(server: Server, session_count: int) -> Iterator[list[WireConnection]]:
    """Give connections to sessions that have had a short turn each.

    What a session costs once (its row, its first turn's code paths) is no part of
    what is measured, on any of the servers.
    """
    with ExitStack() as stack:
        connections = [
            stack.enter_context(server.connect()) for _ in range(session_count)
        ]
        if server.recipe.greets:
            for connection in connections:
                connection.receive()
        for connection in connections:
            give_order(server, connection, Order(count=1))
        await_turns(connections)
        yield connections


def give_order(server: Server, connection: WireConnection, order: Order) -> None:
    """Send an order in the words that the server understands."""
    if not server.recipe.greets:
        connection.send(order.text)
        return
    message = {
        "type": "user.message",
        "event_id": f"order-{next(_message_numbers):010}",
        "content": [{"type": "text", "text": order.text}],
    }
    connection.send(json.dumps(message))


def await_turns(connections: Sequence[WireConnection]) -> None:
    """Count frames until every connection has seen one more turn close."""
    wanted = {each: each.turns_closed + 1 for each in connections}

    def count_frames(connection: WireConnection) -> bool:
        connection.count()
        return connection.turns_closed >= wanted[connection]

    watch(connections, count_frames)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep this process's garbage collector out of a measurement."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
