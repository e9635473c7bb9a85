"""No task of an engine ends the process; all other tasks stay as they are."""

import asyncio
import contextvars
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cards.live.containment import contain_engine

#: What asyncio would take out of a task to end its loop with it.
EXITS = [SystemExit(3), KeyboardInterrupt()]

Start = Callable[[BaseException], Awaitable[object]]


async def leave(exception: BaseException) -> None:
    await asyncio.sleep(0)
    raise exception


async def leave_itself(exception: BaseException) -> None:
    await leave(exception)


async def leave_before_it_waits(exception: BaseException) -> None:
    raise exception


async def leave_in_a_task(exception: BaseException) -> None:
    await asyncio.create_task(leave(exception))


async def leave_in_a_group(exception: BaseException) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(leave(exception))
        group.create_task(asyncio.Event().wait())


async def leave_among_others(exception: BaseException) -> None:
    await asyncio.gather(leave(exception), asyncio.sleep(0))


async def leave_in_time(exception: BaseException) -> None:
    await asyncio.wait_for(leave(exception), timeout=30)


async def leave_in_a_task_of_a_task(exception: BaseException) -> None:
    await asyncio.create_task(leave_in_a_task(exception))


async def leave_in_a_thread(exception: BaseException) -> None:
    def work() -> None:
        raise exception

    await asyncio.to_thread(work)


async def leave_when_cancelled(exception: BaseException) -> None:
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise exception

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    await task


async def leave_in_an_empty_context(exception: BaseException) -> None:
    loop = asyncio.get_running_loop()
    await loop.create_task(leave(exception), context=contextvars.Context())


STARTS: list[Start] = [
    leave_itself,
    leave_before_it_waits,
    leave_in_a_task,
    leave_in_a_group,
    leave_among_others,
    leave_in_time,
    leave_in_a_task_of_a_task,
    leave_in_a_thread,
    leave_when_cancelled,
    leave_in_an_empty_context,
]


@pytest.mark.parametrize("exception", EXITS, ids=repr)
@pytest.mark.parametrize("start", STARTS, ids=lambda start: start.__name__)
async def test_an_attempt_to_end_the_process_is_an_error(
    start: Start, exception: BaseException
) -> None:
    async def engine() -> None:
        await start(exception)

    task = contain_engine(engine())
    await asyncio.wait([task])

    error = task.exception()
    if isinstance(error, ExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, RuntimeError)
    assert repr(exception) in str(error)
    assert error.__cause__ is exception


async def test_a_task_that_outlives_its_engine_is_contained() -> None:
    tasks: list[asyncio.Task[None]] = []

    async def engine() -> None:
        tasks.append(asyncio.create_task(leave(SystemExit(3))))

    await contain_engine(engine())
    await asyncio.wait(tasks)

    assert isinstance(tasks[0].exception(), RuntimeError)


async def test_what_a_task_gives_and_raises_else_is_untouched() -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    async def fail() -> None:
        raise OSError("no disk")

    async def engine() -> None:
        assert await asyncio.create_task(answer(), name="answer") == 42
        with pytest.raises(OSError, match="no disk"):
            await asyncio.create_task(fail())
        waiting = asyncio.create_task(asyncio.Event().wait(), name="waiting")
        assert waiting.get_name() == "waiting"
        assert waiting.get_stack() is not None
        assert "Event.wait" in repr(waiting)
        await asyncio.sleep(0)
        waiting.cancel("enough")
        with pytest.raises(asyncio.CancelledError, match="enough"):
            await waiting

    await contain_engine(engine())


async def test_a_task_that_is_cancelled_before_it_begins_is_cancelled() -> None:
    task = contain_engine(leave(SystemExit(3)))
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()


async def test_the_factory_that_the_loop_had_makes_the_tasks() -> None:
    made: list[str] = []

    def make(
        loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any
    ) -> "asyncio.Task[Any]":
        made.append(coroutine.__name__)
        return asyncio.Task(coroutine, loop=loop, **options)

    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()
    loop.set_task_factory(make)
    try:
        with pytest.raises(OSError, match="no disk"):
            await contain_engine(leave_in_a_task(OSError("no disk")))
    finally:
        loop.set_task_factory(before)

    assert made == ["leave_in_a_task", "leave"]


#: Prints what ended it.
SCRIPT = """
import asyncio
from cards.live.containment import contain_engine

async def leave():
    raise SystemExit(7)

async def engine():
    pass

async def serve():
    await contain_engine(engine())
    asyncio.create_task(leave())
    await asyncio.Event().wait()

asyncio.run(serve())
"""


def test_what_the_server_itself_raises_still_ends_it() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], check=False, timeout=60)

    assert ended.returncode == 7
