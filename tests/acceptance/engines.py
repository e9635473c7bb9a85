"""Engines for the acceptance tests; servers name them in CARDWIRE_ENGINE."""

import asyncio

from django.conf import settings

from cards.engine import Engine, EngineError, PlanStep, Turn


class ScriptedEngine(Engine):
    """Plays the scenario that the message names. Spec: EMIT 14."""

    model = "scripted"

    async def run(self, turn: Turn) -> None:
        word, _, rest = turn.input.text.partition(" ")
        await getattr(self, f"play_{word.lower()}")(turn, rest)

    async def play_hi(self, turn: Turn, _rest: str) -> None:
        async with turn.message() as message:
            await message.text("Hello")
            await message.text(" World!")

    async def play_list(self, turn: Turn, _rest: str) -> None:
        async with turn.message() as message:
            await message.text("Let me check:")
            await message.tool_input('{"command":')
            await message.tool_input('"ls -la"}')
        async with turn.tool(
            "bash", input={"command": "ls -la"}, intent="list files", call_id="toolu_1"
        ) as tool:
            tool.result("a.txt", render_hint="terminal")
        async with turn.message() as message:
            await message.text("Here are the files: a.txt")

    async def play_search(self, turn: Turn, _rest: str) -> None:
        async with turn.message() as message:
            await message.text("Let me search...")
        async with turn.tool(
            "Agent", intent="search auth bugs", call_id="toolu_1"
        ) as tool:
            async with (
                turn.agent("search auth bugs", agent_id="sub_e5") as agent,
                agent.tool("Grep", call_id="toolu_sub_1") as grep,
            ):
                await grep.heartbeat(stage="searching")
                await grep.progress(items_processed=12, items_total=30)
                grep.result("Found 3")
            tool.result("Found 3...")
        async with turn.message() as message:
            await message.text("I found 3 potential...")

    async def play_fetch(self, turn: Turn, _rest: str) -> None:
        async with turn.tool(
            "WebFetch", intent="fetch the paper", call_id="toolu_1"
        ) as tool:
            await tool.heartbeat(stage="connecting")
            await tool.progress(stage="parsing", items_processed=12, items_total=30)
            await tool.progress(
                stage="parsing", items_processed=25, items_total=30, eta_ms=3000
            )

    async def play_stream(self, turn: Turn, count: str) -> None:
        async with turn.message() as message:
            for number in range(int(count)):
                await message.text(f"{number} ")

    async def play_paced(self, turn: Turn, count: str) -> None:
        async with turn.message() as message:
            for number in range(int(count)):
                await message.text(f"{number} ")
                await turn.flush()
                await asyncio.sleep(0.005)

    async def play_wait(self, turn: Turn, _rest: str) -> None:
        """Work in a tool until it is stopped."""
        async with turn.message() as message:
            await message.text("working")
        async with turn.tool("Bash") as tool:
            await tool.heartbeat(stage="running")
            await turn.flush()
            await asyncio.Event().wait()

    async def play_many_tools(self, turn: Turn, count: str) -> None:
        """Work in many tools at once until they are stopped."""

        async def work(number: int) -> None:
            async with turn.tool(f"Bash{number}"):
                await asyncio.Event().wait()

        async with asyncio.TaskGroup() as group:
            for number in range(int(count)):
                group.create_task(work(number))

    async def play_listen(self, turn: Turn, _rest: str) -> None:
        """Repeat what is said into the turn, until that is "enough"."""
        async with turn.message() as message:
            await message.text("listening")
        async for words in turn.injections():
            async with turn.message() as message:
                await message.text(f"you said {words}")
            if words == "enough":
                return

    async def play_boom(self, turn: Turn, _rest: str) -> None:
        async with turn.message() as message:
            await message.text("So far so good")
            async with turn.agent("worker") as agent, agent.tool("Bash"):
                raise RuntimeError("a secret of the engine")

    async def play_exit(self, turn: Turn, where: str) -> None:
        """Try to end the process, from a task, a group of tasks or the engine."""

        async def leave() -> None:
            async with turn.tool("Bash"):
                raise SystemExit(3)

        if where == "task":
            await asyncio.create_task(leave())
        elif where == "group":
            async with asyncio.TaskGroup() as group:
                group.create_task(leave())
                group.create_task(asyncio.Event().wait())
        else:
            await leave()

    async def play_refuse(self, turn: Turn, _rest: str) -> None:
        async with turn.tool("Bash") as tool:
            tool.fail("tool_timeout", "Bash exceeded 120s", code="BASH_TIMEOUT")
        raise EngineError(
            "rate_limit", "429 from upstream", code="UPSTREAM_429", retry_after_ms=5000
        )

    async def play_everything(self, turn: Turn, _rest: str) -> None:
        async with turn.thinking() as thinking:
            await thinking.text("hm")
        async with turn.plan(
            goal="goal",
            steps=[
                PlanStep("s1", "first"),
                PlanStep("s2", "second", depends_on=("s1",)),
            ],
            plan_id="pln_1",
        ) as plan:
            async with plan.step("s1") as step:
                await step.running(attempts=1)
                async with turn.agent("writer") as agent, agent.message() as message:
                    await message.text("done")
                step.finish(output_summary="it is done")
            async with plan.step("s2") as step:
                step.skip()
        await turn.todo("write", status="in_progress")
        await turn.todo("write", status="completed")
        await turn.team("crew", ["ann", "bob"])
        await turn.budget("warning", spent={"tokens": 9}, limit={"tokens": 10})
        await turn.memory_op("compact", "history", 4096)
        for _ in range(2):
            await turn.system(
                "search_capability_gap", "No search", "why", "fix", icon="warning"
            )
        await turn.escalate("react", "plan", "complex")
        await turn.set_title("Everything at once")
        turn.metrics.add(tokens_in=10, tokens_out=2, cost_usd=0.5, model="m1")
        turn.metrics.add(tokens_in=5)

    async def play_history(self, turn: Turn, _rest: str) -> None:
        async with turn.message() as message:
            for role, text, turn_no in turn.history:
                await message.text(f"{turn_no} {role}: {text}\n")

    async def play_odd(self, turn: Turn, _rest: str) -> None:
        loop: list[object] = [1]
        loop.append(loop)
        async with turn.tool("odd", input={"half": "a\ud83d", "nul": "a\0b"}) as tool:
            await tool.progress(progress_pct=float("nan"), items_processed=10**20)
            tool.result({"big": 10**20, "nan": float("nan"), "loop": loop, "o": object})
        async with turn.message() as message:
            await message.text("a\ud83d and \0 and 实验😀")

    async def play_ask(self, turn: Turn, rest: str) -> None:
        if turn.input.continuation is None:
            answer = await turn.ask(rest, options=["red", "blue"])
            async with turn.message() as message:
                await message.text(f"You chose {answer.text}.")

    async def play_your(self, turn: Turn, _rest: str) -> None:
        """Go on with an answer that came after the turn that asked."""
        continuation = turn.input.continuation
        assert continuation is not None
        async with turn.message() as message:
            await message.text(f"{continuation.kind}: {turn.input.text}")

    async def play_race(self, turn: Turn, rest: str) -> None:
        for number in range(int(rest)):
            answer = await turn.ask(f"number {number}?")
            async with turn.tool("Effect") as tool:
                tool.result(answer.text)


class ChaosEngine(Engine):
    """Streams, and does one thing in the world that must not be done twice.

    Each tool that runs leaves a line in `ledger` in the data directory.
    """

    async def run(self, turn: Turn) -> None:
        async with turn.message() as message:
            for number in range(40):
                await message.text(f"{number} ")
                await turn.flush()
        async with turn.tool("Write") as tool:
            await tool.heartbeat(stage="writing")
            await turn.flush()
            with (settings.CARDWIRE_DATA_DIR / "ledger").open("a") as ledger:
                ledger.write(turn.input.event_id + "\n")
            tool.result("written")
        async with turn.agent("worker") as agent, agent.message() as message:
            for number in range(40):
                await message.text(f"{number} ")
                await turn.flush()
