"""Work with files, on threads of its own.

A slow disk or a distant storage keeps neither the event loop waiting nor the threads
that read the database.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: How many files one process reads and writes at a time.
FILE_THREADS = 8

_files = ThreadPoolExecutor(FILE_THREADS, thread_name_prefix="cardwire-files")


async def run_with_files(
    function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
) -> R:
    """Run a function that reads or writes files, and return its result.

    It goes on to its end although nobody waits for it any more.

    Raises:
        Exception: Whatever the function raises.
    """
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_files, partial(function, *args, **kwargs))


async def run_with_source(function: Callable[[], R]) -> R:
    """Run a function that reads what somebody else wrote to be read; return its result.

    Reading it may last for ever, such as that of a pipe. So it gets a thread of its
    own: it takes none from other files, and the process ends without it. It goes on
    although nobody waits for it any more.

    Raises:
        Exception: Whatever the function raises.
    """
    result: Future[R] = Future()
    # From here on cancelling whoever waits leaves it alone.
    result.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result.set_result(function())
        # Whoever waits gets it, whatever it is.
        except BaseException as error:  # noqa: BLE001
            result.set_exception(error)

    threading.Thread(target=run, name="cardwire-source", daemon=True).start()
    return await asyncio.wrap_future(result)
