"""What a turn and an agent can both do, and how agents nest."""

import asyncio
import re
from typing import Any

import pytest

from cards.engine import EngineError
from cards.engine.scope import Scope
from cards.protocol.errors import LocalProtocolError
from tests.unit.cards.engine.stage import Frame, Log, Stage


def agents_of(frames: list[Frame]) -> set[str]:
    return {frame["envelope"]["agent_id"] for frame in frames}


class TestParentOfTools:
    """Spec: EMIT 14.2; engine-api.md, Scopes."""

    async def test_is_the_last_message_of_the_scope(self, stage: Stage) -> None:
        async with stage.turn.message():
            pass
        async with stage.turn.message() as last:
            pass
        async with stage.turn.tool("one") as one, stage.turn.tool("two") as two:
            pass

        log = await stage.log()
        assert log.parent(one.card_id) == last.card_id
        assert log.parent(two.card_id) == last.card_id

    async def test_is_the_turn_before_any_message(self, stage: Stage) -> None:
        async with stage.turn.tool("Bash") as tool:
            pass

        assert (await stage.log()).parent(tool.card_id) == "turn_1"

    async def test_is_the_agent_before_its_first_message(self, stage: Stage) -> None:
        async with stage.turn.message(), stage.turn.agent("x") as agent:
            async with agent.tool("Bash") as tool:
                pass

        assert (await stage.log()).parent(tool.card_id) == agent.card_id

    async def test_is_not_a_message_that_was_never_entered(self, stage: Stage) -> None:
        stage.turn.message()
        async with stage.turn.tool("Bash") as tool:
            pass

        assert (await stage.log()).parent(tool.card_id) == "turn_1"

    async def test_of_parallel_tasks_are_their_own_messages(self, stage: Stage) -> None:
        """Case FR-189."""
        both = asyncio.Barrier(2)
        pairs = []

        async def work() -> None:
            async with stage.turn.message() as message:
                await both.wait()
            await both.wait()
            async with stage.turn.tool("Bash") as tool:
                pairs.append((tool.card_id, message.card_id))

        await asyncio.gather(work(), work())

        log = await stage.log()
        assert [log.parent(tool) for tool, _ in pairs] == [m for _, m in pairs]

    async def test_is_a_message_that_another_task_finished(self, stage: Stage) -> None:
        async def speak() -> str:
            async with stage.turn.message() as message:
                return message.card_id

        message_id = await asyncio.create_task(speak())
        async with stage.turn.tool("Bash") as tool:
            pass

        assert (await stage.log()).parent(tool.card_id) == message_id


class TestAgent:
    async def test_opens_with_what_it_is(self, stage: Stage) -> None:
        """Spec: EMIT 10."""
        async with stage.turn.agent(
            "researcher", task_prompt="find X", subagent_type="web", agent_type="async"
        ):
            pass

        frame = (await stage.log()).only("agent")
        assert frame["payload"] == {
            "name": "researcher",
            "agent_type": "async",
            "subagent_type": "web",
            "parent_agent_id": "main",
            "task_prompt": "find X",
        }
        assert frame["hint"]["title"] == "researcher"

    async def test_is_its_card_on_all_its_frames(self, stage: Stage) -> None:
        """Spec: EMIT 3.2; Ruling E7."""
        async with stage.turn.agent("x", agent_id="sub_e5") as agent:
            async with agent.message() as message:
                await message.text("hi")
            async with agent.tool("Grep") as tool:
                await tool.heartbeat()
            await agent.todo("one")
        async with stage.turn.tool("after") as after:
            pass

        log = await stage.log()
        inside = log.frames[1 : -len(log.of(after.card_id))]
        assert agents_of(inside) == {"sub_e5"}
        assert {f["envelope"]["agent_role"] for f in inside} == {"worker"}
        (run_id,) = {f["envelope"]["agent_run_id"] for f in inside}
        assert re.fullmatch("run_[0-9a-f]{16}", run_id)
        assert agents_of(log.of(after.card_id)) == {"main"}
        assert log.of(after.card_id)[0]["envelope"]["agent_run_id"] == "run_1"

    @pytest.mark.parametrize("agent_id", ["main", "a b", "", "x" * 65, "turn_1"])
    async def test_of_an_id_that_it_may_not_have_gets_another(
        self, stage: Stage, agent_id: str
    ) -> None:
        async with stage.turn.agent("x", agent_id=agent_id) as agent:
            assert re.fullmatch("sub_[0-9a-f]{16}", agent.agent_id)
            assert agent.agent_id == agent.card_id

    async def test_finishes_with_what_it_gave(self, stage: Stage) -> None:
        async with stage.turn.agent(" ") as agent:
            agent.finish(output_summary="found 3", num_turns=2)

        log = await stage.log()
        assert log.only("agent")["payload"]["name"] == "agent"
        assert log.inner(agent.card_id) == {"output_summary": "found 3", "num_turns": 2}

    async def test_refuses_another_type(self, stage: Stage) -> None:
        agent_type: Any = "remote"

        with pytest.raises(ValueError, match="allowed: sync, async"):
            stage.turn.agent("x", agent_type=agent_type)

    async def test_opens_nothing_before_it_is_entered(self, stage: Stage) -> None:
        agent = stage.turn.agent("x")

        with pytest.raises(LocalProtocolError):
            await agent.tool("Bash").__aenter__()
        assert len((await stage.log()).frames) == 1

    async def test_shares_the_topics_of_the_session(self, stage: Stage) -> None:
        await stage.turn.system("gap", "Gap")
        async with stage.turn.agent("x") as agent:
            await agent.system("gap", "Gap")

        assert len((await stage.log()).added("system")) == 1

    async def test_of_depth_four_leads_to_the_turn(self, stage: Stage) -> None:
        """Case FR-191."""
        path: list[str] = []

        async def descend(scope: Scope, depth: int) -> None:
            async with scope.agent(f"level {depth}", agent_id=f"a{depth}") as agent:
                path.insert(0, agent.card_id)
                if depth < 4:
                    await asyncio.create_task(descend(agent, depth + 1))
                else:
                    async with agent.message(), agent.tool("Bash", call_id="leaf"):
                        pass

        await descend(stage.turn, 1)

        log = await stage.log()
        assert log.ancestors("leaf")[1:] == ["a4", "a3", "a2", "a1", "turn_1"]
        callers = [f["payload"]["parent_agent_id"] for f in log.added("agent")]
        assert callers == ["main", "a1", "a2", "a3"]
        assert agents_of(log.of("leaf")) == {"a4"}

    async def test_that_fails_deep_inside_fails_all_around(self, stage: Stage) -> None:
        with pytest.raises(EngineError):
            async with stage.turn.agent("a") as a, a.agent("b") as b, b.tool("Bash"):
                raise EngineError("max_turns", "too many")

        log = await stage.log()
        assert log.closes() == [
            ("tool", "failed"),
            ("agent", "failed"),
            ("agent", "failed"),
        ]


class TestParallelAgents:
    """Cases FR-187, FR-189, HC-13: two of one name, three tools each."""

    @pytest.fixture(name="log")
    async def _log(self, stage: Stage) -> Log:
        async def research(words: str, ends_first: int) -> None:
            async with stage.turn.tool("Agent", call_id=f"call_{words}") as call:
                async with stage.turn.agent("researcher", agent_id=words) as agent:
                    async with agent.message() as message:
                        for word in words:
                            await message.text(word)
                            await asyncio.sleep(0)
                    await use_tools(agent, words, ends_first)
                call.result(words)

        async with stage.turn.message():
            pass
        await asyncio.gather(research("abc", 0), research("xyz", 2))
        return await stage.log()

    def of_agent(self, log: Log, agent_id: str) -> list[Frame]:
        return [f for f in log.frames if f["envelope"]["agent_id"] == agent_id]

    async def test_are_each_under_their_own_call(self, log: Log) -> None:
        assert log.parent("abc") == "call_abc"
        assert log.parent("xyz") == "call_xyz"

    async def test_do_not_mix_their_texts(self, log: Log) -> None:
        messages = {
            frame["envelope"]["agent_id"]: log.text(frame["envelope"]["card_id"])
            for frame in log.added("message")
        }

        assert messages == {"main": "", "abc": "abc", "xyz": "xyz"}

    @pytest.mark.parametrize("agent_id", ["abc", "xyz"])
    async def test_hold_their_own_tools(self, log: Log, agent_id: str) -> None:
        tools = [
            frame["envelope"]["card_id"]
            for frame in self.of_agent(log, agent_id)
            if frame["type"] == "card.add" and frame["envelope"]["card_kind"] == "tool"
        ]

        assert tools == [f"{agent_id}_{number}" for number in range(3)]
        assert all(agent_id in log.ancestors(tool) for tool in tools)

    async def test_add_each_parent_before_its_child(self, log: Log) -> None:
        seen = {"turn_1"}
        for frame in log.frames[1:]:
            envelope = frame["envelope"]
            if frame["type"] == "card.add":
                assert envelope["parent_card_id"] in seen
                seen.add(envelope["card_id"])
            assert envelope["card_id"] in seen


async def use_tools(agent: Scope, name: str, ends_first: int) -> None:
    """Run three tools at once that end in another order than they began."""
    first_is_done = asyncio.Event()

    async def use(number: int) -> None:
        async with agent.tool("Grep", call_id=f"{name}_{number}") as tool:
            if number != ends_first:
                await first_is_done.wait()
            tool.result(number)
        first_is_done.set()

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(use(number))


class TestTodo:
    async def test_is_updated_under_its_subject(self, stage: Stage) -> None:
        """Spec: EMIT 10; Ruling E11."""
        await stage.turn.todo("write", owner="ann", active_form="writing")
        await stage.turn.todo("read")
        await stage.turn.todo("write", status="completed")

        log = await stage.log()
        added = log.added("todo")
        assert [f["payload"] for f in added] == [
            {
                "subject": "write",
                "status": "pending",
                "owner": "ann",
                "active_form": "writing",
            },
            {"subject": "read", "status": "pending"},
        ]
        (change,) = log.of(added[0]["envelope"]["card_id"], "card.set")
        assert change["payload"] == {"status": "completed"}

    async def test_without_a_subject_is_updated_as_well(self, stage: Stage) -> None:
        await stage.turn.todo("")
        await stage.turn.todo("", status="completed")

        assert (await stage.log()).frames[-1]["payload"] == {"status": "completed"}

    async def test_refuses_another_status(self, stage: Stage) -> None:
        status: Any = "done"

        with pytest.raises(ValueError, match="allowed: pending, in_progress"):
            await stage.turn.todo("write", status=status)


class TestLeaves:
    async def test_hang_under_the_innermost_block(self, stage: Stage) -> None:
        async with stage.turn.agent("x") as agent:
            await agent.team("crew", ["ann", "bob"])
            await agent.budget("warning", spent={"tokens": 9}, limit={"usd": 1})
            await agent.memory_op("compact", "history", 4096)
            await agent.todo("one")

        log = await stage.log()
        leaves = [log.only(kind) for kind in ("team", "budget", "memory_op", "todo")]
        assert [leaf["payload"] for leaf in leaves[:3]] == [
            {"team_name": "crew", "members": ["ann", "bob"]},
            {"kind": "warning", "spent": {"tokens": 9}, "limit": {"usd": 1.0}},
            {"op": "compact", "subject": "history", "bytes": 4096},
        ]
        assert {f["envelope"]["parent_card_id"] for f in leaves} == {agent.card_id}
        assert agents_of(leaves) == {agent.card_id}

    async def test_are_not_closed(self, stage: Stage) -> None:
        """Spec: EMIT 10.9."""
        async with stage.turn.agent("x") as agent:
            await agent.team("crew", [])

        assert (await stage.log()).closes() == [("agent", "ok")]

    async def test_leave_out_what_is_empty(self, stage: Stage) -> None:
        """Spec: Ruling E6."""
        await stage.turn.team("crew", [])
        await stage.turn.budget("reset")
        await stage.turn.memory_op("read")

        payloads = [f["payload"] for f in (await stage.log()).frames[1:]]
        assert payloads == [{"team_name": "crew"}, {"kind": "reset"}, {"op": "read"}]

    async def test_refuse_other_words(self, stage: Stage) -> None:
        word: Any = "other"

        with pytest.raises(ValueError, match="allowed: warning, exhausted, reset"):
            await stage.turn.budget(word)
        with pytest.raises(ValueError, match="allowed: tokens, usd, calls"):
            await stage.turn.budget("reset", spent={"euros": 1})
        with pytest.raises(ValueError, match="allowed: read, write, compact"):
            await stage.turn.memory_op(word)
        assert len((await stage.log()).frames) == 1


class TestSystem:
    """Spec: EMIT 10.9."""

    async def test_shows_a_notice_outside_the_turn(self, stage: Stage) -> None:
        async with stage.turn.message():
            await stage.turn.system("gap", "No search", "why", "fix", icon="warning")

        frame = (await stage.log()).only("system")
        assert "parent_card_id" not in frame["envelope"]
        assert frame["envelope"]["severity"] == "warn"
        assert frame["hint"] == {
            "title": "No search",
            "summary": "why",
            "icon": "warning",
        }
        assert frame["payload"] == {
            "topic": "gap",
            "summary": "why",
            "action_hint": "fix",
        }

    async def test_shows_a_topic_once(self) -> None:
        async with Stage(topics={"earlier"}) as stage:
            for topic in ["gap", "gap", "earlier"]:
                await stage.turn.system(topic, "title")

            assert len((await stage.log()).added("system")) == 1

    async def test_shows_a_topic_again_when_it_may(self, stage: Stage) -> None:
        for _ in range(2):
            await stage.turn.system("gap", "title", once=False)

        assert len((await stage.log()).added("system")) == 2

    async def test_is_never_without_a_title(self, stage: Stage) -> None:
        await stage.turn.system("gap", "", icon="")

        frame = (await stage.log()).only("system")
        assert frame["hint"] == {"title": "System notice", "icon": "info"}
        assert frame["envelope"]["severity"] == "info"


class TestEscalate:
    async def test_is_a_tick_on_the_turn(self, stage: Stage) -> None:
        """Spec: EMIT 11."""
        async with stage.turn.agent("x") as agent:
            await agent.escalate("react", "plan", "complex")
            await agent.escalate("plan", "react")

        log = await stage.log()
        assert len(log.of("turn_1", "card.tick")) == 2
        assert log.ticks("escalation") == [
            {"from_mode": "react", "to_mode": "plan", "reason": "complex"},
            {"from_mode": "plan", "to_mode": "react"},
        ]


class TestFlush:
    async def test_waits_until_everything_is_stored(self, stage: Stage) -> None:
        async with stage.turn.message() as message:
            await message.text("hi")

        await stage.turn.flush()

        assert len(stage.store.entries) == 4


class TestAfterTheTurn:
    """Spec: Rulings E10, E12: nothing of the turn is emitted afterwards."""

    async def test_drops_and_counts_what_comes_late(self, stage: Stage) -> None:
        await stage.turn.todo("known")
        stage.end_turn()
        count = len((await stage.log()).frames)

        await stage.turn.todo("known", status="completed")
        await stage.turn.todo("new")
        await stage.turn.team("crew", [])
        await stage.turn.system("gap", "title")
        await stage.turn.escalate("react", "plan")
        await stage.turn.set_title("late")

        assert len((await stage.log()).frames) == count
        assert stage.builder.dropped_count == 6

    async def test_shows_a_topic_that_came_too_late_next_time(self) -> None:
        topics: set[str] = set()
        async with Stage(topics=topics) as stage:
            stage.end_turn()
            await stage.turn.system("gap", "title")

        assert topics == set()

    async def test_opens_no_block(self, stage: Stage) -> None:
        stage.end_turn()

        with pytest.raises(LocalProtocolError, match="running turn"):
            await stage.turn.message().__aenter__()
        assert len((await stage.log()).frames) == 2
