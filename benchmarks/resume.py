"""Replay of a long log: how fast, and how much memory the server needs for it."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.clients import await_turns, give_order, sessions, undisturbed
from benchmarks.orders import Order
from benchmarks.results import Result, at_least, at_most
from benchmarks.servers import BARE, CARDWIRE, Server, data_directory, running
from benchmarks.streaming import measure_burst
from benchmarks.wire_client import WireConnection, watch

DELTAS = 100_000
ROUNDS = 3

#: Seconds that the slow client rests after each read of at most 256 kB: 16 MB/s.
SLOW_REST_S = 0.016


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One measured resume from the first frame."""

    frames_per_s: float
    memory_rise_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """A session with a long log."""

    session_id: str
    trace_id: str
    last_seq: int


def store_session(data_dir: Path) -> StoredSession:
    """Have a server stream 100,000 deltas into its log."""
    with Server(CARDWIRE, data_dir) as server, server.connect() as connection:
        opened = json.loads(connection.receive())
        give_order(server, connection, Order(count=DELTAS))
        await_turns([connection])
        return StoredSession(
            session_id=opened["envelope"]["session_id"],
            trace_id=opened["payload"]["inner"]["trace_id"],
            last_seq=connection.frames - 1,
        )


def measure_replay(data_dir: Path, stored: StoredSession, *, is_slow: bool) -> Replay:
    """Resume the session from a server that has just started.

    A fresh process has no memory to spare that an earlier burst left behind, and
    none of the frames. The rise is the peak of its resident memory above what it
    was after a short turn of another session.

    Raises:
        RuntimeError: The replay does not hold exactly the stored frames.
    """
    with Server(CARDWIRE, data_dir) as server:
        with sessions(server, 1):
            pass
        with server.connect(stored.session_id) as connection, undisturbed():
            connection.receive()
            memory_bytes = server.memory_bytes()
            server.forget_peak_memory()
            frames, seconds = _replay(connection, stored, is_slow=is_slow)
            rise_bytes = server.peak_memory_bytes() - memory_bytes
    if frames != stored.last_seq:
        raise RuntimeError(f"{frames} frames came instead of {stored.last_seq}")
    return Replay(frames_per_s=frames / seconds, memory_rise_mb=rise_bytes / 1e6)


def _replay(
    connection: WireConnection, stored: StoredSession, *, is_slow: bool
) -> tuple[int, float]:
    start = time.perf_counter()
    connection.send(
        json.dumps(
            {"type": "session.resume", "trace_id": stored.trace_id, "last_seq": 0}
        )
    )
    resumed = json.loads(connection.receive())["payload"]
    if resumed["kind"] != "resumed":
        raise RuntimeError(f"no resume: {resumed}")
    before = connection.frames
    watch([connection], _reader(before + stored.last_seq, is_slow=is_slow))
    return connection.frames - before, time.perf_counter() - start


def _reader(wanted: int, *, is_slow: bool) -> Callable[[WireConnection], bool]:
    def read(connection: WireConnection) -> bool:
        connection.count()
        if is_slow:
            time.sleep(SLOW_REST_S)
        return connection.frames >= wanted

    return read


def long_resume() -> list[Result]:
    """100,000 frames to a client that reads as fast as it can, and to a slow one."""
    fast: list[Replay] = []
    bare_rates: list[float] = []
    with data_directory() as data_dir:
        stored = store_session(data_dir)
        with running(BARE) as (bare_server,):
            for _ in range(ROUNDS):
                fast.append(measure_replay(data_dir, stored, is_slow=False))
                bare = measure_burst(bare_server, session_count=1, deltas=10_000)
                bare_rates.append(bare.deltas_per_s)
        slow = measure_replay(data_dir, stored, is_slow=True)
    rate, bare_rate = median(each.frames_per_s for each in fast), median(bare_rates)
    memory_target = at_most("memory_rise_mb", 30)
    return [
        Result(
            "resume-100000",
            {
                "frames_per_s": rate,
                "bare_per_s": bare_rate,
                "ratio_bare": rate / bare_rate,
                "memory_rise_mb": max(each.memory_rise_mb for each in fast),
            },
            (at_least("frames_per_s", 50_000), memory_target),
        ),
        Result(
            "resume-100000-slow-client",
            {
                "frames_per_s": slow.frames_per_s,
                "memory_rise_mb": slow.memory_rise_mb,
            },
            (memory_target,),
        ),
    ]
