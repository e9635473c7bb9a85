"""What the operator decided about turns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cards.clock import now_ms
from cards.engine import Engine
from cards.protocol.kinds import CardKind


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSettings:
    """What the operator decided about turns.

    Attributes:
        windows_ms: How long a card of a kind may be silent; a kind that is absent
            or 0 may be for ever. Spec: Ruling E13.
        linger_s: Seconds that a session without work is kept before it is given back.
            Turns that end together then do it when their last frames are out, and
            many at once.
    """

    engine: Engine
    tick_interval_ms: int
    shows_exceptions: bool
    windows_ms: Mapping[CardKind, int]
    now_ms: Callable[[], int] = now_ms
    linger_s: float = 0.0
