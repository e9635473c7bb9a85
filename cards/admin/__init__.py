"""The operator's admin: sessions, turns, log and cards to look at; tokens to revoke."""

from cards.admin.access_tokens import AccessTokenAdmin
from cards.admin.sessions import SessionAdmin
from cards.admin.turns import TurnAdmin

__all__ = ["AccessTokenAdmin", "SessionAdmin", "TurnAdmin"]
