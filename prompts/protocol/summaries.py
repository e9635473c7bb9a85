"""What a prompt asks, in a line, from the beginning of its frame alone."""

import json
import re
from typing import Final

#: Where each kind says what it asks. Spec: EMIT 7.1.
_FIELDS: Final = {
    "question": ("question",),
    "permission": ("tool_name", "tool_input"),
    "plan_review": ("goal",),
    "step_decision": ("step_id", "reason"),
}

_STRING: Final = r'"{name}":("(?:[^"\\]|\\.)*)'


def summary_of(kind: str, beginning: bytes) -> str:
    """Return what is asked, as far as the beginning tells; "" for nothing.

    Args:
        beginning: Of the stored frame; it may end in the middle of a character.
    """
    text = beginning.decode("utf-8", "ignore")
    # The envelope in front of it has none of these fields.
    found = (_string(text, name) for name in _FIELDS.get(kind, ()))
    return ": ".join(filter(None, found))


def _string(text: str, name: str) -> str:
    match = re.search(_STRING.format(name=name), text)
    if match is None:
        return ""
    whole = match[1] + '"'
    try:
        return str(json.loads(whole))
    except ValueError:
        # Cut in the middle of an escape.
        return match[1][1:]
