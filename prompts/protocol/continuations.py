"""Question and answer in words, for a model that has to go on with them.

The words are the user's: they begin the turn as a message would.

Spec: Ruling E15.
"""

from typing import cast

import msgspec
from msgspec import UNSET

from cards.protocol.json_form import JSONValue
from cards.protocol.kinds import PromptKind
from cards.protocol.prompts import (
    INNER_OF_PROMPT,
    PermissionInner,
    PlanReviewInner,
    PromptInner,
    QuestionInner,
    ReviewedStep,
    StepDecisionInner,
)


def continuation_text(
    kind: PromptKind,
    inner: dict[str, JSONValue],
    *,
    decision: str,
    payload: dict[str, JSONValue],
) -> str:
    """Return what was asked and what was answered.

    Args:
        inner: What was asked.
        decision: As checked.
        payload: As checked.
    """
    asked: PromptInner = msgspec.convert(inner, INNER_OF_PROMPT[kind])
    match asked:
        case QuestionInner():
            return _of_question(asked, decision, payload)
        case PermissionInner():
            return _of_permission(asked, decision, payload)
        case PlanReviewInner():
            return _of_plan_review(asked, decision, payload)
        case StepDecisionInner():
            return _of_step_decision(asked, decision, payload)


def _of_question(
    asked: QuestionInner, decision: str, payload: dict[str, JSONValue]
) -> str:
    question = f'Your question was: "{asked.question}"'
    if decision != "approved":
        return f"{question}\n\nI do not want to answer it."
    selected = cast("list[str]", payload["selected_options"])
    words = str(payload["custom_text"])
    return f"{question}\n\nMy answer: {'; '.join(filter(None, (*selected, words)))}"


def _of_permission(
    asked: PermissionInner, decision: str, payload: dict[str, JSONValue]
) -> str:
    call = asked.tool_name
    if asked.tool_input is not UNSET:
        call += f": {asked.tool_input}"
    question = f"You asked to be allowed to use {call}"
    if decision != "approved":
        answer = "I do not allow it. Find another way, or stop."
    elif payload["scope"] == "session":
        answer = "I allow it, for the rest of this session."
    else:
        answer = "I allow it this once."
    return _joined(question, answer, "My remark", payload["message"])


def _of_plan_review(
    asked: PlanReviewInner, decision: str, payload: dict[str, JSONValue]
) -> str:
    question = f'You proposed a plan: "{asked.goal}"'
    if decision != "approved":
        return _joined(question, "I decline it.", "My reason", payload["reason"])
    edited = payload.get("updated_steps")
    steps = msgspec.convert(edited, list[ReviewedStep]) if edited else asked.steps
    answer = (
        "I have edited it. Carry out exactly these steps:"
        if edited
        else "I approve it as it is. Carry out its steps:"
    )
    lines = [_line(number, step) for number, step in enumerate(steps, 1)]
    text = "\n".join((f"{question}\n\n{answer}", *lines))
    return _joined(text, "", "My remark", payload["reason"])


def _line(number: int, step: ReviewedStep) -> str:
    line = f"{number}. {step.id}: {step.description}"
    if step.subagent_type:
        line += f" (by {step.subagent_type})"
    if step.depends_on:
        line += f" (after {', '.join(step.depends_on)})"
    if step.prompt:
        line += f"\n   {step.prompt}"
    return line


_ANSWER_OF_DECISION = {
    "continue": "Go on with what there is; do not try it again.",
    "retry": "Try it again.",
    "cancel": "Stop here; do not go on with the plan.",
}


def _of_step_decision(
    asked: StepDecisionInner, decision: str, payload: dict[str, JSONValue]
) -> str:
    what = "The plan"
    if asked.scope == "step":
        description = asked.step_description or ""
        what = f"Step {asked.step_id or ''}".strip()
        what += f' ("{description}")' if description else ""
    attempts = f" after {asked.attempts} attempts" if asked.attempts else ""
    question = f"{what} failed{attempts}: {asked.reason}"
    return _joined(
        question, _ANSWER_OF_DECISION[decision], "My remark", payload["note"]
    )


def _joined(question: str, answer: str, name: str, remark: JSONValue) -> str:
    parts = [question, answer, f"{name}: {remark}" if remark else ""]
    return "\n\n".join(filter(None, parts))
