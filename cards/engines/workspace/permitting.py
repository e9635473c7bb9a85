"""Permission: asked for before a program runs or a file is replaced.

Spec: engine-api.md, Asking; Rulings E15, E18.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cards.engines.workspace.failures import WorkspaceFailure, denied
from cards.engines.workspace.surface import Scope, Tool
from cards.engines.workspace.wording import in_code, shortened

# Characters of the user's remark that are repeated.
_REMARK_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What has to be allowed before a tool call does its work."""

    #: Exactly what would be done; an answer for the session covers it (Ruling E18).
    input: Mapping[str, object]
    #: What the user should know before answering, as plain text.
    message: str
    #: Whether the call changes nothing.
    is_read_only: bool = False


async def permitted(
    scope: Scope, tool: Tool, tool_name: str, asked: Permission
) -> None:
    """Return once the user has allowed it; the card shows that it waits.

    Raises:
        WorkspaceFailure: The user did not allow it.
    """
    await tool.set(phase="permission_wait")
    answer = await scope.permission(
        tool_name,
        asked.input,
        message=asked.message,
        is_read_only=asked.is_read_only,
    )
    if not answer.approved:
        raise refused(tool_name, answer.message)
    await tool.set(phase="executing")


def refused(tool_name: str, remark: str) -> WorkspaceFailure:
    """Return the failure of a call that the user did not allow.

    Args:
        tool_name: The tool.
        remark: What the user said to it; "" for nothing.
    """
    said = shortened(" ".join(remark.split()), _REMARK_CHARS)
    return denied(
        f"You did not allow {in_code(tool_name)}, so nothing was changed or run."
        + (f" You said: {said}" if said else ""),
        code="user_denied",
    )
