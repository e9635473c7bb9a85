"""Blocks of a plan and its steps. Spec: EMIT 10, 14.4; Ruling E19."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar, cast

import msgspec
from msgspec import UNSET

from cards.builder import Builder
from cards.engine.block import Block, Context
from cards.engine.errors import error_info
from cards.engine.values import (
    Strategy,
    count_or_unset,
    listed,
    one_of,
    text_or_unset,
    texts_or_unset,
)
from cards.protocol.card_tree import Card
from cards.protocol.errors import ErrorInfo
from cards.protocol.ids import is_safe_id
from cards.protocol.json_form import clean_text
from cards.protocol.kinds import CardKind, CloseStatus
from cards.protocol.payloads import Payload, PlannedStep, PlanPayload, StepPayload


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step as planned.

    Attributes:
        id: Unique in its plan.
        description: What is to be done; shown to the user.
        subagent_type: Kind of agent that does it; None for any.
        prompt: What that agent is told; None takes the description.
        depends_on: Ids of earlier steps that must succeed first.
    """

    id: str
    description: str
    subagent_type: str | None = None
    prompt: str | None = None
    depends_on: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan as it is proposed.

    Attributes:
        goal: What it is for.
        steps: In order.
        strategy: How the steps run.
        rationale: Why so.
        plan_id: Its id; None mints one.
    """

    goal: str
    steps: Sequence[PlanStep]
    strategy: Strategy = "sequential"
    rationale: str | None = None
    plan_id: str | None = None


class PlanBlock(Block):
    """A plan that is being carried out; its step cards open with it, queued."""

    kind: ClassVar[CardKind] = CardKind.PLAN

    def __init__(
        self,
        context: Context,
        *,
        parent: Card | None,
        agent_id: str,
        agent_run_id: str | None,
        goal: str,
        steps: Sequence[PlanStep | Mapping[str, object]],
        strategy: Strategy,
        rationale: str | None,
        plan_id: str | None,
    ) -> None:
        super().__init__(
            context, parent=parent, agent_id=agent_id, agent_run_id=agent_run_id
        )
        self._goal = goal
        self._steps = checked_steps(steps)
        self._strategy = one_of("strategy", strategy, Strategy)
        self._rationale = rationale
        self.plan_id = plan_id or "pln_" + context.builder.random_hex(12)
        self._step_cards: dict[str, Card] = {}

    def _opening(self) -> Payload:
        return PlanPayload(
            plan_id=clean_text(self.plan_id),
            goal=clean_text(self._goal),
            strategy=self._strategy,
            rationale=text_or_unset(self._rationale),
            steps=[_planned(step) for step in self._steps],
        )

    def _wanted_card_id(self) -> str | None:
        return _named_card_id(self.context.builder, f"plan_{self.plan_id}")

    def _entered(self) -> None:
        builder = self.context.builder
        for step in self._steps:
            card = builder.add(
                CardKind.STEP,
                StepPayload(
                    step_id=clean_text(step.id),
                    subagent_type=text_or_unset(step.subagent_type),
                    status="queued",
                    input_summary=text_or_unset(step.description),
                ),
                card_id=builder.free_card_id(
                    CardKind.STEP, _named_card_id(builder, f"step_{step.id}")
                ),
                parent=self.card,
                agent_id=self._agent_id,
                agent_run_id=self._agent_run_id,
            )
            card.is_queued = True
            self._step_cards[step.id] = card

    def step(self, step_id: str) -> "Step":
        """Return the block of a step, to be entered when its work begins.

        Raises:
            ValueError: The plan has no such step.
        """
        card = self._step_cards.get(step_id)
        if card is None:
            allowed = ", ".join(self._step_cards)
            raise ValueError(f"the plan has no step {step_id!r}; allowed: {allowed}")
        return Step(self.context, card)

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exception is None and self.context.builder.writer.failure is None:
            # A step that nobody began was left out, not interrupted.
            for card in self._step_cards.values():
                if card.is_open and card.is_queued:
                    self.context.builder.close(card, CloseStatus.SKIPPED)
        await super().__aexit__(exception_type, exception, traceback)


class Step(Block):
    """A step that is being carried out; a parent for agents.

    The card is open since its plan is; entering the block sends nothing.
    """

    kind: ClassVar[CardKind] = CardKind.STEP

    def __init__(self, context: Context, card: Card) -> None:
        super().__init__(
            context,
            parent=None,
            agent_id=card.agent_id,
            agent_run_id=card.agent_run_id,
        )
        self._step_card = card
        self._attempts: int | None = None
        self._output: StepPayload | None = None
        self._end: tuple[CloseStatus, ErrorInfo | None] = (CloseStatus.OK, None)

    def _opening(self) -> Payload:
        return StepPayload()

    def _open_card(self) -> Card:
        self._step_card.is_queued = False
        self._step_card.last_event_ms = self.context.builder.now_ms()
        return self._step_card

    async def running(self, attempts: int = 1) -> None:
        """Show that an attempt begins; the first is number 1. Spec: Ruling E19."""
        self._attempts = attempts
        self.context.builder.set(
            self.card,
            StepPayload(status="running", attempts=count_or_unset(attempts)),
        )
        await self.context.builder.writer.breathe()

    def finish(
        self, output_summary: str | None = None, deliverables: Sequence[str] = ()
    ) -> None:
        """Record what the step gave, for the close.

        Args:
            output_summary: In a sentence or two.
            deliverables: Ids of artifacts; none for those kept within the step.

        Raises:
            TypeError: The deliverables are a text instead of a list.
        """
        self._end = (CloseStatus.OK, None)
        self._output = StepPayload(
            output_summary=text_or_unset(output_summary),
            deliverables=texts_or_unset("deliverables", deliverables),
            attempts=count_or_unset(self._attempts),
        )

    def fail(
        self,
        type: str,  # noqa: A002 - the wire's word
        message: str,
        *,
        code: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        """Record that the step failed, for the close.

        Raises:
            ValueError: The type is not one of EMIT 12.
        """
        error = error_info(type, message, code=code, retryable=retryable)
        self._end = (CloseStatus.FAILED, error)

    def skip(self) -> None:
        """Record that the step is left out, for the close. Spec: Ruling E19."""
        self._end = (CloseStatus.SKIPPED, None)

    def _ending(self) -> tuple[CloseStatus, ErrorInfo | None]:
        return self._end

    def _inner(self) -> Payload | None:
        inner = self._output
        if inner is None and self._attempts is not None:
            inner = StepPayload(attempts=count_or_unset(self._attempts))
        inner = self._naming_made(inner, StepPayload)
        if inner is not None and inner.deliverables is UNSET and self.made:
            # What it made is what it delivers, unless it says otherwise.
            return msgspec.structs.replace(inner, deliverables=list(self.made))
        return inner


def _named_card_id(builder: Builder, name: str) -> str | None:
    """Return a free card id that begins with the name; None if it is unsafe.

    Spec: Ruling E7.
    """
    if not is_safe_id(name):
        return None
    return name if builder.is_free(name) else f"{name}_{builder.random_hex(4)}"


def _planned(step: PlanStep) -> PlannedStep:
    return PlannedStep(
        step_id=clean_text(step.id),
        subagent_type=text_or_unset(step.subagent_type),
        depends_on=texts_or_unset("depends_on", step.depends_on),
        user_facing_title=text_or_unset(step.description),
    )


def checked_steps(
    steps: Sequence[PlanStep | Mapping[str, object]],
) -> list[PlanStep]:
    """Return the steps of a plan.

    Raises:
        TypeError: The steps, or what one depends on, are a text instead of a list.
        ValueError: A step is malformed or two have the same id.
    """
    checked = [_checked_step(step) for step in listed("steps", steps)]
    ids = [step.id for step in checked]
    if len(set(ids)) != len(ids):
        raise ValueError("two steps of the plan have the same id")
    return checked


def _checked_step(step: PlanStep | Mapping[str, object]) -> PlanStep:
    if not isinstance(step, PlanStep):
        return _step_from(step)
    _needed_by(step.depends_on)
    return step


def _step_from(fields: object) -> PlanStep:
    known = {"id", "description", "subagent_type", "prompt", "depends_on"}
    if not isinstance(fields, Mapping) or set(fields) - known or "id" not in fields:
        allowed = ", ".join(sorted(known))
        raise ValueError(f"a step is a PlanStep or a mapping of {allowed}; id is due")
    return PlanStep(
        id=str(fields["id"]),
        description=str(fields.get("description") or ""),
        subagent_type=_optional_text(fields.get("subagent_type")),
        prompt=_optional_text(fields.get("prompt")),
        depends_on=_needed_by(fields.get("depends_on")),
    )


def _needed_by(depends_on: object) -> tuple[str, ...]:
    given = () if depends_on is None else cast("Sequence[object]", depends_on)
    return tuple(str(each) for each in listed("depends_on", given))


def _optional_text(value: object) -> str | None:
    return None if value is None else str(value)
