"""What a grant for the session covers.

A key stands for everything that its user saw, so that a harmless command never
covers one that begins alike.

| the input | the key |
|---|---|
| a text, or an object with a `command` alone | the tool and the whole command line |
| an object with a path, and content for it | the tool and the path |
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

_COMMANDS: Final = frozenset({"command"})
_PATHS: Final = frozenset({"path", "file_path"})

#: What is written to a path may differ from call to call.
_CONTENTS: Final = frozenset({"content", "text", "old_string", "new_string"})


def permission_key(tool_name: str, tool_input: object) -> str:
    """Return the key of a call; equal calls have equal keys, others do not.

    Args:
        tool_input: As the tool would be given it.
    """
    covered = _covered_by(tool_input)
    if not covered:
        return tool_name
    key = f"{tool_name}:{covered}"
    if len(key) <= MAX_KEY_CHARS:
        return key
    digest = hashlib.sha256(covered.encode()).hexdigest()
    return f"{tool_name}:sha256:{digest}"


def _covered_by(tool_input: object) -> str:
    if isinstance(tool_input, str):
        return clean_text(tool_input).strip()
    form = json_form(tool_input)
    if isinstance(form, dict):
        if form.keys() & _PATHS:
            form = {name: form[name] for name in form if name not in _CONTENTS}
        only = next(iter(form.values())) if len(form) == 1 else None
        if isinstance(only, str) and form.keys() <= _COMMANDS | _PATHS:
            return only.strip()
    if form in (None, {}, [], ""):
        return ""
    return msgspec.json.encode(form, order="sorted").decode()
