"""The engine behind the tests of the page; the server names it in CARDWIRE_ENGINE."""

import asyncio

from cards.engine import Plan, PlanStep, Turn
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

    async def play_choose(self, turn: Turn, _rest: str) -> None:
        answer = await turn.ask("Which toppings?", options=["ham", "figs"], multi=True)
        await self._tell(turn, answer.text or "nothing")

    async def play_allow(self, turn: Turn, command: str) -> None:
        given = await turn.permission("Bash", {"command": command}, message="Sure?")
        await self._tell(turn, f"{given.approved} {given.scope} {given.message}")

    async def play_both(self, turn: Turn, _rest: str) -> None:
        async with asyncio.TaskGroup() as group:
            first = group.create_task(turn.ask("First?"))
            second = group.create_task(turn.ask("Second?"))
        await self._tell(turn, f"{first.result().text} {second.result().text}")

    async def play_review(self, turn: Turn, _rest: str) -> None:
        steps = [PlanStep("s1", "look"), PlanStep("s2", "write", depends_on=["s1"])]
        review = await turn.review_plan(Plan("A report", steps))
        words = ", ".join(step.description for step in review.steps)
        await self._tell(
            turn, f"{review.approved} {review.edited} {review.reason}: {words}"
        )

    async def play_decide(self, turn: Turn, rest: str) -> None:
        decision = await turn.decide_step(
            scope="step", step_id="s2", reason="rate limit", allow_retry=rest == "retry"
        )
        await self._tell(turn, decision.decision)

    async def _tell(self, turn: Turn, text: str) -> None:
        async with turn.message() as message:
            await message.text(f"I heard: {text}")
