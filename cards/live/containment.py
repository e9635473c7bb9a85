"""Keeps an engine from ending the process.

asyncio takes SystemExit and KeyboardInterrupt out of any task and ends its loop with
them, and with it every other session. An engine may start tasks of its own, so the
tasks that are made within one are contained wherever they are made. A callback that
it gives to the loop itself is not.
"""

import asyncio
from collections.abc import Coroutine, Generator
from contextvars import Context, ContextVar
from types import TracebackType
from typing import Any

_is_in_engine: ContextVar[bool] = ContextVar("cardwire_is_in_engine", default=False)


class _Contained(Coroutine[Any, Any, Any]):
    """A coroutine whose attempts to end the process are errors like any other."""

    def __init__(self, inner: Coroutine[Any, Any, Any]) -> None:
        self._inner = inner

    def send(self, value: Any) -> Any:
        try:
            return self._inner.send(value)
        except (SystemExit, KeyboardInterrupt) as error:
            raise _as_error(error) from error

    def throw(
        self,
        typ: Any,
        val: BaseException | object = None,
        tb: TracebackType | None = None,
    ) -> Any:
        error = val if isinstance(val, BaseException) else typ
        try:
            return self._inner.throw(error)
        except (SystemExit, KeyboardInterrupt) as exit_:
            raise _as_error(exit_) from exit_

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._inner.__await__()

    def __getattr__(self, name: str) -> Any:
        # asyncio and debuggers look at cr_code, cr_frame, __qualname__ and the like.
        return getattr(self._inner, name)


def _as_error(error: BaseException) -> RuntimeError:
    return RuntimeError(f"the engine raised {error!r}")


class _ContainingFactory:
    """Makes the tasks of a loop, and contains those that are made within an engine.

    Args:
        before: The factory that the loop had; None for its own.
    """

    def __init__(self, before: Any) -> None:
        self._before = before

    def __call__(
        self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any
    ) -> "asyncio.Task[Any]":
        # A context that is handed over may be another one than the one that makes
        # the task; both may be the engine's.
        context: Context | None = options.get("context")
        is_engines = _is_in_engine.get() or (
            context is not None and context.get(_is_in_engine, False)
        )
        if is_engines and asyncio.iscoroutine(coroutine):
            coroutine = _Contained(coroutine)
        if self._before is not None:
            made: asyncio.Task[Any] = self._before(loop, coroutine, **options)
            return made
        return asyncio.Task(coroutine, loop=loop, **options)


def contain_engine(coroutine: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    """Start a task of an engine; neither it nor a task within it ends the process.

    What would have ended it is a RuntimeError in the task where it was raised.
    """
    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()
    if not isinstance(before, _ContainingFactory):
        loop.set_task_factory(_ContainingFactory(before))
    token = _is_in_engine.set(True)
    try:
        # The task, and all that it makes, inherit the mark.
        return loop.create_task(coroutine)
    finally:
        _is_in_engine.reset(token)
