"""Prompts with plain defaults, for the tests of their rules."""

from typing import Any

from cards.protocol.json_form import JSONValue
from cards.protocol.prompts import ReviewedStep

Inner = dict[str, Any]
Answer = dict[str, JSONValue]

OPTIONS: list[Any] = [
    {"label": "Allow once", "scope": "once", "allow": True},
    {"label": "Allow for this session", "scope": "session", "allow": True},
    {"label": "Deny", "scope": "once", "allow": False},
]


def permission(**fields: Any) -> Inner:
    return {
        "tool_name": "Bash",
        "tool_input": "rm x",
        "options": OPTIONS,
        "permission_key": "Bash:rm x",
    } | fields


def question(**fields: Any) -> Inner:
    options: list[Any] = [{"label": "red"}, {"label": "blue"}]
    return {"question": "Which?", "options": options, "allow_custom": True} | fields


def plan_review(**fields: Any) -> Inner:
    return {
        "plan_id": "pln_1",
        "goal": "a report",
        "steps": [
            {"id": "s1", "description": "look"},
            {"id": "s2", "description": "write", "depends_on": ["s1"]},
        ],
    } | fields


def step_decision(**fields: Any) -> Inner:
    return {
        "scope": "step",
        "step_id": "s2",
        "reason": "rate limit",
        "allow_retry": True,
    } | fields


def step(
    step_id: str, *depends_on: str, description: str = "do it", **fields: Any
) -> ReviewedStep:
    shape = ReviewedStep(id=step_id, description=description, **fields)
    if not depends_on:
        return shape
    return ReviewedStep(
        id=step_id, description=description, depends_on=list(depends_on), **fields
    )
