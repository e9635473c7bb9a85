"""The turn itself: title, metrics, what it knows."""

import math
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from cards.engine import HistoryEntry
from cards.engine.turn import TurnMetrics
from cards.protocol.envelope import MAX_SAFE_INTEGER
from tests.unit.cards.engine.stage import Stage


def total(metrics: TurnMetrics) -> dict[str, Any]:
    form: dict[str, Any] = msgspec.to_builtins(metrics.total())
    return form


class TestTurn:
    async def test_tells_who_it_is(self, stage: Stage) -> None:
        turn = stage.turn

        assert (turn.session_id, turn.trace_id) == ("sess_1", "tr_1")
        assert (turn.card_id, turn.run_id, turn.turn_no) == ("turn_1", "run_1", 1)
        assert (turn.input.text, turn.input.coordinator_mode) == ("hello", None)

    async def test_shows_earlier_turns(self) -> None:
        history = [HistoryEntry("user", "hi", 1), HistoryEntry("assistant", "Hello", 1)]

        async with Stage(history=history) as stage:
            assert list(stage.turn.history) == history


class TestSetTitle:
    """Spec: Ruling E29."""

    async def test_logs_and_stores_the_title(self, stage: Stage) -> None:
        await stage.turn.set_title("  About\n\0 cards ")

        frame = (await stage.log()).frames[-1]
        assert frame["payload"] == {
            "kind": "updated",
            "inner": {"title": "About \ufffd cards"},
        }
        assert frame["envelope"]["card_id"] == ""
        (change,) = stage.store.entries[-1].changes
        assert change.parameters == ("About \ufffd cards", 1)

    async def test_cuts_a_long_one(self, stage: Stage) -> None:
        await stage.turn.set_title("x" * 500)

        title = (await stage.log()).frames[-1]["payload"]["inner"]["title"]
        assert title == "x" * 119 + "…"

    @pytest.mark.parametrize("text", ["", " \n "])
    async def test_takes_no_blank_one(self, stage: Stage, text: str) -> None:
        await stage.turn.set_title(text)

        assert len((await stage.log()).frames) == 1


class TestTurnMetrics:
    """Spec: EMIT 3.4."""

    def test_adds_up(self) -> None:
        metrics = TurnMetrics()
        metrics.add(tokens_in=10, tokens_out=2, cost_usd=0.5, model="m1")
        metrics.add(tokens_in=5, cache_read_tokens=7, cache_write_tokens=1)

        assert total(metrics) == {
            "tokens_in": 15,
            "tokens_out": 2,
            "cache_read_tokens": 7,
            "cache_write_tokens": 1,
            "cost_usd": 0.5,
            "model": "m1",
        }

    def test_of_nothing_are_empty(self) -> None:
        assert total(TurnMetrics()) == {}

    def test_keep_the_newest_model(self) -> None:
        metrics = TurnMetrics()
        for model in ["m1", "m2", None]:
            metrics.add(model=model)

        assert total(metrics) == {"model": "m2"}

    def test_take_costs_as_decimals(self) -> None:
        metrics = TurnMetrics()
        cost: Any = Decimal("0.25")
        metrics.add(cost_usd=cost)
        metrics.add(cost_usd=1)

        assert total(metrics) == {"cost_usd": 1.25}

    @pytest.mark.parametrize("odd", [math.nan, math.inf, -5, 10**20, 10**400], ids=str)
    def test_leave_out_what_is_no_count(self, odd: Any) -> None:
        """Case FR-67."""
        metrics = TurnMetrics()
        metrics.add(tokens_in=odd, tokens_out=3)

        assert total(metrics) == {"tokens_out": 3}

    def test_leave_out_a_sum_that_no_browser_holds(self) -> None:
        """Case FR-77."""
        metrics = TurnMetrics()
        for _ in range(2):
            metrics.add(tokens_in=MAX_SAFE_INTEGER, cost_usd=1.7e308)

        assert total(metrics) == {}
