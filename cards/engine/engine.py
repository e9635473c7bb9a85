"""The base class of assistants."""

from abc import ABC, abstractmethod

from cards.engine.turn import Turn


class Engine(ABC):
    """An assistant. One instance per process, made without arguments.

    Spec: none; engine-api.md.
    """

    #: Shown to clients in `session.event(opened)` and on messages; "" for none.
    model: str = ""

    @abstractmethod
    async def run(self, turn: Turn) -> None:
        """Answer one user message.

        Runs in a task of its own, which outlives the socket that started it. An
        exception fails the turn: an `EngineError` chooses what the user is told,
        anything else is `internal`.

        Args:
            turn: The message and everything that can be done about it.
        """
