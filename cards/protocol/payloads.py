"""The payload of a card of each kind, of ticks, appends and session events.

Every field is optional in the type, because the same shape serves `card.add`,
`card.set` and the `inner` of `card.close`, and a patch carries only the fields it
changes (Ruling E11). What must be there on `card.add` stands in REQUIRED_ON_ADD.
UNSET fields are left out of the frame.

Spec: EMIT 6, 8, 10, 11.
"""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from cards.protocol.envelope import BudgetAmount
from cards.protocol.errors import ErrorInfo
from cards.protocol.json_form import JSONValue
from cards.protocol.kinds import (
    CardKind,
    Channel,
    CloseStatus,
    PromptKind,
    ResumeFailure,
    SessionEventKind,
    Severity,
    TickKind,
)


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Base of every payload."""


class ArtifactRef(Payload, frozen=True, kw_only=True):
    """A file named inside another card. Spec: EMIT 10, ArtifactRef."""

    artifact_id: str
    name: str
    type: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    size_bytes: int | UnsetType = UNSET
    description: str | UnsetType = UNSET
    role: str | UnsetType = UNSET


class UserInput(Payload, frozen=True, kw_only=True):
    """The user's words, shown again from the log. Spec: Ruling E28.

    `content` holds the message's blocks without inline data.
    """

    event_id: str | UnsetType = UNSET
    text: str
    content: list[dict[str, JSONValue]]


class TurnPayload(Payload, frozen=True, kw_only=True):
    """One round of the conversation; `turn_no` counts from 1. Spec: EMIT 10."""

    turn_no: int | UnsetType = UNSET
    channel: Literal["chat", "voice", "api"] | UnsetType = UNSET
    input: UserInput | UnsetType = UNSET


class MessagePayload(Payload, frozen=True, kw_only=True):
    """One reply of the model. Spec: EMIT 10."""

    role: Literal["assistant", "user"] | UnsetType = UNSET
    model: str | UnsetType = UNSET
    stop_reason: str | UnsetType = UNSET


class ToolPayload(Payload, frozen=True, kw_only=True):
    """One tool call; `output` and what follows come with the close. Spec: EMIT 10."""

    name: str | UnsetType = UNSET
    target: Literal["server", "client"] | UnsetType = UNSET
    intent: str | UnsetType = UNSET
    input: JSONValue | UnsetType = UNSET
    output: JSONValue | UnsetType = UNSET
    render_hint: str | UnsetType = UNSET
    language: str | UnsetType = UNSET
    file_path: str | UnsetType = UNSET
    artifacts: list[ArtifactRef] | UnsetType = UNSET
    details: JSONValue | UnsetType = UNSET
    metadata: JSONValue | UnsetType = UNSET
    phase: str | UnsetType = UNSET
    phase_hint: str | UnsetType = UNSET


class AgentPayload(Payload, frozen=True, kw_only=True):
    """One sub-agent; `num_turns` counts its model calls. Spec: EMIT 10."""

    name: str | UnsetType = UNSET
    agent_type: Literal["sync", "async"] | UnsetType = UNSET
    subagent_type: str | UnsetType = UNSET
    parent_agent_id: str | UnsetType = UNSET
    task_prompt: str | UnsetType = UNSET
    output_summary: str | UnsetType = UNSET
    num_turns: int | UnsetType = UNSET
    denied_tools: list[str] | UnsetType = UNSET
    artifacts: list[ArtifactRef] | UnsetType = UNSET


class PlannedStep(Payload, frozen=True, kw_only=True):
    """A step as its plan lists it. Spec: EMIT 10."""

    step_id: str
    subagent_type: str | UnsetType = UNSET
    depends_on: list[str] | UnsetType = UNSET
    user_facing_title: str | UnsetType = UNSET
    user_facing_summary: str | UnsetType = UNSET


class PlanPayload(Payload, frozen=True, kw_only=True):
    """A graph of steps. Spec: EMIT 10."""

    plan_id: str | UnsetType = UNSET
    goal: str | UnsetType = UNSET
    strategy: Literal["sequential", "parallel", "mixed"] | UnsetType = UNSET
    rationale: str | UnsetType = UNSET
    steps: list[PlannedStep] | UnsetType = UNSET


class StepPayload(Payload, frozen=True, kw_only=True):
    """One step of a plan; `attempts` counts from 1. Spec: EMIT 10."""

    step_id: str | UnsetType = UNSET
    subagent_type: str | UnsetType = UNSET
    status: Literal["queued", "running"] | UnsetType = UNSET
    input_summary: str | UnsetType = UNSET
    output_summary: str | UnsetType = UNSET
    attempts: int | UnsetType = UNSET
    deliverables: list[str] | UnsetType = UNSET
    artifacts: list[ArtifactRef] | UnsetType = UNSET


class ArtifactPayload(Payload, frozen=True, kw_only=True):
    """One version of a stored file; `version` counts from 1. Spec: EMIT 10."""

    artifact_id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    size_bytes: int | UnsetType = UNSET
    description: str | UnsetType = UNSET
    role: str | UnsetType = UNSET
    uri: str | UnsetType = UNSET
    version: int | UnsetType = UNSET
    thumbnail: str | UnsetType = UNSET


class ThinkingPayload(Payload, frozen=True, kw_only=True):
    """Extended thinking; `length` in characters, with the close. Spec: EMIT 10."""

    length: int | UnsetType = UNSET


class MemoryOpPayload(Payload, frozen=True, kw_only=True):
    """A read, write or compaction of memory. Spec: EMIT 10."""

    op: Literal["read", "write", "compact"] | UnsetType = UNSET
    subject: str | UnsetType = UNSET
    bytes: int | UnsetType = UNSET


class BudgetPayload(Payload, frozen=True, kw_only=True):
    """A word about a budget. Spec: EMIT 10."""

    kind: Literal["warning", "exhausted", "reset"] | UnsetType = UNSET
    spent: BudgetAmount | UnsetType = UNSET
    limit: BudgetAmount | UnsetType = UNSET


class TodoPayload(Payload, frozen=True, kw_only=True):
    """One entry of the to-do list. Spec: EMIT 10."""

    subject: str | UnsetType = UNSET
    status: Literal["pending", "in_progress", "completed", "cancelled"] | UnsetType = (
        UNSET
    )
    owner: str | UnsetType = UNSET
    active_form: str | UnsetType = UNSET


class TeamPayload(Payload, frozen=True, kw_only=True):
    """A group of agents. Spec: EMIT 10."""

    team_name: str | UnsetType = UNSET
    members: list[str] | UnsetType = UNSET


class SystemPayload(Payload, frozen=True, kw_only=True):
    """A notice of the framework; clients route by `topic`. Spec: EMIT 10.9."""

    topic: str | UnsetType = UNSET
    summary: str | UnsetType = UNSET
    action_hint: str | UnsetType = UNSET


PAYLOAD_OF_KIND: dict[CardKind, type[Payload]] = {
    CardKind.TURN: TurnPayload,
    CardKind.MESSAGE: MessagePayload,
    CardKind.TOOL: ToolPayload,
    CardKind.AGENT: AgentPayload,
    CardKind.PLAN: PlanPayload,
    CardKind.STEP: StepPayload,
    CardKind.ARTIFACT: ArtifactPayload,
    CardKind.THINKING: ThinkingPayload,
    CardKind.MEMORY_OP: MemoryOpPayload,
    CardKind.BUDGET: BudgetPayload,
    CardKind.TODO: TodoPayload,
    CardKind.TEAM: TeamPayload,
    CardKind.SYSTEM: SystemPayload,
}

#: Fields that `card.add` must carry; a patch may never blank them. Spec: EMIT 10.
REQUIRED_ON_ADD: dict[CardKind, tuple[str, ...]] = {
    CardKind.TURN: ("turn_no", "channel", "input"),
    CardKind.MESSAGE: ("role",),
    CardKind.TOOL: ("name", "target"),
    CardKind.AGENT: ("name", "agent_type"),
    CardKind.PLAN: ("plan_id", "goal", "strategy", "steps"),
    CardKind.STEP: ("step_id", "status"),
    CardKind.ARTIFACT: ("artifact_id", "name", "version"),
    CardKind.THINKING: (),
    CardKind.MEMORY_OP: ("op",),
    CardKind.BUDGET: ("kind",),
    CardKind.TODO: ("subject", "status"),
    CardKind.TEAM: ("team_name",),
    CardKind.SYSTEM: (),
}


class AppendPayload(Payload, frozen=True, kw_only=True):
    """A piece of a stream: `partial_json` on tool_input, else `chunk`.

    `index` tells blocks of one card apart and is left out when 0.

    Spec: EMIT 6.3.
    """

    channel: Channel
    index: int | UnsetType = UNSET
    chunk: str | UnsetType = UNSET
    partial_json: str | UnsetType = UNSET


class ProgressInner(Payload, frozen=True, kw_only=True):
    """How far work has come; `progress_pct` from 0 to 1. Spec: EMIT 11."""

    stage: str | UnsetType = UNSET
    progress_pct: float | UnsetType = UNSET
    items_processed: int | UnsetType = UNSET
    items_total: int | UnsetType = UNSET
    unit: str | UnsetType = UNSET
    eta_ms: int | UnsetType = UNSET


class HeartbeatInner(Payload, frozen=True, kw_only=True):
    """A sign of life; `uptime_ms` since the card opened. Spec: EMIT 11."""

    stage: str | UnsetType = UNSET
    uptime_ms: int | UnsetType = UNSET
    active_tool_card_id: str | UnsetType = UNSET


class IntentInner(Payload, frozen=True, kw_only=True):
    """What is about to be done. Spec: EMIT 11."""

    intent: str


class NoteInner(Payload, frozen=True, kw_only=True):
    """A remark beside the work. Spec: EMIT 11."""

    text: str
    severity: Severity | UnsetType = UNSET


class EscalationInner(Payload, frozen=True, kw_only=True):
    """A change of the way of working. Spec: EMIT 11."""

    from_mode: str
    to_mode: str
    reason: str | UnsetType = UNSET


INNER_OF_TICK: dict[TickKind, type[Payload]] = {
    TickKind.PROGRESS: ProgressInner,
    TickKind.HEARTBEAT: HeartbeatInner,
    TickKind.INTENT: IntentInner,
    TickKind.NOTE: NoteInner,
    TickKind.ESCALATION: EscalationInner,
}


class TickPayload(Payload, frozen=True, kw_only=True):
    """A tick of one kind. Spec: EMIT 6.4, 11."""

    kind: TickKind
    inner: Payload


class ClosePayload(Payload, frozen=True, kw_only=True):
    """How a card ended: `error` only when failed, `inner` a patch. Spec: EMIT 6.5."""

    status: CloseStatus
    error: ErrorInfo | UnsetType = UNSET
    inner: Payload | UnsetType = UNSET


class PromptUserPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A question to the user; `timeout_ms` 0 means none and is always written.

    The shape of `inner` depends on `kind`: see cards.protocol.prompts.

    Spec: EMIT 7.1; Ruling E6.
    """

    request_id: str
    kind: PromptKind
    inner: dict[str, JSONValue]
    timeout_ms: int


class PromptReplyPayload(Payload, frozen=True, kw_only=True):
    """How a question was settled. Spec: EMIT 7.2; Ruling E15."""

    request_id: str
    decision: Literal["approved", "denied", "continue", "retry", "cancelled", "timeout"]
    reason: str | UnsetType = UNSET


class OpenedInner(Payload, frozen=True, kw_only=True):
    """What this server can do, and where the session's trace stands.

    Spec: EMIT 8; Ruling E1.
    """

    protocol_version: str
    model: str | UnsetType = UNSET
    capabilities: dict[str, bool]
    trace_id: str
    last_seq: int


class QueuedMessage(Payload, frozen=True, kw_only=True):
    """A message that waits for its turn. Spec: Ruling E9."""

    event_id: str
    text: str


class UpdatedInner(Payload, frozen=True, kw_only=True):
    """What changed in the session; fields that did not are left out.

    Spec: EMIT 8; Rulings E8, E9, E10, E29.
    """

    title: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    turn_card_id: str | UnsetType = UNSET
    state: Literal["idle", "running"] | UnsetType = UNSET
    queue: list[QueuedMessage] | UnsetType = UNSET


class ErrorInner(Payload, frozen=True, kw_only=True):
    """An error of the session or of one frame. Spec: EMIT 8, 12."""

    error: ErrorInfo


class ResumedInner(Payload, frozen=True, kw_only=True):
    """The seqs that follow; `from_seq` = `to_seq` + 1 means none. Spec: Ruling E5."""

    trace_id: str
    from_seq: int
    to_seq: int


class ResumeFailedInner(Payload, frozen=True, kw_only=True):
    """Why nothing is replayed. Spec: EMIT 8; Ruling E5."""

    trace_id: str
    reason: ResumeFailure


INNER_OF_SESSION_EVENT: dict[SessionEventKind, type[Payload]] = {
    SessionEventKind.OPENED: OpenedInner,
    SessionEventKind.UPDATED: UpdatedInner,
    SessionEventKind.ERROR: ErrorInner,
    SessionEventKind.RESUMED: ResumedInner,
    SessionEventKind.RESUME_FAILED: ResumeFailedInner,
}


class SessionEventPayload(Payload, frozen=True, kw_only=True):
    """A session event of one kind. Spec: EMIT 8."""

    kind: SessionEventKind
    inner: Payload
