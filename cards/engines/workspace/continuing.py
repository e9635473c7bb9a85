"""Going on with an answer that came after the turn that asked was lost.

Everything is looked at anew: the answer says only what the user wants.

Spec: Ruling E15; engine-api.md, Asking.
"""

import json
from collections.abc import Iterable

from cards.engine import Continuation, HistoryEntry
from cards.engines.workspace.asking import name_in, names_of, with_path
from cards.engines.workspace.commands import Command, RunProgram, WriteFile
from cards.engines.workspace.phrases import parse


def command_of(
    continuation: Continuation, history: Iterable[HistoryEntry]
) -> Command | None:
    """Return what the user wants done now; None for nothing.

    Args:
        history: Earlier turns, oldest first; the one that asked is among them.
    """
    if continuation.decision != "approved":
        return None
    if continuation.kind == "permission":
        return _allowed(continuation)
    return _meant(continuation, history)


def _allowed(continuation: Continuation) -> Command | None:
    call = json.loads(str(continuation.prompt["tool_input"]))
    if continuation.prompt["tool_name"] == "Run":
        return RunProgram(call["command"], is_allowed=True)
    return WriteFile(call["file_path"], call["content"], is_allowed=True)


def _meant(
    continuation: Continuation, history: Iterable[HistoryEntry]
) -> Command | None:
    name = name_in(str(continuation.prompt["question"]))
    selected = continuation.payload.get("selected_options")
    words = continuation.payload.get("custom_text")
    path = str(words or (selected[0] if isinstance(selected, list) else ""))
    said = [entry.text for entry in history if entry.role == "user"]
    for text in reversed(said):
        command = parse(text)
        if name in [getattr(command, field) for field in names_of(command)]:
            return with_path(command, name, path)
    return None
