"""Blocks of streamed text: messages and thinking."""

from typing import ClassVar

from msgspec import UNSET

from cards.engine.block import Block, Context
from cards.engine.values import MessageRole, one_of, text_or_unset
from cards.protocol.card_tree import Card
from cards.protocol.ids import MAIN_AGENT
from cards.protocol.kinds import CardKind, Channel
from cards.protocol.payloads import MessagePayload, Payload, ThinkingPayload


class Message(Block):
    """One reply, streamed. Spec: EMIT 6.3, 10, 14."""

    kind: ClassVar[CardKind] = CardKind.MESSAGE

    def __init__(
        self,
        context: Context,
        *,
        parent: Card | None,
        agent_id: str,
        agent_run_id: str | None,
        role: MessageRole,
        model: str | None,
    ) -> None:
        super().__init__(
            context, parent=parent, agent_id=agent_id, agent_run_id=agent_run_id
        )
        self._role = one_of("role", role, MessageRole)
        self._model = model or context.model
        self._is_main = agent_id == MAIN_AGENT
        self._called_tools = False
        #: Why the message ends; None: `tool_use` after tool input, else `end_turn`.
        self.stop_reason: str | None = None

    def _opening(self) -> Payload:
        return MessagePayload(role=self._role, model=text_or_unset(self._model))

    def _words(self) -> list[str] | None:
        if not self._is_main:
            return None
        said: list[str] = []
        is_user = self._role == "user"
        (self.context.heard if is_user else self.context.said).append(said)
        return said

    async def text(self, chunk: str) -> None:
        """Stream the next piece of the reply, in Markdown; "" sends nothing.

        A mention of a file becomes a link; what could still become one waits for the
        next piece, or for the end of the message.

        Spec: Ruling E21.
        """
        builder = self.context.builder
        builder.append(self.card, Channel.TEXT, chunk)
        await builder.writer.breathe()

    async def tool_input(self, partial_json: str, index: int = 0) -> None:
        """Stream the next piece of a tool call's input.

        Args:
            partial_json: A piece of JSON text; the pieces joined are the input.
            index: Tells several calls of one message apart.

        Spec: EMIT 6.3, 14.2.
        """
        self._called_tools = True
        builder = self.context.builder
        builder.append(self.card, Channel.TOOL_INPUT, partial_json, index)
        await builder.writer.breathe()

    def _inner(self) -> Payload:
        default = "tool_use" if self._called_tools else "end_turn"
        return MessagePayload(stop_reason=text_or_unset(self.stop_reason or default))


class Thinking(Block):
    """The model's own thoughts, streamed. Spec: EMIT 6.3, 10."""

    kind: ClassVar[CardKind] = CardKind.THINKING

    def __init__(
        self,
        context: Context,
        *,
        parent: Card | None,
        agent_id: str,
        agent_run_id: str | None,
    ) -> None:
        super().__init__(
            context, parent=parent, agent_id=agent_id, agent_run_id=agent_run_id
        )
        self._length = 0

    def _opening(self) -> Payload:
        return ThinkingPayload()

    async def text(self, chunk: str) -> None:
        """Stream the next piece; "" sends nothing."""
        builder = self.context.builder
        builder.append(self.card, Channel.THINKING, chunk)
        self._length += len(chunk)
        await builder.writer.breathe()

    def _inner(self) -> Payload:
        return ThinkingPayload(length=self._length or UNSET)
