"""Run benchmarks and print one line for each result.

Usage: python -m benchmarks [name ...]; without names, all of them. Ends with 1 when
a target is missed.
"""

import os
import sys
from collections.abc import Callable, Sequence
from itertools import chain
from platform import python_version

from benchmarks import (
    bodies,
    latency,
    liveness,
    mentions,
    resume,
    streaming,
    sweeping,
)
from benchmarks.results import Result

BENCHMARKS: dict[str, Callable[[], Sequence[Result]]] = {
    "streaming-one": lambda: [streaming.one_stream()],
    "streaming-many": lambda: [streaming.many_orders(), streaming.many_streams()],
    "latency": lambda: [latency.spread_streams(), latency.streams_in_step()],
    "resume": resume.long_resume,
    "unread": liveness.unread_stream,
    "interrupt": liveness.interrupts,
    "bodies": bodies.large_bodies,
    "mentions": lambda: [
        mentions.share_of_streaming(),
        mentions.growth(),
        mentions.hostile(),
    ],
    "sweep": lambda: [sweeping.expired_prompts()],
}


def main(names: Sequence[str]) -> int:
    """Run the named benchmarks; return the exit status."""
    unknown = [each for each in names if each not in BENCHMARKS]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}")
        return 2
    load = os.getloadavg()[0]
    print(f"machine: cores={os.cpu_count()} load={load} python={python_version()}")
    is_met = True
    for result in chain.from_iterable(
        BENCHMARKS[name]() for name in names or BENCHMARKS
    ):
        print(result, flush=True)
        is_met = is_met and not result.missed
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
