"""Which answers fit a prompt.

| kind | decisions | what else must fit |
|---|---|---|
| permission | approved, denied | the scope was offered with an allowance |
| question | approved, denied | something is chosen or written, as it was offered |
| plan_review | approved, denied | what cannot be carried out is asked about again |
| step_decision | continue, retry, cancel | all other words count as cancel |

The decision counts; a payload that says the contrary is refused, and the prompt stays
open.

Spec: EMIT 7.3; Rulings E16, E19, E22.
"""

from dataclasses import dataclass, field
from typing import Final, TypeVar, cast

import msgspec
from msgspec import UNSET

from cards.protocol.client_messages import refuse_field
from cards.protocol.errors import RemoteProtocolError, refuse
from cards.protocol.json_form import JSONValue, clean_text
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
from prompts.protocol.plan_edits import fault_of

#: Longest text in an answer, in characters. Spec: none; ours.
MAX_TEXT_CHARS: Final = 100_000

#: Most steps of an edited plan. Spec: none; ours.
MAX_STEPS: Final = 500

APPROVED: Final = "approved"
_YES_OR_NO: Final = (APPROVED, "denied")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedAnswer:
    """An answer that fits its prompt.

    Attributes:
        payload: Only what counts, cleaned.
        rejection: Why it cannot be carried out; "" when it can.
        granted_key: What it allows for the rest of the session; "" for nothing.
    """

    decision: str
    payload: dict[str, JSONValue] = field(default_factory=dict)
    rejection: str = ""
    granted_key: str = ""


class _PermissionPayload(msgspec.Struct, frozen=True):
    approved: bool | None = None
    scope: str | None = None
    message: str | None = None


class _QuestionPayload(msgspec.Struct, frozen=True):
    approved: bool | None = None
    selected_options: list[str] | None = None
    custom_text: str | None = None


class _PlanPayload(msgspec.Struct, frozen=True):
    approved: bool | None = None
    updated_steps: list[ReviewedStep] | None = None
    reason: str | None = None


class _StepPayload(msgspec.Struct, frozen=True):
    note: str | None = None


Shape = TypeVar("Shape")


def check_answer(
    kind: PromptKind,
    inner: dict[str, JSONValue],
    *,
    decision: str,
    payload: dict[str, JSONValue] | None,
) -> CheckedAnswer:
    """Return the answer as it counts.

    Args:
        inner: What was asked.
        decision: The top-level one.
        payload: None for none.

    Raises:
        RemoteProtocolError: It does not fit; the error names the field.

    Spec: EMIT 7.3; Ruling E16.
    """
    asked: PromptInner = msgspec.convert(inner, INNER_OF_PROMPT[kind])
    given = payload or {}
    match asked:
        case PermissionInner():
            return _check_permission(asked, decision, given)
        case QuestionInner():
            return _check_question(asked, decision, given)
        case PlanReviewInner():
            return _check_plan_review(asked, decision, given)
        case StepDecisionInner():
            return _check_step_decision(asked, decision, given)


def _check_permission(
    asked: PermissionInner, decision: str, given: dict[str, JSONValue]
) -> CheckedAnswer:
    is_approved = _is_approved(decision)
    payload = _shaped(given, _PermissionPayload)
    _check_contradiction(is_approved, payload.approved)
    scope = _text("payload.scope", payload.scope) or "once"
    offered = _allowances_of(asked)
    if is_approved and not offered:
        raise _misfit(
            "decision",
            "was not offered",
            "denied",
            "This cannot be allowed here; please decline it.",
        )
    if is_approved and scope not in offered:
        raise _misfit(
            "payload.scope",
            "was not offered",
            ", ".join(offered),
            "It cannot be allowed for that long; please choose one of the options.",
        )
    key = "" if asked.permission_key is UNSET else asked.permission_key
    return CheckedAnswer(
        decision=decision,
        payload={
            "scope": scope if is_approved else "once",
            "message": _text("payload.message", payload.message),
        },
        granted_key=key if is_approved and scope == "session" else "",
    )


def _allowances_of(asked: PermissionInner) -> list[str]:
    if not asked.options:
        return ["once"]
    return sorted({each.scope for each in asked.options if each.allow})


def _check_question(
    asked: QuestionInner, decision: str, given: dict[str, JSONValue]
) -> CheckedAnswer:
    is_approved = _is_approved(decision)
    payload = _shaped(given, _QuestionPayload)
    _check_contradiction(is_approved, payload.approved)
    selected = payload.selected_options or []
    words = _text("payload.custom_text", payload.custom_text).strip()
    if not is_approved:
        if selected or words:
            raise _misfit(
                "decision",
                "is denied beside an answer",
                APPROVED,
                "Please either send your answer or decline without one.",
            )
        return CheckedAnswer(
            decision=decision, payload={"selected_options": [], "custom_text": ""}
        )
    _check_selection(asked, selected)
    if words and not asked.allow_custom:
        raise _misfit(
            "payload.custom_text",
            "is not wanted here",
            "no text",
            "Please choose one of the options, without a text of your own.",
        )
    if not selected and not words:
        raise _nothing_given(asked)
    offered = _labels_of(asked)
    return CheckedAnswer(
        decision=decision,
        payload={
            "selected_options": [label for label in offered if label in selected],
            "custom_text": words,
        },
    )


def _nothing_given(asked: QuestionInner) -> RemoteProtocolError:
    name, problem = "payload.selected_options", "is empty"
    if not _labels_of(asked):
        name = "payload.custom_text"
        return _misfit(name, problem, "a text", "Please write an answer.")
    if not asked.allow_custom:
        return _misfit(name, problem, "an option", "Please choose an option.")
    return _misfit(
        name,
        problem,
        "an option or a text of your own",
        "Please choose an option or write an answer.",
    )


def _labels_of(asked: QuestionInner) -> list[str]:
    return [] if asked.options is UNSET else [each.label for each in asked.options]


def _check_selection(asked: QuestionInner, selected: list[str]) -> None:
    name = "payload.selected_options"
    offered = _labels_of(asked)
    if not set(selected) <= set(offered):
        # What was offered may be long; the prompt holds it.
        raise _misfit(
            name,
            "names what was not offered",
            "labels of the prompt",
            "Please choose among the options that are offered.",
        )
    if len(set(selected)) != len(selected):
        raise _misfit(
            name,
            "names an option twice",
            "each option once",
            "Please choose each option only once.",
        )
    if len(selected) > 1 and not asked.multi:
        raise _misfit(
            name,
            "names several options",
            "one option",
            "Please choose only one of the options.",
        )


def _check_plan_review(
    asked: PlanReviewInner, decision: str, given: dict[str, JSONValue]
) -> CheckedAnswer:
    is_approved = _is_approved(decision)
    payload = _shaped(given, _PlanPayload)
    _check_contradiction(is_approved, payload.approved)
    steps = [_cleaned(step) for step in payload.updated_steps or ()]
    if len(steps) > MAX_STEPS:
        raise _misfit(
            "payload.updated_steps",
            "is too long",
            f"{MAX_STEPS} steps",
            f"Please shorten the plan to {MAX_STEPS} steps.",
        )
    checked: dict[str, JSONValue] = {"reason": _text("payload.reason", payload.reason)}
    rejection = ""
    # EMIT 7.3: an empty list stands for the plan as proposed; see decision 7.
    if is_approved and steps and steps != asked.steps:
        available = asked.available_subagents
        rejection = fault_of(steps, available=() if available is UNSET else available)
        checked["updated_steps"] = cast("JSONValue", msgspec.to_builtins(steps))
    return CheckedAnswer(decision=decision, payload=checked, rejection=rejection)


def _cleaned(step: ReviewedStep) -> ReviewedStep:
    name = "payload.updated_steps"
    return ReviewedStep(
        id=_text(name, step.id).strip(),
        description=_text(name, step.description).strip(),
        subagent_type=_text(name, step.subagent_type or None) or UNSET,
        prompt=_text(name, step.prompt or None) or UNSET,
        depends_on=[_text(name, each).strip() for each in step.depends_on or ()]
        or UNSET,
    )


def _check_step_decision(
    asked: StepDecisionInner, decision: str, given: dict[str, JSONValue]
) -> CheckedAnswer:
    payload = _shaped(given, _StepPayload)
    legal = {"continue", "retry", "cancel"} if asked.allow_retry else {"continue"}
    return CheckedAnswer(
        decision=decision if decision in legal else "cancel",
        payload={"note": _text("payload.note", payload.note)},
    )


def _is_approved(decision: str) -> bool:
    if decision not in _YES_OR_NO:
        raise _misfit(
            "decision",
            "is none for this prompt",
            ", ".join(_YES_OR_NO),
            "Please approve or decline.",
        )
    return decision == APPROVED


def _check_contradiction(is_approved: bool, said: bool | None) -> None:
    if said is not None and said != is_approved:
        raise _misfit(
            "payload.approved",
            "contradicts the decision",
            "the same",
            "Your answer says both yes and no; please approve or decline again.",
        )


def _shaped(given: dict[str, JSONValue], shape: type[Shape]) -> Shape:
    try:
        return msgspec.convert(given, shape)
    except msgspec.ValidationError as error:
        raise refuse_field(str(error), under="payload") from error


def _text(name: str, given: str | None) -> str:
    if given is not None and len(given) > MAX_TEXT_CHARS:
        raise _misfit(
            name,
            "is too long",
            f"{MAX_TEXT_CHARS} characters",
            f"Please shorten your text to {MAX_TEXT_CHARS:,} characters.",
        )
    return clean_text(given or "")


def _misfit(
    name: str, problem: str, allowed: str, user_message: str
) -> RemoteProtocolError:
    return refuse(
        f"{name} {problem}; the prompt stays open",
        code="INVALID_ANSWER",
        field=name,
        allowed=allowed,
        user_message=user_message,
    )
