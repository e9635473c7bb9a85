"""What a grant for the session covers.

A key stands for everything that its user saw, so that a harmless command never
covers one that begins alike.

| the input | the key |
|---|---|
| a text, or an object with a `command` alone | the tool and the whole command line |
| an object with a path, and content for it | the tool and all but the content |
| any other | the tool and the whole input |
| none | the tool |

Spec: Ruling E18.
"""

import hashlib
from typing import Final

import msgspec

from cards.protocol.json_form import clean_text, json_form

#: Longer keys are told by a digest, which covers as much.
MAX_KEY_CHARS: Final = 200

_DIGEST: Final = "sha256:"

#: Of a tool's name, beside a digest.
_NAME_CHARS: Final = 50

_PATHS: Final = frozenset({"path", "file_path"})

#: What is written to a path may differ from call to call.
_CONTENTS: Final = frozenset({"content", "text", "old_string", "new_string"})


def permission_key(tool_name: str, tool_input: object) -> str:
    """Return the key of a call; equal calls have equal keys, others do not.

    Args:
        tool_input: As the tool would be given it.
    """
    covered = _covered_by(tool_input)
    key = f"{_escaped(tool_name)}:{covered}" if covered else _escaped(tool_name)
    # What looks like a digest is one, or an input would cover that of another.
    if len(key) <= MAX_KEY_CHARS and not covered.startswith(_DIGEST):
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()
    return f"{_escaped(tool_name[:_NAME_CHARS])}:{_DIGEST}{digest}"


def _escaped(tool_name: str) -> str:
    # The first bare colon ends the name, so that no name covers another's input.
    return tool_name.replace("\\", "\\\\").replace(":", "\\:")


def _covered_by(tool_input: object) -> str:
    # Spaces count: a shell and a file system tell `a\ ` from `a\`.
    if isinstance(tool_input, str):
        return clean_text(tool_input)
    form = json_form(tool_input)
    if isinstance(form, dict):
        command = form.get("command")
        if isinstance(command, str) and len(form) == 1:
            return command
        if form.keys() & _PATHS:
            form = {name: form[name] for name in form if name not in _CONTENTS}
    if form in (None, {}, [], ""):
        return ""
    return msgspec.json.encode(form, order="sorted").decode()
