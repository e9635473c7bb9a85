"""What the built-in engine uses of the author's API, as types.

A turn and a sub-agent have the same methods; `Scope` is that sameness, so that the
handlers work in both. Spec: engine-api.md, Scopes.
"""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from cards.engine import Permission


class Artifact(Protocol):
    """A file that is kept."""

    @property
    def name(self) -> str:
        """As it is shown."""

    @property
    def version(self) -> int:
        """From 1."""


class Message(Protocol):
    """An open reply."""

    async def text(self, chunk: str) -> None:
        """Stream the next piece of Markdown."""

    async def tool_input(self, partial_json: str, index: int = 0) -> None:
        """Stream the next piece of a tool call's input."""


class Tool(Protocol):
    """An open tool call."""

    async def heartbeat(self, stage: str | None = None) -> None:
        """Show that the call is alive."""

    async def progress(
        self,
        stage: str | None = None,
        progress_pct: float | None = None,
        items_processed: int | None = None,
        items_total: int | None = None,
        unit: str | None = None,
    ) -> None:
        """Show how far the call has come."""

    async def set(self, **fields: object) -> None:
        """Change fields of the card while the call runs."""

    def result(
        self,
        output: object,
        *,
        render_hint: str | None = None,
        language: str | None = None,
        file_path: str | None = None,
        metadata: object = None,
    ) -> None:
        """Record what the call gave."""

    def fail(self, type: str, message: str, *, code: str | None = None) -> None:  # noqa: A002 - the wire's word
        """Record that the call failed; a result stays beside it."""


class Scope(Protocol):
    """A turn or a sub-agent."""

    async def permission(
        self,
        tool_name: str,
        tool_input: object,
        *,
        message: str | None = None,
        is_read_only: bool = False,
    ) -> Permission:
        """Ask whether a tool may do something, unless the session allowed it."""

    async def artifact(
        self, name: str, content: bytes, *, description: str | None = None
    ) -> Artifact:
        """Keep a file for the user."""

    def message(self) -> AbstractAsyncContextManager[Message]:
        """Return the block of a reply."""

    def tool(
        self,
        name: str,
        *,
        input: object = None,  # noqa: A002 - the wire's word
        intent: str | None = None,
    ) -> AbstractAsyncContextManager[Tool]:
        """Return the block of a tool call."""

    def agent(
        self,
        name: str,
        *,
        task_prompt: str | None = None,
        subagent_type: str | None = None,
    ) -> AbstractAsyncContextManager["Agent"]:
        """Return the block of a sub-agent."""


class Agent(Scope, Protocol):
    """An open sub-agent."""

    def finish(
        self, output_summary: str | None = None, num_turns: int | None = None
    ) -> None:
        """Record what the agent gave."""
