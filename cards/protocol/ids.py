"""The shapes of ids; random bytes come in as an argument.

Spec: EMIT 3.2; Ruling E7.
"""

import re
from collections.abc import Callable
from typing import Final

from cards.protocol.kinds import CardKind

#: Gives that many random bytes as lower-case hex, two digits a byte.
RandomHex = Callable[[int], str]

#: The agent_id of everything that no sub-agent did. Spec: EMIT 3.2.
MAIN_AGENT: Final = "main"

#: Ids that clients and models choose themselves. Spec: Ruling E7.
SAFE_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}")

#: Session ids that a client may choose; longer than a SAFE_ID because clients
#: build them from their own keys. Spec: Ruling E1 leaves the shape to us.
SESSION_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")

#: What SESSION_ID allows, in words for error messages.
SESSION_ID_ALLOWED: Final = "1 to 128 of the characters A-Z a-z 0-9 . _ : -"

_PREFIX_OF_KIND: Final[dict[CardKind, str]] = {
    CardKind.TURN: "turn_",
    CardKind.MESSAGE: "msg_",
    CardKind.TOOL: "tool_",
    CardKind.AGENT: "sub_",
    CardKind.PLAN: "plan_",
    CardKind.STEP: "step_",
    CardKind.ARTIFACT: "art_",
    CardKind.THINKING: "thk_",
    CardKind.TODO: "todo_",
}


def mint_event_id(random_hex: RandomHex) -> str:
    """Return a new `evt_` id with 20 hex digits. Spec: Ruling E7."""
    return "evt_" + random_hex(10)


def mint_session_id(random_hex: RandomHex) -> str:
    """Return a new `sess_` id with 20 hex digits. Spec: Ruling E1."""
    return "sess_" + random_hex(10)


def mint_trace_id(random_hex: RandomHex) -> str:
    """Return a new `tr_` id with 24 hex digits. Spec: Ruling E2."""
    return "tr_" + random_hex(12)


def mint_run_id(random_hex: RandomHex) -> str:
    """Return a new `run_` id with 16 hex digits. Spec: Ruling E7."""
    return "run_" + random_hex(8)


def mint_card_id(kind: CardKind, random_hex: RandomHex) -> str:
    """Return a new card id: the prefix of its kind and 16 hex digits.

    Kinds without a prefix of their own (memory_op, budget, team, system) get
    `card_`.

    Spec: Ruling E7.
    """
    return _PREFIX_OF_KIND.get(kind, "card_") + random_hex(8)


def is_safe_id(candidate: str) -> bool:
    """Tell whether a client's or a model's id may become part of a card id.

    Spec: Ruling E7.
    """
    return SAFE_ID.fullmatch(candidate) is not None


def is_session_id(candidate: str) -> bool:
    """Tell whether a client may name a session so. Spec: Ruling E1."""
    return SESSION_ID.fullmatch(candidate) is not None
