"""Asking the user: what an engine gets back, and how a scope asks.

Spec: engine-api.md, Asking; EMIT 7; Rulings E15 to E19, E24.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import msgspec
from msgspec import UNSET

from cards.engine.block import Context, innermost_card
from cards.engine.desk import Prompt
from cards.engine.errors import EngineError
from cards.engine.plans import Plan, PlanStep, checked_steps
from cards.engine.values import (
    count_or_unset,
    listed,
    one_of,
    text_or_unset,
    texts_or_unset,
)
from cards.ports import Settlement
from cards.protocol.json_form import JSONValue, clean_text, json_form
from cards.protocol.kinds import PromptKind
from cards.protocol.prompts import (
    MAX_STEP_ID_CHARS,
    PermissionInner,
    PermissionOption,
    PermissionScope,
    PlanReviewInner,
    PromptInner,
    QuestionInner,
    QuestionOption,
    ReviewedStep,
    StepDecisionInner,
)

DecisionScope = Literal["step", "plan"]
Decision = Literal["continue", "retry", "cancel"]

#: What a permission offers unless its engine knows better. Spec: EMIT 7.1.
DEFAULT_OPTIONS = (
    PermissionOption(label="Allow once", scope="once", allow=True),
    PermissionOption(label="Allow for this session", scope="session", allow=True),
    PermissionOption(label="Deny", scope="once", allow=False),
)

#: Longest `timeout` in seconds, 100 years; beyond, dates end.
MAX_TIMEOUT_S = 3_155_760_000

#: Longest `permission_key` that is kept as it is; an index takes no more than 2.7 kB.
MAX_KEY_CHARS = 500


class PromptTimeout(EngineError):
    """Nobody answered within the time that the engine gave. Spec: Ruling E17."""

    def __init__(self, message: str = "nobody answered in time") -> None:
        super().__init__(
            "tool_timeout",
            message,
            code="PROMPT_TIMEOUT",
            retryable=False,
            user_message="The question was not answered in time.",
        )


class PromptUnavailable(EngineError):
    """The question could not be stored, so nobody was asked. Spec: Ruling E15."""

    def __init__(self, message: str = "the prompt could not be stored") -> None:
        super().__init__(
            "overloaded",
            message,
            code="PROMPT_UNAVAILABLE",
            user_message="I could not ask you something just now; please try again.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a question.

    Attributes:
        approved: False when the user declined to answer.
        selected: Labels of the chosen options, in the order they were offered.
        custom_text: What the user wrote; "" for nothing.
    """

    approved: bool
    selected: Sequence[str]
    custom_text: str

    @property
    def text(self) -> str:
        """The chosen labels and the user's own words, joined by "; "."""
        return "; ".join(filter(None, (*self.selected, self.custom_text)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """Whether a tool may do something.

    Attributes:
        scope: `session` when it holds for the rest of the session.
        message: The user's remark; "" for none.
        remembered: An earlier answer for the session was used; nobody was asked.
    """

    approved: bool
    scope: PermissionScope
    message: str
    remembered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReview:
    """What the user made of a plan.

    Attributes:
        steps: To be carried out: the user's own when edited.
        reason: Why the plan was declined; "" for no reason.
        edited: Whether the user changed the steps.
    """

    approved: bool
    steps: Sequence[PlanStep]
    reason: str
    edited: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDecision:
    """What to do after a failure; `note` is the user's remark, "" for none."""

    decision: Decision
    note: str


class Asking:
    """The methods of a scope that wait for the user.

    A prompt hangs at the innermost open block of the current task; while it waits,
    no card above it is given up. A prompt whose waiting is cancelled is withdrawn.

    Spec: engine-api.md, Asking; Rulings E13, E15.
    """

    _context: Context
    _scope_agent_id: str
    _scope_run_id: str

    async def ask(
        self,
        question: str,
        *,
        options: Sequence[str | Mapping[str, object]] = (),
        multi: bool = False,
        allow_custom: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109 - the API's word
    ) -> Answer:
        """Ask a question.

        Args:
            question: Shown as it is.
            options: Labels to choose from; none for free text only.
            multi: Whether several may be chosen.
            allow_custom: Whether the user may write an answer of their own.
            timeout: Seconds; None waits for as long as it takes.

        Raises:
            PromptTimeout: Nobody answered in time.
            PromptUnavailable: The question could not be stored.
            TypeError: The options are a text instead of a list of labels.
            ValueError: There is no way to answer, or two options are the same.

        Spec: EMIT 7.1.
        """
        labels = [_label_of(option) for option in listed("options", options)]
        if len(set(labels)) != len(labels):
            raise ValueError("two options have the same label")
        if not labels and not allow_custom:
            raise ValueError("without options, allow_custom must be true")
        settled = await self._asked(
            PromptKind.QUESTION,
            QuestionInner(
                question=clean_text(str(question)),
                options=[QuestionOption(label=each) for each in labels] or UNSET,
                multi=bool(multi),
                allow_custom=bool(allow_custom),
            ),
            milliseconds_of(timeout),
        )
        return Answer(
            approved=settled.decision == "approved",
            selected=tuple(cast("list[str]", settled.payload.get("selected_options"))),
            custom_text=str(settled.payload.get("custom_text", "")),
        )

    async def permission(
        self,
        tool_name: str,
        tool_input: object,
        *,
        message: str | None = None,
        is_read_only: bool = False,
        permission_key: str | None = None,
        options: Sequence[Mapping[str, object]] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the API's word
    ) -> Permission:
        """Ask whether a tool may do something, unless the session allowed it before.

        Args:
            tool_name: The tool.
            tool_input: Exactly what it would be given; shown to the user.
            message: Why it is asked.
            is_read_only: Whether it changes nothing.
            permission_key: What an answer for the session covers; None derives it
                from the whole input.
            options: Mappings of label, scope ("once", "session") and allow; None for
                once, for this session, and denial.
            timeout: Seconds; None waits for as long as it takes.

        Raises:
            PromptTimeout: Nobody answered in time.
            PromptUnavailable: The question could not be stored.
            TypeError: The options are a text or a mapping instead of a list.
            ValueError: An option is malformed.

        Spec: EMIT 7.1; Ruling E18.
        """
        desk = self._context.desk
        name = clean_text(str(tool_name))
        key = _bounded(permission_key or "") or desk.permission_key(name, tool_input)
        offered = _options_of(options)
        if await desk.is_granted(key):
            return Permission(
                approved=True, scope="session", message="", remembered=True
            )
        settled = await self._asked(
            PromptKind.PERMISSION,
            PermissionInner(
                tool_name=name,
                tool_input=text_or_unset(_text_of(tool_input)),
                message=text_or_unset(message),
                is_read_only=bool(is_read_only),
                options=offered,
                permission_key=key,
            ),
            milliseconds_of(timeout),
        )
        return Permission(
            approved=settled.decision == "approved",
            scope="session" if settled.payload.get("scope") == "session" else "once",
            message=str(settled.payload.get("message", "")),
            remembered=False,
        )

    async def review_plan(
        self, plan: Plan, *, available_subagents: Sequence[str] = ()
    ) -> PlanReview:
        """Have the user approve, edit or decline a plan before anything is shown of it.

        An edit that cannot be carried out is asked about again by itself.

        Args:
            plan: As proposed.
            available_subagents: Kinds that an edited step may name; none for any.

        Raises:
            PromptUnavailable: The plan could not be stored.
            TypeError: The steps, what one depends on, or the sub-agents are a text
                instead of a list.
            ValueError: The plan has no steps, two with the same id, or an id that is
                too long.

        Spec: EMIT 7.1; Ruling E19.
        """
        steps = checked_steps(plan.steps)
        if not steps:
            raise ValueError("the plan has no steps")
        settled = await self._asked(
            PromptKind.PLAN_REVIEW,
            PlanReviewInner(
                plan_id=clean_text(
                    plan.plan_id or "pln_" + self._context.builder.random_hex(12)
                ),
                goal=clean_text(plan.goal),
                rationale=text_or_unset(plan.rationale),
                steps=[_reviewed(step) for step in steps],
                available_subagents=texts_or_unset(
                    "available_subagents", available_subagents
                ),
            ),
            0,
        )
        updated = settled.payload.get("updated_steps")
        return PlanReview(
            approved=settled.decision == "approved",
            steps=_edited_steps(updated) if updated else tuple(steps),
            reason=str(settled.payload.get("reason", "")),
            edited=bool(updated),
        )

    async def decide_step(
        self,
        *,
        scope: DecisionScope,
        reason: str,
        step_id: str | None = None,
        step_description: str | None = None,
        attempts: int = 0,
        allow_retry: bool = True,
    ) -> StepDecision:
        """Ask what to do after a step or a plan failed.

        Args:
            scope: What failed.
            reason: Why, shown as it is.
            step_id: The step; None for a plan.
            step_description: What it was to do.
            attempts: How many were made, 0 for not told.
            allow_retry: Whether it may be tried again; else `retry` is `cancel`.

        Raises:
            PromptUnavailable: The question could not be stored.
            ValueError: The scope is another word.

        Spec: EMIT 7.1; Rulings E16, E19.
        """
        settled = await self._asked(
            PromptKind.STEP_DECISION,
            StepDecisionInner(
                scope=one_of("scope", scope, DecisionScope),
                step_id=text_or_unset(step_id),
                step_description=text_or_unset(step_description),
                reason=clean_text(str(reason)),
                attempts=count_or_unset(attempts or None),
                allow_retry=bool(allow_retry),
            ),
            0,
        )
        return StepDecision(
            decision=one_of("decision", cast("Decision", settled.decision), Decision),
            note=str(settled.payload.get("note", "")),
        )

    async def _asked(
        self, kind: PromptKind, inner: PromptInner, timeout_ms: int
    ) -> Settlement:
        settled = await self._context.desk.ask(
            Prompt(
                kind=kind,
                inner=inner,
                anchor=innermost_card(self._context),
                agent_id=self._scope_agent_id,
                agent_run_id=self._scope_run_id,
                timeout_ms=timeout_ms,
            )
        )
        if settled.decision == "timeout":
            raise PromptTimeout
        return settled


def milliseconds_of(timeout: float | None) -> int:
    """Return the `timeout_ms` of a timeout in seconds; 0 for None.

    Raises:
        ValueError: It is not above 0, or not a number.
    """
    if timeout is None:
        return 0
    # NaN is in no range.
    if not 0 < timeout <= MAX_TIMEOUT_S:
        raise ValueError(f"timeout is {timeout}; allowed: None, or seconds above 0")
    return max(1, round(timeout * 1000))


def _bounded(key: str) -> str:
    clean = clean_text(key)
    if len(clean) <= MAX_KEY_CHARS:
        return clean
    return f"sha256:{hashlib.sha256(clean.encode()).hexdigest()}"


def _label_of(option: str | Mapping[str, object]) -> str:
    given = option.get("label") if isinstance(option, Mapping) else option
    label = clean_text(str(given if given is not None else "")).strip()
    if not label:
        raise ValueError(f"an option is a label, not {option!r}")
    return label


def _options_of(
    options: Sequence[Mapping[str, object]] | None,
) -> list[PermissionOption]:
    if options is None:
        return list(DEFAULT_OPTIONS)
    return [_permission_option(each) for each in listed("options", options)]


def _permission_option(option: Mapping[str, object]) -> PermissionOption:
    if not isinstance(option, Mapping):
        raise ValueError(f"an option maps label, scope and allow, unlike {option!r}")  # noqa: TRY004
    scope = cast("PermissionScope", option.get("scope", "once"))
    return PermissionOption(
        label=_label_of(option),
        scope=one_of("scope", scope, PermissionScope),
        allow=bool(option.get("allow", False)),
    )


def _text_of(tool_input: object) -> str:
    if isinstance(tool_input, str):
        return tool_input
    form = json_form(tool_input)
    return "" if form is None else msgspec.json.encode(form).decode()


def _reviewed(step: PlanStep) -> ReviewedStep:
    # Trimmed as answers are, so that what comes back unchanged counts as unchanged.
    step_id = clean_text(step.id).strip()
    if len(step_id) > MAX_STEP_ID_CHARS:
        raise ValueError(
            f"the id of a step is longer than {MAX_STEP_ID_CHARS} characters"
        )
    return ReviewedStep(
        id=step_id,
        description=clean_text(step.description).strip(),
        subagent_type=text_or_unset(step.subagent_type),
        prompt=text_or_unset(step.prompt),
        depends_on=texts_or_unset(
            "depends_on",
            [str(each).strip() for each in step.depends_on or ()],
        ),
    )


def _edited_steps(updated: JSONValue) -> tuple[PlanStep, ...]:
    return tuple(checked_steps(cast("list[Mapping[str, object]]", updated)))
