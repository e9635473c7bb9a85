"""What an engine's scopes need of whoever keeps the prompts.

Spec: design.md 5; Rulings E15, E18, E24.
"""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from cards.log.store import RowChange
from cards.ports import Settlement
from cards.protocol.card_tree import Card
from cards.protocol.kinds import PromptKind
from cards.protocol.prompts import PromptInner


class ClientCall(AbstractAsyncContextManager[object], Protocol):
    """The block of a tool that a client runs."""

    def reserve(
        self, card_id: str, *, shown: RowChange, removed: tuple[RowChange, ...]
    ) -> None:
        """Give the card its id, and the changes that go with its frames."""

    @property
    def card(self) -> Card:
        """Its card, once entered."""

    def settle(self, settlement: Settlement) -> None:
        """Record what the client gave, for the close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What is to be asked, and from where.

    Attributes:
        anchor: The card under which the prompt waits; for the watchdog.
        timeout_ms: 0 for none.
    """

    kind: PromptKind
    inner: PromptInner
    anchor: Card
    agent_id: str
    agent_run_id: str | None
    timeout_ms: int


class Desk(Protocol):
    """Where a turn's prompts are asked and its clients' tools are called."""

    async def ask(self, prompt: Prompt) -> Settlement:
        """Ask, and wait for the answer for as long as it takes.

        Raises:
            PromptUnavailable: The prompt could not be stored.
        """

    async def call(self, tool: ClientCall, *, timeout_ms: int) -> None:
        """Open a client's tool, wait for its result, and close it with that.

        Raises:
            PromptUnavailable: The call could not be stored.
        """

    def permission_key(self, tool_name: str, tool_input: object) -> str:
        """Return what a grant for this call covers. Spec: Ruling E18."""

    async def is_granted(self, permission_key: str) -> bool:
        """Tell whether the user allowed this for the session. Spec: Ruling E18."""
