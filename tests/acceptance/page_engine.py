"""The engine behind the tests of the page; the server names it in CARDWIRE_ENGINE."""

import asyncio

from cards.engine import Turn
from tests.acceptance.engines import ScriptedEngine


class PageEngine(ScriptedEngine):
    """Plays what a browser must cope with, beside the scenarios of the protocol."""

    async def play_many(self, turn: Turn, count: str) -> None:
        async with turn.message() as message:
            await message.text("Let me look into **everything**.")
        for number in range(int(count)):
            async with turn.tool("Bash", input={"command": f"echo {number}"}) as tool:
                tool.result(f"result {number}", render_hint="terminal")

    async def play_work(self, turn: Turn, words: str) -> None:
        async with turn.message() as message:
            await message.text(f"I am at it: {words}.")
        async with turn.tool("Bash", input={"command": "sleep 1000"}):
            await asyncio.Event().wait()

    async def play_brood(self, _turn: Turn, _rest: str) -> None:
        await asyncio.Event().wait()
