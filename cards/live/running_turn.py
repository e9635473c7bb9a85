"""The turn at work, and how it is to end. Spec: Rulings E10, E23."""

import asyncio
import logging
from dataclasses import dataclass, field

from cards.engine import Engine, Turn
from cards.operations import StopRequest
from cards.protocol.card_tree import Card
from cards.protocol.errors import ErrorInfo
from cards.protocol.kinds import CloseStatus
from cards.queries import TurnRecord

logger = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class RunningTurn:
    """The turn at work.

    Attributes:
        card: None before it is added.
        before_seq: Of the last frame before its card; 0 before that is known.
        task: The engine's; None before it is started.
        ending: How the turn ends whatever its engine says; None leaves it to the
            engine.
        injections: Words for the engine, in the log already.
        heard: What is said in the user's name within the turn, for the history.
        taken: Keys of the injections that were taken.
    """

    record: TurnRecord
    card: Card | None = None
    before_seq: int = 0
    task: "asyncio.Task[None] | None" = None
    ending: tuple[CloseStatus, ErrorInfo | None] | None = None
    is_ending: asyncio.Event = field(default_factory=asyncio.Event)
    injections: "asyncio.Queue[str]" = field(default_factory=asyncio.Queue)
    heard: list[list[str]] = field(default_factory=list)
    taken: set[int] = field(default_factory=set)
    timer: asyncio.TimerHandle | None = None

    def unwatch(self) -> None:
        """Look no more for silent cards."""
        if self.timer is not None:
            self.timer.cancel()

    @property
    def is_open(self) -> bool:
        """Whether it may still be stopped, also before its card is added."""
        return self.card is None or self.card.is_open

    def is_meant(self, request: StopRequest) -> bool:
        """Tell whether this turn is to be stopped, and still can be."""
        if request.turn_card_id is None:
            is_named = request.may_mean_next(shown_before=self.before_seq)
        else:
            card_id = self.record.card_id if self.card is None else self.card.card_id
            is_named = request.turn_card_id == card_id
        return self.is_open and is_named

    def end(self, status: CloseStatus, error: ErrorInfo | None = None) -> None:
        """Have the turn end like this; the first ending counts. Spec: Ruling E10."""
        if self.ending is None:
            self.ending = status, error
            self.is_ending.set()
            if self.task is not None:
                self.task.cancel()


async def run_engine(engine: Engine, turn: Turn) -> None:
    """Run an engine.

    Raises:
        Exception: What the engine raised.
    """
    # Called within the task: an engine may fail before it gives a coroutine.
    await engine.run(turn)


def log_late_end(task: "asyncio.Task[None]") -> None:
    """Say how an engine ended that did not end with its turn."""
    if not task.cancelled() and task.exception() is not None:
        logger.error("an engine failed after its turn", exc_info=task.exception())
