"""The engine that the measured server runs."""

import asyncio

from benchmarks.orders import follow_order, parse_order
from cards.engine import Engine, Turn

#: Tools of the turn that is interrupted.
PARALLEL_TOOLS = 50


class BurstEngine(Engine):
    """Streams one message with as many chunks as the user's order says."""

    async def run(self, turn: Turn) -> None:
        """Follow the order in the message; see benchmarks.orders."""
        if turn.input.text == f"{PARALLEL_TOOLS} tools":
            await _work_until_stopped(turn)
            return
        order = parse_order(turn.input.text)
        async with turn.message() as message:
            await follow_order(order, message.text)


async def _work_until_stopped(turn: Turn) -> None:
    async def work(number: int) -> None:
        async with turn.tool(f"Tool{number}"):
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        for number in range(PARALLEL_TOOLS):
            group.create_task(work(number))
