"""The shape of every reply: say what comes, show the tool, say what came of it.

Spec: EMIT 14.1, 14.2.
"""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from cards.engines.workspace.failures import WorkspaceFailure
from cards.engines.workspace.permitting import Permission, permitted
from cards.engines.workspace.surface import Scope, Tool
from cards.engines.workspace.wording import chunks_of

T = TypeVar("T")

# Pieces in which the input of a tool is streamed at most, and their least size.
_INPUT_PIECES = 40
_INPUT_PIECE_CHARS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """One tool call as it is announced."""

    #: What the assistant says before it.
    opening: str
    #: Of the tool.
    name: str
    input: Mapping[str, object]
    #: What the call is for.
    intent: str
    #: Looks at what the call would do and returns what the user has to allow first;
    #: None for nothing.
    look: Callable[[], Awaitable[Permission | None]] | None = None


#: Does the work of a tool call, records its result, returns the answer in Markdown.
Job = Callable[[Tool], Coroutine[Any, Any, str]]


async def say(scope: Scope, text: str) -> None:
    """Send a message, streamed in chunks of a few words."""
    async with scope.message() as message:
        for chunk in chunks_of(text):
            await message.text(chunk)


async def say_paced(
    scope: Scope, opening: str, chunks: list[str], pace_ms: int
) -> None:
    """Send a message chunk by chunk with a pause after each.

    Args:
        scope: Where the message goes.
        opening: What it begins with, without a pause.
        chunks: What follows.
        pace_ms: Milliseconds between two chunks.
    """
    async with scope.message() as message:
        if opening:
            await message.text(opening)
        for chunk in chunks:
            await message.text(chunk)
            await asyncio.sleep(pace_ms / 1000)


async def announce(scope: Scope, use: ToolUse) -> None:
    """Send the message that a tool call follows: its text, then the tool's input."""
    text = json.dumps(use.input, ensure_ascii=False)
    size = max(_INPUT_PIECE_CHARS, -(-len(text) // _INPUT_PIECES))
    async with scope.message() as message:
        for chunk in chunks_of(use.opening):
            await message.text(chunk)
        for start in range(0, len(text), size):
            await message.tool_input(text[start : start + size])


async def perform(
    scope: Scope, use: ToolUse, job: Job, *, heartbeat_seconds: float
) -> str:
    """Show a tool card around `job`, with heartbeats while it works.

    Returns:
        The answer of the job; of an expected failure its sentence, after the card
        was failed with it.
    """
    async with scope.tool(use.name, input=use.input, intent=use.intent) as tool:
        try:
            asked = await use.look() if use.look is not None else None
            if asked is not None:
                # Without heartbeats: the answer may take days.
                await permitted(scope, tool, use.name, asked)
            return await _alive(tool, job(tool), heartbeat_seconds)
        except WorkspaceFailure as failure:
            tool.fail(failure.error_type, failure.sentence, code=failure.reason_code)
            return failure.sentence


async def reply(
    scope: Scope, use: ToolUse, job: Job, *, heartbeat_seconds: float
) -> None:
    """Announce a tool call, make it and say what came of it."""
    await announce(scope, use)
    answer = await perform(scope, use, job, heartbeat_seconds=heartbeat_seconds)
    await say(scope, answer)


async def _alive(
    tool: Tool, work: Coroutine[Any, Any, T], heartbeat_seconds: float
) -> T:
    """Return what the work gives; the card shows a heartbeat until then."""
    task = asyncio.create_task(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=heartbeat_seconds)
            if not task.done():
                await tool.heartbeat(stage="working")
        return await task
    finally:
        await _stop(task)


async def _stop(task: asyncio.Task[T]) -> None:
    """End the task before its card closes; a finished one is left alone.

    A second interrupt does not cut this short: whoever called is on the way out with
    an exception already, and the task would be left running under a closed card.
    """
    if task.done():
        return
    task.cancel()
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            # Not `gather`: what the task raises while it ends is not ours to raise.
            await asyncio.wait({task})
