"""Frames and their parts with plain defaults, for the tests of the protocol."""

import json
from typing import Any, Literal

from cards.protocol.codec import encode_event
from cards.protocol.envelope import BudgetAmount, Envelope, Hint, Metrics
from cards.protocol.errors import ErrorInfo, Recovery, make_error
from cards.protocol.events import Event
from cards.protocol.json_form import JSONValue
from cards.protocol.kinds import (
    CardKind,
    ErrorType,
    PromptKind,
    ResumeFailure,
    Role,
    SessionEventKind,
    Severity,
    TickKind,
)
from cards.protocol.payloads import (
    AgentPayload,
    ArtifactPayload,
    ArtifactRef,
    BudgetPayload,
    ErrorInner,
    EscalationInner,
    HeartbeatInner,
    IntentInner,
    MemoryOpPayload,
    MessagePayload,
    NoteInner,
    OpenedInner,
    Payload,
    PlannedStep,
    PlanPayload,
    ProgressInner,
    QueuedMessage,
    ResumedInner,
    ResumeFailedInner,
    StepPayload,
    SystemPayload,
    TeamPayload,
    ThinkingPayload,
    TodoPayload,
    ToolPayload,
    TurnPayload,
    UpdatedInner,
    UserInput,
)

ARTIFACT_REF = ArtifactRef(
    artifact_id="art_a1b2", name="mail.md", type="file", size_bytes=1240
)

#: What a `card.add` of each kind carries.
PAYLOADS: dict[CardKind, Payload] = {
    CardKind.TURN: TurnPayload(
        turn_no=1,
        channel="chat",
        input=UserInput(
            event_id="c1", text="Hi", content=[{"type": "text", "text": "Hi"}]
        ),
    ),
    CardKind.MESSAGE: MessagePayload(role="assistant", model="echo"),
    CardKind.TOOL: ToolPayload(
        name="bash",
        target="server",
        intent="List",
        input={"command": "ls -la"},
        artifacts=[ARTIFACT_REF],
    ),
    CardKind.AGENT: AgentPayload(name="researcher", agent_type="sync", num_turns=3),
    CardKind.PLAN: PlanPayload(
        plan_id="pln_1",
        goal="Write",
        strategy="sequential",
        steps=[PlannedStep(step_id="s1", depends_on=["s0"])],
    ),
    CardKind.STEP: StepPayload(step_id="s1", status="queued", input_summary="Search"),
    CardKind.ARTIFACT: ArtifactPayload(
        artifact_id="art_a1b2", name="mail.md", version=1
    ),
    CardKind.THINKING: ThinkingPayload(length=120),
    CardKind.MEMORY_OP: MemoryOpPayload(op="compact", subject="history", bytes=4096),
    CardKind.BUDGET: BudgetPayload(kind="warning", spent=BudgetAmount(tokens=9000)),
    CardKind.TODO: TodoPayload(subject="Tidy up", status="pending"),
    CardKind.TEAM: TeamPayload(team_name="Writers", members=["a", "b"]),
    CardKind.SYSTEM: SystemPayload(topic="search_capability_gap", summary="No search"),
}

TICK_INNERS: dict[TickKind, Payload] = {
    TickKind.PROGRESS: ProgressInner(stage="fetching", progress_pct=0.4, eta_ms=18000),
    TickKind.HEARTBEAT: HeartbeatInner(stage="running_tools", uptime_ms=8500),
    TickKind.INTENT: IntentInner(intent="Look for papers"),
    TickKind.NOTE: NoteInner(text="Fresh fetch", severity=Severity.INFO),
    TickKind.ESCALATION: EscalationInner(from_mode="react", to_mode="plan"),
}

SESSION_INNERS: dict[SessionEventKind, Payload] = {
    SessionEventKind.OPENED: OpenedInner(
        protocol_version="2.0",
        capabilities={"streaming": True},
        trace_id="tr_1",
        last_seq=0,
    ),
    SessionEventKind.UPDATED: UpdatedInner(
        state="idle", queue=[QueuedMessage(event_id="c2", text="Next")]
    ),
    SessionEventKind.ERROR: ErrorInner(error=make_error(ErrorType.INTERNAL, "broke")),
    SessionEventKind.RESUMED: ResumedInner(trace_id="tr_1", from_seq=43, to_seq=68),
    SessionEventKind.RESUME_FAILED: ResumeFailedInner(
        trace_id="tr_1", reason=ResumeFailure.EVENTS_EXPIRED
    ),
}

HINT = Hint(title="Bash", icon="tool", initial_state="collapsed")

METRICS = Metrics(
    duration_ms=50, cost_usd=0.0023, budget_spent=BudgetAmount(usd=0.05, calls=2)
)

ERROR = ErrorInfo(
    type=ErrorType.TOOL_TIMEOUT,
    code="BASH_TIMEOUT",
    message="Bash exceeded 120s",
    user_message="That took too long.",
    retryable=True,
    retry_after_ms=5000,
    recovery=Recovery(action="retry", next_card_id="step_b"),
    details={"terminal_turn": 3},
)


def make_envelope(card_kind: CardKind | Literal[""] = "", *, seq: int = 1) -> Envelope:
    """Return an envelope; without a kind that of `prompt.*` and `session.*`."""
    return Envelope(
        event_id="evt_0a1b2c3d4e5f60718293",
        session_id="sess_1",
        trace_id="tr_0123456789abcdef01234567",
        card_id=f"{card_kind}_1" if card_kind else "",
        card_kind=card_kind,
        seq=seq,
        timestamp="2026-05-07T10:00:00.000Z",
        agent_id="main",
        agent_role=Role.PERSONA,
        severity=Severity.INFO,
    )


def wire(event: Event) -> dict[str, Any]:
    """Return what a client reads of an event."""
    frame: dict[str, Any] = json.loads(encode_event(event))
    return frame


PROMPT_INNERS: dict[PromptKind, dict[str, JSONValue]] = {
    PromptKind.PERMISSION: {
        "tool_name": "Bash",
        "tool_input": "ls",
        "options": [{"label": "Allow", "scope": "once", "allow": True}],
    },
    PromptKind.QUESTION: {"question": "Which?", "allow_custom": True},
    PromptKind.PLAN_REVIEW: {
        "plan_id": "pln_1",
        "goal": "a report",
        "steps": [{"id": "s1", "description": "look"}],
    },
    PromptKind.STEP_DECISION: {"scope": "step", "step_id": "s1", "reason": "busy"},
}
