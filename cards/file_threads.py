"""Work with files, on threads of its own.

A slow disk or a distant storage keeps neither the event loop waiting nor the threads
that read the database.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
