"""Paced streams: how long a delta takes from the engine's call to the client."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from benchmarks.clients import give_order, sessions, undisturbed
from benchmarks.orders import Order, emitted_ns
from benchmarks.results import Result, Target, at_most
from benchmarks.servers import BARE, CARDWIRE, Server, running
from benchmarks.wire_client import WireConnection, watch

SESSIONS = 100

#: 100 sessions with a delta every 50 ms are 2,000 a second, for three seconds.
PERIOD_MS = 50
DELTAS = 60

#: Repetitions, the servers in turn.
ROUNDS = 3

#: Nanoseconds between the last order and the first delta that is due.
LEAD_NS = 1_000_000_000


def measure_latencies_ms(server: Server, *, is_in_step: bool) -> list[float]:
    """Return the milliseconds that each delta took, in no particular order.

    The clock runs from just before the engine's call until the client's read
    returned.

    Args:
        is_in_step: Whether all sessions emit at the same moment; otherwise they are
            spread evenly over the period.
    """
    spread_ns = 0 if is_in_step else PERIOD_MS * 1_000_000 // SESSIONS
    latencies_ms: list[float] = []

    def read_stamps(connection: WireConnection) -> bool:
        now_ns = time.monotonic_ns()
        for frame in connection.take():
            then_ns = emitted_ns(frame)
            if then_ns is not None:
                latencies_ms.append((now_ns - then_ns) / 1e6)
        # One turn was the warm-up.
        return connection.turns_closed > 1

    with sessions(server, SESSIONS) as connections, undisturbed():
        start_ns = time.monotonic_ns() + LEAD_NS
        for number, connection in enumerate(connections):
            order = Order(
                count=DELTAS,
                period_ms=PERIOD_MS,
                start_ns=start_ns + number * spread_ns,
            )
            give_order(server, connection, order)
        watch(connections, read_stamps)
    if len(latencies_ms) != SESSIONS * DELTAS:
        raise RuntimeError(
            f"{server.recipe.name} lost deltas: {len(latencies_ms)} came"
        )
    return latencies_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """What one round found."""

    p50_ms: float
    p99_ms: float
    max_ms: float


def compare(name: str, *targets: Target, is_in_step: bool) -> Result:
    """Measure the bare reference, which is the floor, and the server in turn."""
    rounds: dict[str, list[Latency]] = {CARDWIRE.name: [], BARE.name: []}
    with running(CARDWIRE, BARE) as servers:
        for _ in range(ROUNDS):
            for server in servers:
                latencies_ms = measure_latencies_ms(server, is_in_step=is_in_step)
                rounds[server.recipe.name].append(_latency(latencies_ms))
    ours, bare = (_median_latency(each) for each in rounds.values())
    return Result(
        name,
        {
            "p50_ms": ours.p50_ms,
            "p99_ms": ours.p99_ms,
            "max_ms": ours.max_ms,
            "bare_p50_ms": bare.p50_ms,
            "bare_p99_ms": bare.p99_ms,
            "ratio_p99": ours.p99_ms / bare.p99_ms,
        },
        targets,
    )


def _latency(latencies_ms: Sequence[float]) -> Latency:
    percentiles = quantiles(latencies_ms, n=100)
    return Latency(
        p50_ms=percentiles[49], p99_ms=percentiles[98], max_ms=max(latencies_ms)
    )


def _median_latency(rounds: Sequence[Latency]) -> Latency:
    return Latency(
        p50_ms=median(each.p50_ms for each in rounds),
        p99_ms=median(each.p99_ms for each in rounds),
        max_ms=median(each.max_ms for each in rounds),
    )


def spread_streams() -> Result:
    """2,000 deltas a second, evenly spread over 100 sessions."""
    return compare("latency-100x20hz", at_most("p99_ms", 10), is_in_step=False)


def streams_in_step() -> Result:
    """2,000 deltas a second, in volleys of 100, for comparison with the bare server.

    The last of a volley waits for 99 others, whoever the server is.
    """
    return compare("latency-100x20hz-in-step", is_in_step=True)
