"""Threads that read files."""

import subprocess
import sys

import pytest

from cards.file_threads import run_with_source

_STUCK = """
import asyncio, threading
from cards.file_threads import run_with_source

async def main() -> None:
    reading = asyncio.create_task(run_with_source(threading.Event().wait))
    await asyncio.wait({reading}, timeout=0)
    reading.cancel()

asyncio.run(main())
print("over")
"""


class TestRunWithSource:
    async def test_gives_what_the_function_returns_or_raises(self) -> None:
        def fail() -> None:
            raise OSError("gone")

        assert await run_with_source(lambda: 1) == 1
        with pytest.raises(OSError, match="gone"):
            await run_with_source(fail)

    def test_lets_the_process_end_although_it_never_returns(self) -> None:
        ended = subprocess.run(
            [sys.executable, "-c", _STUCK],
            capture_output=True,
            check=True,
            text=True,
            timeout=60,
        )

        assert ended.stdout == "over\n"
