"""Bursts: how many deltas a second reach the clients, and what one costs."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.clients import await_turns, give_order, sessions, undisturbed
from benchmarks.orders import Order
from benchmarks.results import Result, at_least, at_most
from benchmarks.servers import BARE, CARDWIRE, NAIVE, Server, running

#: Repetitions after one for warming up; the servers take turns, so that a busy
#: machine hits all of them.
ROUNDS = 5

#: Deltas that the naive reference streams in all: enough for its rate.
NAIVE_DELTAS = 2000

#: Seconds for what a server still does after its last frame, such as a checkpoint.
SETTLING_S = 0.1

#: Nanoseconds between the orders and the moment at which all streams begin.
LEAD_NS = 1_500_000_000

TARGETS = (
    at_least("ratio_bare", 0.5),
    at_least("ratio_naive", 25),
    at_most("cpu_us", 15),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """One measured burst."""

    deltas_per_s: float
    cpu_us_per_delta: float
    frame_bytes: float


def measure_burst(
    server: Server, *, session_count: int, deltas: int, is_together: bool = False
) -> Burst:
    """Have every session stream its deltas at once.

    Args:
        is_together: All streams begin at one moment, long after the orders came,
            and the clock runs from there; otherwise it runs from before the first
            order is sent, and taking orders is part of the measurement. It ends when
            the last turn's close has arrived.

    Raises:
        RuntimeError: Frames are missing.
    """
    with sessions(server, session_count) as connections, undisturbed():
        frames = sum(each.frames for each in connections)
        payload_bytes = sum(each.payload_bytes for each in connections)
        start_ns = time.monotonic_ns() + (LEAD_NS if is_together else 0)
        order = Order(count=deltas, start_ns=start_ns if is_together else 0)
        cpu_s = server.cpu_s()
        for connection in connections:
            give_order(server, connection, order)
        if is_together:
            left_s = (start_ns - time.monotonic_ns()) / 1e9 - SETTLING_S
            time.sleep(max(0, left_s))
            cpu_s = server.cpu_s()
        await_turns(connections)
        seconds = (time.monotonic_ns() - start_ns) / 1e9
        time.sleep(SETTLING_S)
        cpu_s = server.cpu_s() - cpu_s
        frames = sum(each.frames for each in connections) - frames
        payload_bytes = sum(each.payload_bytes for each in connections) - payload_bytes
    if frames < session_count * deltas:
        raise RuntimeError(f"{server.recipe.name} lost frames: {frames} came")
    return Burst(
        deltas_per_s=session_count * deltas / seconds,
        cpu_us_per_delta=cpu_s / (session_count * deltas) * 1e6,
        frame_bytes=payload_bytes / frames,
    )


def compare(
    name: str, *, session_count: int, deltas: int, is_together: bool = False
) -> Result:
    """Measure the server and both references in turn; medians and their ratios."""
    deltas_of = {
        CARDWIRE.name: deltas,
        BARE.name: deltas,
        NAIVE.name: NAIVE_DELTAS // session_count,
    }
    bursts: dict[str, list[Burst]] = {name: [] for name in deltas_of}
    with running(CARDWIRE, BARE, NAIVE) as servers:
        for _ in range(1 + ROUNDS):
            for server in servers:
                burst = measure_burst(
                    server,
                    session_count=session_count,
                    deltas=deltas_of[server.recipe.name],
                    is_together=is_together,
                )
                bursts[server.recipe.name].append(burst)
    ours, bare, naive = (_median_burst(each[1:]) for each in bursts.values())
    return Result(
        name,
        {
            "deltas_per_s": ours.deltas_per_s,
            "bare_per_s": bare.deltas_per_s,
            "naive_per_s": naive.deltas_per_s,
            "ratio_bare": ours.deltas_per_s / bare.deltas_per_s,
            "ratio_naive": ours.deltas_per_s / naive.deltas_per_s,
            "cpu_us": ours.cpu_us_per_delta,
            "bare_cpu_us": bare.cpu_us_per_delta,
            "frame_bytes": ours.frame_bytes,
            "bare_frame_bytes": bare.frame_bytes,
        },
        TARGETS,
    )


def _median_burst(bursts: Sequence[Burst]) -> Burst:
    return Burst(
        deltas_per_s=median(each.deltas_per_s for each in bursts),
        cpu_us_per_delta=median(each.cpu_us_per_delta for each in bursts),
        frame_bytes=median(each.frame_bytes for each in bursts),
    )


def one_stream() -> Result:
    """10,000 deltas to one socket."""
    return compare("streaming-1x10000", session_count=1, deltas=10_000)


def many_orders() -> Result:
    """200 deltas to each of 100 sockets, each as soon as its message is accepted."""
    return compare("streaming-100x200", session_count=100, deltas=200)


def many_streams() -> Result:
    """200 deltas to each of 100 sockets, from turns that run already."""
    return compare(
        "streaming-100x200-together", session_count=100, deltas=200, is_together=True
    )
