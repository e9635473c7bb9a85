"""The default hint and role of a card of each kind.

Spec: EMIT 3.3, 5; Ruling E6; emit-tables 6.
"""

from dataclasses import dataclass

from msgspec import UNSET

from cards.protocol.envelope import Hint
from cards.protocol.kinds import CardKind, Role
from cards.protocol.payloads import Payload

#: Longest title and summary in characters; a hint is a label, not the content.
MAX_TITLE_CHARS = 120
MAX_SUMMARY_CHARS = 200


@dataclass(frozen=True, slots=True)
class HintDefaults:
    """What a card shows when its maker says nothing.

    Attributes:
        title_field: Payload field whose text is the title; None for none.
        title: Title when the field is missing; `{}` is replaced by `turn_no`.
    """

    title: str
    icon: str
    role: Role
    title_field: str | None = None


HINT_REGISTRY: dict[CardKind, HintDefaults] = {
    CardKind.TURN: HintDefaults("Turn {}", "chat", Role.PERSONA),
    CardKind.MESSAGE: HintDefaults("Reply", "chat", Role.PERSONA),
    CardKind.TOOL: HintDefaults("Tool", "tool", Role.WORKER, "name"),
    CardKind.AGENT: HintDefaults("Agent", "agent", Role.WORKER, "name"),
    CardKind.PLAN: HintDefaults("Plan", "plan", Role.ORCHESTRATOR),
    CardKind.STEP: HintDefaults("Step", "dispatch", Role.ORCHESTRATOR, "input_summary"),
    CardKind.ARTIFACT: HintDefaults("File", "artifact", Role.WORKER, "name"),
    CardKind.THINKING: HintDefaults("Thinking", "thinking", Role.PERSONA),
    CardKind.MEMORY_OP: HintDefaults("Memory", "memory", Role.SYSTEM),
    CardKind.BUDGET: HintDefaults("Budget", "warning", Role.SYSTEM),
    CardKind.TODO: HintDefaults("To-do", "task", Role.SYSTEM, "subject"),
    CardKind.TEAM: HintDefaults("Team", "team", Role.SYSTEM, "team_name"),
    CardKind.SYSTEM: HintDefaults("System notice", "info", Role.SYSTEM),
}


def shorten(text: str, limit: int) -> str:
    """Return `text` on one line, cut to `limit` characters with an ellipsis.

    Spec: none; a hint is a label.
    """
    # Every word has a character and a blank: more words than `limit` never fit.
    line = " ".join(text.split(maxsplit=limit))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def default_hint(
    kind: CardKind,
    payload: Payload,
    *,
    title: str | None = None,
    summary: str | None = None,
    icon: str | None = None,
) -> Hint:
    """Return the hint of a new card; None takes the default of its kind.

    The title is never empty and never holds a template token, whatever the
    payload lacks.

    Spec: EMIT 3.3; Ruling E6.
    """
    defaults = HINT_REGISTRY[kind]
    return Hint(
        title=shorten(title or "", MAX_TITLE_CHARS) or _title(defaults, payload),
        summary=shorten(summary or "", MAX_SUMMARY_CHARS) or UNSET,
        icon=icon or defaults.icon,
    )


def _title(defaults: HintDefaults, payload: Payload) -> str:
    if defaults.title_field is not None:
        text = getattr(payload, defaults.title_field)
        if isinstance(text, str) and text.strip():
            return shorten(text, MAX_TITLE_CHARS)
    turn_no = getattr(payload, "turn_no", UNSET)
    return defaults.title.format("" if turn_no is UNSET else turn_no).strip()
