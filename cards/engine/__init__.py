"""The author's API: what a Python developer writes to put an assistant behind /v1/ws.

Everything importable from here is public; see docs/engine-api.md.
"""

from cards.engine.artifacts import Artifact
from cards.engine.asking import (
    Answer,
    Permission,
    PlanReview,
    PromptTimeout,
    PromptUnavailable,
    StepDecision,
)
from cards.engine.client_tools import ClientToolResult
from cards.engine.engine import Engine
from cards.engine.errors import EngineError
from cards.engine.input import Continuation, FileBlock, TextBlock, TurnInput
from cards.engine.plans import Plan, PlanStep
from cards.engine.turn import HistoryEntry, Turn

__all__ = [
    "Answer",
    "Artifact",
    "ClientToolResult",
    "Continuation",
    "Engine",
    "EngineError",
    "FileBlock",
    "HistoryEntry",
    "Permission",
    "Plan",
    "PlanReview",
    "PlanStep",
    "PromptTimeout",
    "PromptUnavailable",
    "StepDecision",
    "TextBlock",
    "Turn",
    "TurnInput",
]
