"""The workspace as handlers use it: disk work on threads of its own."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

from cards.engines.workspace.disk import Disk
from cards.engines.workspace.limits import Limits

P = ParamSpec("P")
T = TypeVar("T")

# Threads for the disk. Not the loop's default ones: a slow disk here must not hold up
# whoever else uses those.
_THREADS = 4


class Workspace:
    """One workspace and the threads that touch it.

    Args:
        root: Its folder; see `drafts.fill_once`.
        limits: The caps.
    """

    def __init__(self, root: Path, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.disk = Disk(root, self.limits)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="workspace")

    async def off_loop(
        self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return what blocking work returns, run on a thread of the workspace.

        A cancelled caller does not stop a thread, so work is cut into short pieces.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: work(*args, **kwargs))
