"""The engine that the measured server runs."""

import asyncio
import re
from contextlib import AsyncExitStack

from benchmarks.orders import follow_order, parse_order
from cards.engine import Engine, Turn

#: Orders of turns that open so many cards, and wait until they are stopped.
TOOLS = re.compile(r"(?P<count>\d+) tools")
AGENTS = re.compile(r"(?P<count>\d+) agents in each other")


class BurstEngine(Engine):
    """Streams one message with as many chunks as the user's order says."""

    async def run(self, turn: Turn) -> None:
        """Follow the order in the message; see benchmarks.orders."""
        if tools := TOOLS.fullmatch(turn.input.text):
            await _work_until_stopped(turn, int(tools["count"]))
            return
        if agents := AGENTS.fullmatch(turn.input.text):
            await _delegate_until_stopped(turn, int(agents["count"]))
            return
        order = parse_order(turn.input.text)
        async with turn.message() as message:
            await follow_order(order, message.text)


async def _work_until_stopped(turn: Turn, count: int) -> None:
    async def work(number: int) -> None:
        async with turn.tool(f"Tool{number}"):
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(work(number))


async def _delegate_until_stopped(turn: Turn, count: int) -> None:
    async with AsyncExitStack() as stack:
        for number in range(count):
            await stack.enter_async_context(turn.agent(f"agent{number}"))
        await asyncio.Event().wait()
