"""What a prompt of each kind shows: the inner of `prompt.user`.

How it may be answered is the business of the prompts app.

Spec: EMIT 7.1; Ruling E6.
"""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from cards.protocol.ids import RandomHex
from cards.protocol.kinds import PromptKind
from cards.protocol.payloads import Payload

PermissionScope = Literal["once", "session"]

#: Longest id of a step, in characters. Spec: none; ours.
MAX_STEP_ID_CHARS: Final = 128


class PermissionOption(Payload, frozen=True, kw_only=True):
    """One way to answer a permission. Spec: EMIT 7.1."""

    label: str
    scope: PermissionScope
    allow: bool


class PermissionInner(Payload, frozen=True, kw_only=True):
    """May a tool do this? `tool_input` is text, JSON where it was no text.

    Spec: EMIT 7.1.
    """

    tool_name: str
    tool_input: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    is_read_only: bool = False
    options: list[PermissionOption]
    permission_key: str | UnsetType = UNSET


class QuestionOption(Payload, frozen=True, kw_only=True):
    """One answer that is offered. Spec: EMIT 7.1."""

    label: str


class QuestionInner(Payload, frozen=True, kw_only=True):
    """A question: choices, free text, or both. Spec: EMIT 7.1."""

    question: str
    options: list[QuestionOption] | UnsetType = UNSET
    multi: bool = False
    allow_custom: bool = False


class ReviewedStep(Payload, frozen=True, kw_only=True):
    """A step as its user reviews and edits it. Spec: EMIT 7.1."""

    id: Annotated[str, Meta(max_length=MAX_STEP_ID_CHARS)]
    description: str = ""
    subagent_type: str | UnsetType = UNSET
    prompt: str | UnsetType = UNSET
    depends_on: list[str] | UnsetType = UNSET


class PlanReviewInner(Payload, frozen=True, kw_only=True):
    """Shall this plan be carried out? `rejection_reason` tells why it is asked again.

    Spec: EMIT 7.1; Ruling E19.
    """

    plan_id: str
    goal: str
    rationale: str | UnsetType = UNSET
    steps: list[ReviewedStep]
    available_subagents: list[str] | UnsetType = UNSET
    rejection_reason: str | UnsetType = UNSET


class StepDecisionInner(Payload, frozen=True, kw_only=True):
    """What now, after a failure? `attempts` counts the one that failed too.

    Spec: EMIT 7.1; Ruling E19.
    """

    scope: Literal["step", "plan"]
    step_id: str | UnsetType = UNSET
    step_description: str | UnsetType = UNSET
    reason: str
    attempts: int | UnsetType = UNSET
    allow_retry: bool = False


PromptInner = PermissionInner | QuestionInner | PlanReviewInner | StepDecisionInner

INNER_OF_PROMPT: Final[dict[PromptKind, type[PromptInner]]] = {
    PromptKind.PERMISSION: PermissionInner,
    PromptKind.QUESTION: QuestionInner,
    PromptKind.PLAN_REVIEW: PlanReviewInner,
    PromptKind.STEP_DECISION: StepDecisionInner,
}


def mint_request_id(random_hex: RandomHex) -> str:
    """Return a new `req_` id with 16 hex digits. Spec: Ruling E7."""
    return "req_" + random_hex(8)
