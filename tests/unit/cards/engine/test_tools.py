"""Tool calls."""

import math
import re
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from cards.engine import EngineError
from tests.unit.cards.engine.stage import Stage

_CYCLE: list[object] = [1]
_CYCLE.append(_CYCLE)


class TestOpening:
    async def test_shows_name_intent_and_input(self, stage: Stage) -> None:
        """Spec: EMIT 10, 14.2."""
        async with stage.turn.tool("Bash", input={"command": "ls"}, intent="list"):
            pass

        frame = (await stage.log()).only("tool")
        assert frame["payload"] == {
            "name": "Bash",
            "target": "server",
            "intent": "list",
            "input": {"command": "ls"},
        }
        assert frame["hint"] == {"title": "Bash", "icon": "tool"}
        assert frame["envelope"]["agent_role"] == "worker"

    @pytest.mark.parametrize(
        ("given", "shown"),
        [
            (0, 0),
            (False, False),
            ("", ""),
            ([1, None], [1, None]),
            (_CYCLE, [1, "(cycle)"]),
        ],
        ids=repr,
    )
    async def test_shows_inputs_of_any_form(
        self, stage: Stage, given: object, shown: object
    ) -> None:
        async with stage.turn.tool("Bash", input=given):
            pass

        assert (await stage.log()).only("tool")["payload"]["input"] == shown

    @pytest.mark.parametrize("given", [None, {}, []], ids=repr)
    async def test_leaves_out_what_is_empty(self, stage: Stage, given: object) -> None:
        """Spec: Ruling E6."""
        async with stage.turn.tool("Bash", input=given, intent=""):
            pass

        payload = (await stage.log()).only("tool")["payload"]
        assert payload == {"name": "Bash", "target": "server"}

    @pytest.mark.parametrize(
        ("name", "shown"), [("  ", "tool"), ("", "tool"), ("a\0", "a\ufffd")]
    )
    async def test_is_never_without_a_name(
        self, stage: Stage, name: str, shown: str
    ) -> None:
        async with stage.turn.tool(name):
            pass

        frame = (await stage.log()).only("tool")
        assert (frame["payload"]["name"], frame["hint"]["title"]) == (shown, shown)


class TestCallId:
    """Spec: Ruling E7."""

    async def test_becomes_the_card_id(self, stage: Stage) -> None:
        async with stage.turn.tool("Bash", call_id="toolu_1:a.b-c") as tool:
            assert tool.card_id == "toolu_1:a.b-c"

    @pytest.mark.parametrize("call_id", ["", "a b", "a/b", "é", "x" * 65, "a\n"])
    async def test_that_is_unsafe_is_replaced(self, stage: Stage, call_id: str) -> None:
        async with stage.turn.tool("Bash", call_id=call_id) as tool:
            assert re.fullmatch("tool_[0-9a-f]{16}", tool.card_id)

    @pytest.mark.parametrize("call_id", ["turn_1", "toolu_earlier"])
    async def test_that_is_used_is_replaced(self, call_id: str) -> None:
        async with Stage(used_ids=["toolu_earlier"]) as stage:
            async with stage.turn.tool("Bash", call_id=call_id) as tool:
                assert re.fullmatch("tool_[0-9a-f]{16}", tool.card_id)

    async def test_may_come_again_in_later_rounds(self, stage: Stage) -> None:
        """Case FR-203."""
        card_ids = []
        for number in range(3):
            async with stage.turn.message() as message:
                await message.text(f"round {number}")
            async with stage.turn.tool("search", call_id="search:0") as tool:
                tool.result(f"result {number}")
            card_ids.append(tool.card_id)

        log = await stage.log()
        assert card_ids[0] == "search:0"
        assert len(set(card_ids)) == 3
        outputs = [log.inner(card_id)["output"] for card_id in card_ids]
        assert outputs == ["result 0", "result 1", "result 2"]


class TestSet:
    async def test_changes_only_what_is_given(self, stage: Stage) -> None:
        """Spec: EMIT 6.2; Ruling E11."""
        async with stage.turn.tool("Bash", intent="old") as tool:
            await tool.set(intent="new", input={"a": 1}, language=None)

        (frame,) = (await stage.log()).of(tool.card_id, "card.set")
        assert frame["payload"] == {"intent": "new", "input": {"a": 1}}

    async def test_refuses_other_fields(self, stage: Stage) -> None:
        async with stage.turn.tool("Bash") as tool:
            with pytest.raises(TypeError, match="cannot set 'name'; allowed: f"):
                await tool.set(name="x", intent="y")

        assert (await stage.log()).of(tool.card_id, "card.set") == []

    @pytest.mark.parametrize("fields", [{}, {"intent": None}, {"intent": ""}], ids=repr)
    async def test_of_nothing_sends_nothing(
        self, stage: Stage, fields: dict[str, object]
    ) -> None:
        async with stage.turn.tool("Bash") as tool:
            await tool.set(**fields)

        assert (await stage.log()).of(tool.card_id, "card.set") == []

    async def test_takes_odd_values(self, stage: Stage) -> None:
        async with stage.turn.tool("Bash") as tool:
            await tool.set(metadata={1: math.nan, "big": 2**70}, phase=3)

        (frame,) = (await stage.log()).of(tool.card_id, "card.set")
        assert frame["payload"] == {
            "metadata": {"1": "NaN", "big": str(2**70)},
            "phase": "3",
        }


class TestTicks:
    """Spec: EMIT 11."""

    async def test_heartbeat_tells_how_long_the_call_runs(self, stage: Stage) -> None:
        async with stage.turn.tool("Bash") as tool:
            stage.clock.advance(1500)
            await tool.heartbeat()
            await tool.heartbeat("parsing")

        assert (await stage.log()).ticks("heartbeat") == [
            {"uptime_ms": 1500},
            {"stage": "parsing", "uptime_ms": 1500},
        ]

    async def test_heartbeat_survives_a_clock_that_was_set_back(
        self, stage: Stage
    ) -> None:
        async with stage.turn.tool("Bash") as tool:
            stage.clock.advance(-5000)
            await tool.heartbeat()

        log = await stage.log()
        assert log.ticks("heartbeat") == [{"uptime_ms": 0}]
        assert log.frames[-1]["metrics"] == {"duration_ms": 0}

    async def test_progress_carries_all_fields(self, stage: Stage) -> None:
        fields: dict[str, Any] = {
            "stage": "reading",
            "progress_pct": 0.4,
            "items_processed": 12,
            "items_total": 30,
            "unit": "files",
            "eta_ms": 3000,
        }
        async with stage.turn.tool("Grep") as tool:
            await tool.progress(**fields)

        assert (await stage.log()).ticks("progress") == [fields]

    @pytest.mark.parametrize(
        ("fields", "shown"),
        [
            ({"progress_pct": 50}, {"progress_pct": 1.0}),
            ({"progress_pct": -1}, {"progress_pct": 0.0}),
            ({"progress_pct": math.inf, "items_total": 3}, {"items_total": 3}),
            ({"progress_pct": Decimal("0.5")}, {"progress_pct": 0.5}),
            ({"items_processed": -1, "unit": "x"}, {"unit": "x"}),
            ({"items_processed": 10**400, "eta_ms": 10**20}, {}),
        ],
        ids=repr,
    )
    async def test_progress_leaves_out_numbers_that_are_none(
        self, stage: Stage, fields: dict[str, Any], shown: dict[str, object]
    ) -> None:
        """Case FR-67."""
        async with stage.turn.tool("Grep") as tool:
            await tool.progress(**fields)

        assert (await stage.log()).ticks("progress") == [shown]

    async def test_intent_and_note(self, stage: Stage) -> None:
        async with stage.turn.tool("Bash") as tool:
            await tool.intent("to read\0")
            await tool.note("no such file", severity="warn")

        log = await stage.log()
        assert log.ticks("intent") == [{"intent": "to read\ufffd"}]
        assert log.ticks("note") == [{"text": "no such file", "severity": "warn"}]

    async def test_note_refuses_another_severity(self, stage: Stage) -> None:
        async with stage.turn.tool("Bash") as tool:
            with pytest.raises(ValueError, match="fatal"):
                await tool.note("x", severity="fatal")


class TestThrottling:
    """Spec: EMIT 6.4; Ruling E20; case HC-14, in minutes for milliseconds."""

    async def test_sends_the_newest_value_and_every_intent(self) -> None:
        async with Stage(tick_interval_ms=250_000) as stage:
            async with stage.turn.tool("long") as tool:
                for number in range(1, 101):
                    stage.clock.advance(10_000)
                    await tool.progress(items_processed=number)
                    if number % 20 == 0:
                        await tool.intent(f"part {number}")

            log = await stage.log()
        counts = [inner["items_processed"] for inner in log.ticks("progress")]
        assert counts == [1, 26, 51, 76, 100]
        assert [inner["intent"] for inner in log.ticks("intent")] == [
            f"part {number}" for number in range(20, 101, 20)
        ]
        assert log.frames[-1]["type"] == "card.close"

    async def test_is_per_card_and_kind(self) -> None:
        async with Stage(tick_interval_ms=250_000) as stage:
            async with stage.turn.tool("one") as one, stage.turn.tool("two") as two:
                await one.progress(items_processed=1)
                await two.progress(items_processed=2)
                await one.heartbeat("three")

            log = await stage.log()
        assert [inner["items_processed"] for inner in log.ticks("progress")] == [1, 2]
        assert len(log.ticks("heartbeat")) == 1

    async def test_flushes_the_newest_of_a_call_that_fails(self) -> None:
        async with Stage(tick_interval_ms=250_000) as stage:
            with pytest.raises(EngineError):
                async with stage.turn.agent("worker"), stage.turn.tool("x") as tool:
                    for number in range(3):
                        await tool.progress(items_processed=number)
                    raise EngineError("model_error", "gone")

            log = await stage.log()
        assert [inner["items_processed"] for inner in log.ticks("progress")] == [0, 2]


class TestResult:
    async def test_comes_with_the_close(self, stage: Stage) -> None:
        """Spec: EMIT 10."""
        async with stage.turn.tool("Bash") as tool:
            tool.result(
                "a.txt",
                render_hint="code",
                language="python",
                file_path="/a.py",
                details={"lines": 1},
                metadata={"exit_code": 0},
            )

        assert (await stage.log()).closing(tool.card_id) == {
            "status": "ok",
            "inner": {
                "output": "a.txt",
                "render_hint": "code",
                "language": "python",
                "file_path": "/a.py",
                "details": {"lines": 1},
                "metadata": {"exit_code": 0},
            },
        }

    @pytest.mark.parametrize(
        ("output", "shown"),
        [
            ("", ""),
            (0, 0),
            ([], []),
            (10**20, "100000000000000000000"),
            (b"\xff", "/w=="),
            ({"at": date(2026, 1, 2)}, {"at": "2026-01-02"}),
            ({"half": "\ud83d"}, {"half": "\ufffd"}),
            (object, "(type)"),
        ],
        ids=repr,
    )
    async def test_has_a_json_form(
        self, stage: Stage, output: object, shown: object
    ) -> None:
        """Case FR-67; engine-api.md, Details."""
        async with stage.turn.tool("odd") as tool:
            tool.result(output)

        assert (await stage.log()).inner(tool.card_id)["output"] == shown

    async def test_of_none_is_left_out(self, stage: Stage) -> None:
        async with stage.turn.tool("Bash") as tool:
            tool.result(None)

        assert (await stage.log()).inner(tool.card_id) == {}

    async def test_counts_once_the_newest(self, stage: Stage) -> None:
        async with stage.turn.tool("Bash") as tool:
            tool.result("one")
            tool.result("two")

        assert (await stage.log()).inner(tool.card_id) == {"output": "two"}


class TestFail:
    """Spec: EMIT 12; Ruling E11."""

    async def test_closes_failed_beside_the_result(self, stage: Stage) -> None:
        async with stage.turn.tool("Bash") as tool:
            tool.result("half of it")
            tool.fail("tool_timeout", "120 s", code="BASH_TIMEOUT", retryable=False)

        closing = (await stage.log()).closing(tool.card_id)
        assert closing["status"] == "failed"
        assert closing["inner"] == {"output": "half of it"}
        assert closing["error"]["code"] == "BASH_TIMEOUT"
        assert closing["error"]["retryable"] is False

    async def test_refuses_another_type(self, stage: Stage) -> None:
        async with stage.turn.tool("Bash") as tool:
            with pytest.raises(ValueError, match="allowed: tool_timeout"):
                tool.fail("oops", "x")

        assert (await stage.log()).closing(tool.card_id) == {"status": "ok"}

    async def test_takes_odd_text(self, stage: Stage) -> None:
        async with stage.turn.tool("Bash") as tool:
            tool.fail("internal", "half \ud83d", code="NUL\0")

        error = (await stage.log()).closing(tool.card_id)["error"]
        assert (error["message"], error["code"]) == ("half \ufffd", "NUL\ufffd")
