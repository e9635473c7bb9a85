"""What every server frame carries around its payload.

Spec: EMIT 3; Ruling E6.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from cards.protocol.kinds import CardKind, Role, Severity

if TYPE_CHECKING:
    CardKindOrNone: TypeAlias = CardKind | Literal[""]
else:
    # msgspec knows no union of an enum and a word; the JSON Schema needs one.
    CardKindOrNone = Literal[("", *(kind.value for kind in CardKind))]

#: Highest integer that JavaScript holds exactly; no number of ours is larger.
MAX_SAFE_INTEGER = 2**53 - 1


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Who a frame belongs to and where it stands in its trace.

    `seq` counts from 1 within `trace_id`. `card_id` and `card_kind` are "" on
    `prompt.*` and `session.*`. `timestamp` is RFC 3339, UTC, milliseconds, `Z`.
    What is UNSET is left out of the frame.

    Spec: EMIT 3.2; Ruling E6.
    """

    event_id: str
    session_id: str
    trace_id: str
    card_id: str
    parent_card_id: str | UnsetType = UNSET
    card_kind: CardKindOrNone
    seq: int
    timestamp: str
    agent_id: str | UnsetType = UNSET
    agent_role: Role | UnsetType = UNSET
    agent_run_id: str | UnsetType = UNSET
    severity: Severity | UnsetType = UNSET


class Hint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a client without ideas of its own shows a card.

    `title` is never empty and holds no template token.

    Spec: EMIT 3.3; Ruling E6.
    """

    title: str
    summary: str | UnsetType = UNSET
    icon: str | UnsetType = UNSET
    initial_state: Literal["expanded", "collapsed", "hidden"] | UnsetType = UNSET
    persona: str | UnsetType = UNSET


class BudgetAmount(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An amount spent or allowed: tokens, US dollars, calls. Spec: EMIT 3.4, 10."""

    tokens: int | UnsetType = UNSET
    usd: float | UnsetType = UNSET
    calls: int | UnsetType = UNSET


class Metrics(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a card cost; only on `card.close`. Spec: EMIT 3.4."""

    duration_ms: int | UnsetType = UNSET
    tokens_in: int | UnsetType = UNSET
    tokens_out: int | UnsetType = UNSET
    cache_read_tokens: int | UnsetType = UNSET
    cache_write_tokens: int | UnsetType = UNSET
    cost_usd: float | UnsetType = UNSET
    model: str | UnsetType = UNSET
    budget_spent: BudgetAmount | UnsetType = UNSET
    budget_limit: BudgetAmount | UnsetType = UNSET


def format_timestamp(unix_ms: int) -> str:
    """Return a Unix time in milliseconds as `2026-05-07T10:00:00.000Z`.

    Raises:
        OverflowError: The time lies outside the years 1 to 9999.

    Spec: EMIT 3.2; Ruling E6.
    """
    moment = _EPOCH + timedelta(milliseconds=unix_ms)
    return moment.isoformat(timespec="milliseconds") + "Z"


#: Naive on purpose: everything here is UTC, and the `Z` is ours to write.
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
