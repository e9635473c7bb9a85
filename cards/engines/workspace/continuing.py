"""Going on with an answer that came when the turn that asked was gone.

The answer says what the user wants; whether it can be done is looked at anew.

| the prompt | what is done |
|---|---|
| a permission, given | the call that it was about, without asking again |
| a question which file is meant | what the user had asked for, with that file |
| either, declined | nothing |
| any other | nothing; the user may say it anew |

Spec: engine-api.md, Continuation; Ruling E15.
"""

import json

from cards.engine import Continuation
from cards.engines.workspace.choosing import (
    Request,
    answer_in,
    asked_in,
    declined,
    names_in,
)
from cards.engines.workspace.commands import Command, RunProgram, SayText, WriteFile
from cards.engines.workspace.permitting import refused
from cards.engines.workspace.phrases import parse

_NOTHING_TO_DO = SayText(
    "I cannot go on with that answer, so nothing was done. Please say once more what "
    "you want; `help` shows what I can do."
)


def request_in(continuation: Continuation) -> Request:
    """Return what the user wants done now."""
    if continuation.kind == "permission":
        return Request(command=_permitted_call(continuation), said="")
    if continuation.kind == "question":
        return _explained_request(continuation)
    return Request(command=_NOTHING_TO_DO, said="")


def _permitted_call(continuation: Continuation) -> Command:
    prompt, answer = continuation.prompt, continuation.payload
    tool_name = str(prompt.get("tool_name", ""))
    if continuation.decision != "approved":
        return SayText(refused(tool_name, str(answer.get("message", ""))).sentence)
    match tool_name, _decoded(prompt.get("tool_input")):
        case "Run", {"command": str(line)}:
            return RunProgram(line, is_allowed=True)
        case "Write", {"file_path": str(name), "content": str(content)}:
            if answer.get("scope") == "session":
                # The session remembers it, whatever is in the file by now.
                return WriteFile(name, content)
            return WriteFile(name, content, allowed=str(prompt.get("message", "")))
    return _NOTHING_TO_DO


def _decoded(tool_input: object) -> object:
    try:
        return json.loads(str(tool_input))
    except ValueError:
        # The call of another engine, which this server had before.
        return None


def _explained_request(continuation: Continuation) -> Request:
    asked = asked_in(str(continuation.prompt.get("question", "")))
    if asked is None:
        return Request(command=_NOTHING_TO_DO, said="")
    name, said = asked
    if continuation.decision != "approved":
        return Request(command=declined(name), said=said)
    command = parse(said)
    if name not in names_in(command):
        return Request(command=_NOTHING_TO_DO, said="")
    selected = continuation.payload.get("selected_options")
    answer = answer_in(
        [str(label) for label in selected] if isinstance(selected, list) else (),
        str(continuation.payload.get("custom_text", "")),
    )
    return Request(command=command, said=said, answers={name: answer})
