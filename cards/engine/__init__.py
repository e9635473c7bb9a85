"""The author's API: what a Python developer writes to put an assistant behind /v1/ws.

Everything importable from here is public; see docs/engine-api.md.
"""

from cards.engine.engine import Engine
from cards.engine.errors import EngineError
from cards.engine.plans import PlanStep
from cards.engine.turn import HistoryEntry, Turn, TurnInput

__all__ = [
    "Engine",
    "EngineError",
    "HistoryEntry",
    "PlanStep",
    "Turn",
    "TurnInput",
]
