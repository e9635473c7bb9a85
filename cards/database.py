"""Database work of the sockets, on threads of its own.

Channels and asgiref put all synchronous work of a process on one thread, where one
slow query delays everybody. Here a few threads share it, and their connections are
few and bounded.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
R = TypeVar("R")

#: Threads, and so database connections, for reads and small writes of one process.
WORKERS = 4

#: The threads themselves; everything else goes through `run_in_database`.
executor = ThreadPoolExecutor(WORKERS, thread_name_prefix="cardwire-database")


async def run_in_database(
    function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
) -> R:
    """Run a query or an operation on a database thread and return its result.

    Raises:
        Exception: Whatever the function raises.
    """
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(
        executor, partial(_with_fresh_connection, partial(function, *args, **kwargs))
    )


def _with_fresh_connection(function: Callable[[], R]) -> R:
    close_old_connections()
    try:
        return function()
    finally:
        close_old_connections()
