"""Asking: before a program runs or a file is replaced, and which file is meant.

Spec: engine-api.md, Asking; Rulings E15, E18.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from cards.engines.workspace.commands import (
    AppendText,
    Command,
    WriteFile,
)
from cards.engines.workspace.failures import WorkspaceFailure
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.locating import candidates
from cards.engines.workspace.surface import Scope, Tool

#: Paths that a question offers; the user may write another one.
_OFFERED: Final = 10

#: Names whose meaning is remembered, of all sessions together.
_REMEMBERED: Final = 1000

#: The fields of commands that name a file or a folder.
_NAMES: Final = frozenset({"name", "old_name", "new_name"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What has to be allowed before a tool call does its work.

    Attributes:
        input: Exactly what would be done; also what an answer for the session covers.
        message: What the user should know before answering.
    """

    input: Mapping[str, object]
    message: str


async def permitted(scope: Scope, tool: Tool, name: str, asked: Permission) -> None:
    """Return once the user has allowed it.

    Raises:
        WorkspaceFailure: The user did not; nothing was done.
    """
    await tool.set(phase="permission_wait")
    answer = await scope.permission(name, asked.input, message=asked.message)
    if not answer.approved:
        remark = f" You said: {answer.message}" if answer.message else ""
        raise WorkspaceFailure(
            "permission_denied",
            f"You did not allow it, so nothing was done.{remark}",
            code="not_permitted",
        )
    await tool.set(phase="executing")


class Choices:
    """Which path a session's user meant by a name that several files have."""

    def __init__(self) -> None:
        self._paths: OrderedDict[tuple[str, str], str] = OrderedDict()

    def recall(self, session_id: str, name: str) -> str | None:
        """Return the path that was chosen before; None if none was."""
        return self._paths.get((session_id, name))

    def remember(self, session_id: str, name: str, path: str) -> None:
        """Keep a choice; the oldest ones are forgotten."""
        self._paths[session_id, name] = path
        while len(self._paths) > _REMEMBERED:
            self._paths.popitem(last=False)


def question_about(name: str) -> str:
    """Return the question which of several files a name means."""
    return f'Which "{name}" do you mean?'


def name_in(question: str) -> str:
    """Return the name that `question_about` asked about; "" for another question."""
    _, _, rest = question.partition('"')
    name, _, _ = rest.rpartition('"')
    return name if question == question_about(name) else ""


def with_path(command: Command, name: str, path: str) -> Command:
    """Return the command with a path wherever it uses a name."""
    changes = {
        field: path for field in names_of(command) if getattr(command, field) == name
    }
    # `names_of` found these fields in it.
    return replace(command, **changes)  # type: ignore[arg-type]


def names_of(command: Command) -> list[str]:
    """Return the fields of a command whose names are looked for."""
    if isinstance(command, WriteFile | AppendText):
        # These take the path as it is.
        return []
    return [each.name for each in fields(command) if each.name in _NAMES]


async def with_chosen_paths(
    scope: Scope,
    workspace: Workspace,
    command: Command,
    *,
    session_id: str,
    choices: Choices,
) -> Command | None:
    """Return the command with its names made clear; None if the user declined."""
    for field in names_of(command):
        name = getattr(command, field)
        found = await workspace.off_loop(candidates, workspace.disk, name)
        if len(found) < 2:
            continue
        path = choices.recall(session_id, name)
        if path not in found:
            path = await _chosen(scope, name, found)
        if path is None:
            return None
        choices.remember(session_id, name, path)
        command = with_path(command, name, path)
    return command


async def _chosen(scope: Scope, name: str, found: list[str]) -> str | None:
    answer = await scope.ask(question_about(name), options=found[:_OFFERED])
    if not answer.approved:
        return None
    return answer.custom_text or answer.selected[0]
