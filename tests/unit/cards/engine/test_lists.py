"""A text where a list is due is a mistake of the engine's author, told at once.

A text is a sequence as well: its characters would be shown one by one otherwise.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cards.engine import Plan, PlanStep, Turn
from cards.engine.messages import Message
from cards.engine.plans import PlanBlock, Step
from cards.engine.scope import Agent
from cards.engine.tools import Tool
from tests.unit.cards.engine.stage import Stage

STEP = PlanStep("s1", "look")


async def plan(turn: Turn, steps: Any) -> None:
    async with turn.plan(goal="a report", steps=steps):
        pass


async def finish(turn: Turn, deliverables: Any) -> None:
    async with turn.plan(goal="a report", steps=[STEP]) as block:
        async with block.step("s1") as step:
            step.finish("done", deliverables)


async def name_files(turn: Turn, artifacts: Any) -> None:
    async with turn.tool("Write") as tool:
        tool.result("done", artifacts=artifacts)


#: Every argument and attribute that is a list of something: (name, how it is given).
LISTS: list[tuple[str, Callable[[Turn, Any], Awaitable[object]]]] = [
    ("ask.options", lambda turn, given: turn.ask("?", options=given)),
    ("permission.options", lambda turn, given: turn.permission("A", 1, options=given)),
    (
        "review_plan.available_subagents",
        lambda turn, given: turn.review_plan(
            Plan("a report", [STEP]), available_subagents=given
        ),
    ),
    ("Plan.steps", lambda turn, given: turn.review_plan(Plan("a report", given))),
    (
        "PlanStep.depends_on",
        lambda turn, given: turn.review_plan(
            Plan("a report", [STEP, PlanStep("s10", "write", depends_on=given)])
        ),
    ),
    ("plan.steps", plan),
    (
        "PlanStep.depends_on",
        lambda turn, given: plan(turn, [PlanStep("s2", "write", depends_on=given)]),
    ),
    (
        "PlanStep.depends_on",
        lambda turn, given: plan(turn, [{"id": "s2", "depends_on": given}]),
    ),
    ("finish.deliverables", finish),
    ("result.artifacts", name_files),
    ("team.members", lambda turn, given: turn.team("us", given)),
]


def lists_in_the_api() -> set[str]:
    """Return the arguments of the author's API that are annotated as sequences."""
    given_by_engines: list[Callable[..., object]] = [
        *(Plan, PlanStep),
        *(
            method
            for owner in (Turn, Agent, Tool, Message, PlanBlock, Step)
            for name, method in inspect.getmembers(owner, inspect.isfunction)
            if not name.startswith("_")
        ),
    ]
    return {
        f"{each.__name__}.{name}"
        for each in given_by_engines
        for name, parameter in inspect.signature(each).parameters.items()
        if "Sequence[" in str(parameter.annotation)
        or "Iterable[" in str(parameter.annotation)
    }


def test_every_list_of_the_api_is_tried() -> None:
    assert {name for name, _ in LISTS} == lists_in_the_api()


@pytest.mark.parametrize("given", ["yes", b"yes", "", {"yes": 1}, 1], ids=repr)
@pytest.mark.parametrize(("name", "give"), LISTS)
async def test_a_text_is_no_list(
    stage: Stage, name: str, give: Callable[[Turn, Any], Awaitable[object]], given: Any
) -> None:
    argument = name.partition(".")[2]
    with pytest.raises(TypeError, match=f"{argument} is a list, such as"):
        await give(stage.turn, given)

    assert stage.desk.prompts == []


async def test_a_list_may_be_made_on_the_way(stage: Stage) -> None:
    stage.desk.answers.append(("denied", {"selected_options": []}))
    labels: Any = (each for each in ("red", "blue"))

    await stage.turn.ask("?", options=labels)

    (prompt,) = stage.desk.prompts
    offered: Any = prompt.inner
    assert [option.label for option in offered.options] == ["red", "blue"]
