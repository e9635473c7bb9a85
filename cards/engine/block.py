"""What all blocks share: opening, closing with the truth, and nesting.

Nesting follows the code: the parent of a card is the innermost open block of the
current task. A task that is started inside a block begins there, so parallel tasks
nest correctly.

Spec: engine-api.md, Scopes; Rulings E10, E11, E12.
"""

import asyncio
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextvars import ContextVar
from types import TracebackType
from typing import ClassVar, Self, TypeVar

import msgspec

from cards.builder import Builder
from cards.engine.artifact_desk import ArtifactDesk
from cards.engine.desk import Desk
from cards.engine.errors import EngineError
from cards.log.store import RowChange
from cards.protocol.card_tree import Card
from cards.protocol.errors import ErrorInfo, make_error
from cards.protocol.ids import MAIN_AGENT
from cards.protocol.json_form import clean_text
from cards.protocol.kinds import CardKind, CloseStatus, ErrorType
from cards.protocol.payloads import (
    AgentPayload,
    ArtifactRef,
    Payload,
    StepPayload,
    ToolPayload,
)

#: Files that one close names at most; each has a card of its own as well.
MAX_ARTIFACT_REFS = 256

#: The payloads that name files. Spec: EMIT 10.
Naming = TypeVar("Naming", ToolPayload, AgentPayload, StepPayload)

_innermost: ContextVar["Block | None"] = ContextVar("cardwire_block", default=None)


class Context:
    """What the blocks of one turn share.

    Args:
        builder: Makes the frames.
        turn_card: Root of all cards.
        run_id: The turn's `run_` id, on every frame outside sub-agents.
        model: Shown on messages; "" for none.
        shows_exceptions: Whether clients see the text of unexpected exceptions.
        desk: Where the turn's prompts are asked.
        artifacts: Where its files are kept.
    """

    def __init__(
        self,
        *,
        builder: Builder,
        desk: Desk,
        artifacts: ArtifactDesk,
        turn_card: Card,
        run_id: str,
        model: str,
        shows_exceptions: bool,
    ) -> None:
        self.builder = builder
        self.desk = desk
        self.artifacts = artifacts
        self.turn_card = turn_card
        self.run_id = run_id
        self.model = model
        self.shows_exceptions = shows_exceptions
        #: The pieces of each message of the assistant in this turn, for the history
        #: of the next ones.
        self.said: list[list[str]] = []
        #: The same of messages in the user's name.
        self.heard: list[list[str]] = []

    @property
    def said_text(self) -> str:
        """What the assistant said so far, its messages divided by blank lines."""
        return "\n\n".join(filter(None, map("".join, self.said)))

    @property
    def heard_texts(self) -> list[str]:
        """What was said in the user's name within the turn, in order."""
        return ["".join(pieces) for pieces in self.heard]

    def may_emit(self) -> bool:
        """Tell whether the turn still runs; what comes later is counted as dropped.

        Spec: Rulings E10, E12.
        """
        if not self.turn_card.is_open:
            self.builder.dropped_count += 1
        return self.turn_card.is_open


def open_blocks(context: Context) -> "Iterator[Block]":
    """Give the open blocks of this task, the innermost first."""
    block = _innermost.get()
    while block is not None:
        # A task may outlive the blocks it was started in; a closed one gives way
        # to what is around it.
        if block.context is context and block.card.is_open:
            yield block
        block = block.outer


def innermost_card(context: Context) -> Card:
    """Return the card of the innermost open block of this task, else the turn's."""
    innermost = next(open_blocks(context), None)
    return innermost.card if innermost is not None else context.turn_card


def error_of(exception: BaseException, *, shows_exceptions: bool) -> ErrorInfo:
    """Return the ErrorInfo that an exception in an engine stands for.

    A group, as TaskGroup raises it, stands for its first EngineError when it holds
    nothing else.

    Spec: Ruling E11; engine-api.md.
    """
    chosen = _chosen_error(exception)
    if chosen is not None:
        return chosen.error
    message = "the engine raised an unexpected error"
    if shows_exceptions:
        # Not str(): an exception's own may raise.
        message = clean_text("".join(traceback.format_exception_only(exception)))
    return make_error(ErrorType.INTERNAL, message.strip())


def _chosen_error(exception: BaseException) -> EngineError | None:
    if isinstance(exception, EngineError):
        return exception
    if not isinstance(exception, BaseExceptionGroup):
        return None
    chosen = [_chosen_error(each) for each in exception.exceptions]
    return chosen[0] if all(chosen) else None


def close_open_below(
    builder: Builder, card: Card, status: CloseStatus, error: ErrorInfo | None
) -> None:
    """Close everything still open below a card, children before parents.

    What was left open when its parent ended well did not end well itself: it is
    cancelled.

    Spec: Rulings E10, E11.
    """
    if status in (CloseStatus.OK, CloseStatus.SKIPPED):
        status = CloseStatus.CANCELLED
    error = error if status is CloseStatus.FAILED else None
    for each in builder.open_below(card):
        builder.close(each, status, error=error)


class Block(ABC):
    """An open card as an async context manager.

    Leaving it closes the card: `ok`, or `failed` when an exception comes through,
    or `cancelled` when the task is cancelled. The exception goes on up.
    """

    kind: ClassVar[CardKind]

    def __init__(
        self,
        context: Context,
        *,
        parent: Card | None,
        agent_id: str = MAIN_AGENT,
        agent_run_id: str | None = None,
    ) -> None:
        self.context = context
        self.outer: Block | None = None
        self._parent = parent
        self._agent_id = agent_id
        self._agent_run_id = agent_run_id or context.run_id
        self._card: Card | None = None
        #: What was kept within the block, by id. Spec: EMIT 10, ArtifactRef.
        self.made: dict[str, ArtifactRef] = {}

    @property
    def card(self) -> Card:
        """The block's card.

        Raises:
            RuntimeError: The block was not entered yet.
        """
        if self._card is None:
            raise RuntimeError(f"enter the {self.kind} block with `async with` first")
        return self._card

    @property
    def is_entered(self) -> bool:
        """Whether the block has a card, open or closed."""
        return self._card is not None

    @property
    def card_id(self) -> str:
        """Id of the block's card, once entered."""
        return self.card.card_id

    @abstractmethod
    def _opening(self) -> Payload:
        """Return the payload of the block's `card.add`."""

    def _wanted_card_id(self) -> str | None:
        return None

    def _ending(self) -> tuple[CloseStatus, ErrorInfo | None]:
        """Return how a block that was left normally ended."""
        return CloseStatus.OK, None

    def _inner(self) -> Payload | None:
        """Return what the close adds to the payload; None for nothing."""
        return None

    def _naming_made(self, inner: Naming | None, kind: type[Naming]) -> Naming | None:
        """Return what a close adds, with the files that were kept within the block.

        Args:
            inner: What it adds besides; None for nothing.
        """
        if not self.made:
            return inner
        inner = inner or kind()
        refs = {ref.artifact_id: ref for ref in inner.artifacts or ()} | self.made
        return msgspec.structs.replace(
            inner, artifacts=list(refs.values())[:MAX_ARTIFACT_REFS]
        )

    def _words(self) -> list[str] | None:
        """Return where what the card says is collected; None for nowhere."""
        return None

    def _opening_changes(self) -> tuple[RowChange, ...]:
        """Return the rows to change with the card's opening."""
        return ()

    def _closing_changes(self) -> tuple[RowChange, ...]:
        """Return the rows to change with the card's close."""
        return ()

    async def __aenter__(self) -> Self:
        if self._card is not None:
            raise RuntimeError(f"a {self.kind} block can be entered only once")
        self._card = self._open_card()
        self.outer = _innermost.get()
        _innermost.set(self)
        try:
            self._entered()
            await self.context.builder.writer.breathe()
        except BaseException as error:
            # `async with` does not leave a block that could not be entered.
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    def _entered(self) -> None:  # noqa: B027 - a hook, empty for most
        """Emit what belongs to the opening, right behind the card."""

    def _open_card(self) -> Card:
        builder = self.context.builder
        card_id = builder.free_card_id(self.kind, self._wanted_card_id())
        # An agent's frames carry its own id, which is its card's.
        is_agent = self.kind is CardKind.AGENT
        return builder.add(
            self.kind,
            self._opening(),
            card_id=card_id,
            parent=self._parent or innermost_card(self.context),
            agent_id=card_id if is_agent else self._agent_id,
            agent_run_id=self._agent_run_id,
            changes=self._opening_changes(),
            words=self._words(),
        )

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Blocks may be left in another order or in another task than they were
        # entered: then the innermost one is not ours to change.
        if _innermost.get() is self:
            _innermost.set(self.outer)
        if self.context.builder.writer.failure is not None:
            # Nothing can be logged any more; whoever recovers the session closes
            # the card from what the log holds.
            return
        status, error = self._outcome(exception)
        close_open_below(self.context.builder, self.card, status, error)
        self.context.builder.close(
            self.card,
            status,
            error=error,
            inner=self._inner(),
            changes=self._closing_changes(),
        )
        if exception is None:
            await self.context.builder.writer.breathe()

    def _outcome(
        self, exception: BaseException | None
    ) -> tuple[CloseStatus, ErrorInfo | None]:
        if exception is None:
            return self._ending()
        if isinstance(exception, asyncio.CancelledError | GeneratorExit):
            return CloseStatus.CANCELLED, None
        return CloseStatus.FAILED, error_of(
            exception, shows_exceptions=self.context.shows_exceptions
        )
