"""The operator's admin: sessions, turns, log and cards, all read-only."""

from cards.admin.sessions import SessionAdmin
from cards.admin.turns import TurnAdmin

__all__ = ["SessionAdmin", "TurnAdmin"]
