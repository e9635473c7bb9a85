"""The closed sets of the card protocol, each as an enum of its wire words.

Spec: EMIT 17.
"""

from enum import StrEnum


class Action(StrEnum):
    """What a server frame tells the client to do. Spec: EMIT 4."""

    CARD_ADD = "card.add"
    CARD_SET = "card.set"
    CARD_APPEND = "card.append"
    CARD_TICK = "card.tick"
    CARD_CLOSE = "card.close"
    PROMPT_USER = "prompt.user"
    PROMPT_REPLY = "prompt.reply"
    SESSION_EVENT = "session.event"


class CardKind(StrEnum):
    """What a card shows. Spec: EMIT 5."""

    TURN = "turn"
    MESSAGE = "message"
    TOOL = "tool"
    AGENT = "agent"
    PLAN = "plan"
    STEP = "step"
    ARTIFACT = "artifact"
    THINKING = "thinking"
    MEMORY_OP = "memory_op"
    BUDGET = "budget"
    TODO = "todo"
    TEAM = "team"
    SYSTEM = "system"


#: Kinds that must be closed; the others never get a `card.close`.
#: Spec: EMIT 10.9; Ruling E13.
TRACKED_KINDS = frozenset(
    {
        CardKind.TURN,
        CardKind.MESSAGE,
        CardKind.TOOL,
        CardKind.AGENT,
        CardKind.PLAN,
        CardKind.STEP,
        CardKind.THINKING,
    }
)


class TickKind(StrEnum):
    """A momentary signal inside a card. Spec: EMIT 6.4, 11."""

    PROGRESS = "progress"
    HEARTBEAT = "heartbeat"
    INTENT = "intent"
    NOTE = "note"
    ESCALATION = "escalation"


#: Ticks of which only the newest matters. Spec: EMIT 6.4; Ruling E20.
DROPPABLE_TICKS = frozenset({TickKind.PROGRESS, TickKind.HEARTBEAT})


class Channel(StrEnum):
    """A text stream inside a card. Spec: EMIT 6.3."""

    TEXT = "text"
    TOOL_INPUT = "tool_input"
    THINKING = "thinking"


#: The streams that a card of each kind may carry. Spec: EMIT 6.3.
CHANNELS_OF_KIND: dict[CardKind, tuple[Channel, ...]] = {
    CardKind.MESSAGE: (Channel.TEXT, Channel.TOOL_INPUT),
    CardKind.THINKING: (Channel.THINKING,),
}


class ErrorType(StrEnum):
    """Why something failed. Spec: EMIT 12."""

    TOOL_TIMEOUT = "tool_timeout"
    ORPHAN_TIMEOUT = "orphan_timeout"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    CONTRACT_FAIL = "contract_fail"
    DEPENDENCY_FAIL = "dependency_fail"
    USER_ABORTED = "user_aborted"
    PERMISSION_DENIED = "permission_denied"
    MAX_TURNS = "max_turns"
    CONTEXT_EXCEEDED = "context_exceeded"
    MODEL_ERROR = "model_error"
    BUDGET_EXHAUSTED = "budget_exhausted"
    INVALID_INPUT = "invalid_input"
    INTERNAL = "internal"


class Role(StrEnum):
    """Who speaks in a frame. Spec: EMIT 3.2."""

    PERSONA = "persona"
    ORCHESTRATOR = "orchestrator"
    WORKER = "worker"
    SYSTEM = "system"


class Severity(StrEnum):
    """How loud a frame is. Spec: EMIT 3.2."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"


class CloseStatus(StrEnum):
    """How a card ended. Spec: EMIT 6.5."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


#: How loud a close is. Spec: EMIT 3.2, 6.5; emit-tables 1.
SEVERITY_OF_CLOSE: dict[CloseStatus, Severity] = {
    CloseStatus.OK: Severity.INFO,
    CloseStatus.FAILED: Severity.ERROR,
    CloseStatus.SKIPPED: Severity.WARN,
    CloseStatus.CANCELLED: Severity.WARN,
}


class SessionEventKind(StrEnum):
    """What a `session.event` reports. Spec: EMIT 8."""

    OPENED = "opened"
    UPDATED = "updated"
    ERROR = "error"
    RESUMED = "resumed"
    RESUME_FAILED = "resume_failed"


class ResumeFailure(StrEnum):
    """Why a resume cannot be served. Spec: EMIT 8; Ruling E5."""

    EVENTS_EXPIRED = "events_expired"
    UNKNOWN_TRACE = "unknown_trace"
    SESSION_NOT_FOUND = "session_not_found"
    NOT_IMPLEMENTED = "not_implemented"


class PromptKind(StrEnum):
    """What the user is asked. Spec: EMIT 7.1."""

    PERMISSION = "permission"
    QUESTION = "question"
    PLAN_REVIEW = "plan_review"
    STEP_DECISION = "step_decision"
