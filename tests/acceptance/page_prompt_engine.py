"""The engine behind the tests of prompts on the page."""

import asyncio

from cards.engine import Plan, PlanStep, PromptTimeout, Turn
from tests.acceptance.page_engine import PageEngine

STEPS = (
    PlanStep("s1", "Read the sources", subagent_type="researcher"),
    PlanStep("s2", "Compare them", depends_on=("s1",), prompt="Side by side."),
    PlanStep("s3", "Write the report", depends_on=("s2",)),
)

SUBAGENTS = ("researcher", "writer")

#: What a tool would be given that does not fit on a screen.
LONG_INPUT = "\n".join(f"echo {number}" for number in range(100))


class PromptEngine(PageEngine):
    """Asks what the message names, and says what it was answered."""

    async def say(self, turn: Turn, text: str) -> None:
        async with turn.message() as message:
            await message.text(text)

    async def play_one(self, turn: Turn, _rest: str) -> None:
        answer = await turn.ask(
            "Which colour?", options=["red", "blue"], allow_custom=False
        )
        await self.say(turn, f"approved={answer.approved} text={answer.text!r}")

    async def play_other(self, turn: Turn, _rest: str) -> None:
        answer = await turn.ask("Which colour?", options=["red", "blue"])
        await self.say(turn, f"chosen={list(answer.selected)} own={answer.custom_text}")

    async def play_some(self, turn: Turn, _rest: str) -> None:
        answer = await turn.ask(
            "Which of them?", options=["red", "blue", "green"], multi=True
        )
        await self.say(turn, f"chosen={list(answer.selected)} own={answer.custom_text}")

    async def play_free(self, turn: Turn, rest: str) -> None:
        answer = await turn.ask(rest or "What is it called?")
        await self.say(turn, f"You said: {answer.text}")

    async def play_hasty(self, turn: Turn, rest: str) -> None:
        try:
            await turn.ask("Quickly, which?", timeout=float(rest))
        except PromptTimeout:
            await self.say(turn, "Too late.")

    async def play_permit(self, turn: Turn, command: str) -> None:
        given = await turn.permission(
            "Bash", {"command": command}, message="I want to look around."
        )
        remembered = "remembered" if given.remembered else "asked"
        await self.say(
            turn,
            f"{given.approved} for {given.scope}, {remembered}, {given.message!r}",
        )

    async def play_script(self, turn: Turn, _rest: str) -> None:
        await turn.permission("Bash", LONG_INPUT, is_read_only=True)

    async def play_hidden(self, turn: Turn, _rest: str) -> None:
        await turn.permission(
            "<b>Bash</b>",
            "ls \u202e<img src=x onerror='window.owned = 1'>",
            options=[{"label": "<i>Fine</i>", "allow": True}],
        )

    async def play_both(self, turn: Turn, _rest: str) -> None:
        async with asyncio.TaskGroup() as group:
            for name in ("first", "second"):
                group.create_task(self._ask_in_agent(turn, name))

    async def _ask_in_agent(self, turn: Turn, name: str) -> None:
        async with turn.agent(f"{name} agent") as agent:
            answer = await agent.ask(f"What does the {name} one say?")
            async with agent.message() as message:
                await message.text(f"{name}: {answer.text}")

    async def play_review(self, turn: Turn, _rest: str) -> None:
        plan = Plan("Compare two papers", steps=list(STEPS), rationale="One by one.")
        review = await turn.review_plan(plan, available_subagents=SUBAGENTS)
        steps = "; ".join(
            f"{step.id} {step.description} ({step.subagent_type})"
            f" after {list(step.depends_on)}"
            for step in review.steps
        )
        await self.say(
            turn,
            f"approved={review.approved} edited={review.edited}"
            f" reason={review.reason!r}: {steps}",
        )

    async def play_decide(self, turn: Turn, rest: str) -> None:
        decided = await turn.decide_step(
            scope="step",
            step_id="s2",
            step_description="Compare the papers",
            reason="rate limit exceeded (+2 more)",
            attempts=3,
            allow_retry=rest == "again",
        )
        await self.say(turn, f"{decided.decision}, {decided.note!r}")
