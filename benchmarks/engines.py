"""The engine that the measured server runs."""

from benchmarks.orders import follow_order, parse_order
from cards.engine import Engine, Turn


class BurstEngine(Engine):
    """Streams one message with as many chunks as the user's order says."""

    async def run(self, turn: Turn) -> None:
        """Follow the order in the message; see benchmarks.orders."""
        order = parse_order(turn.input.text)
        async with turn.message() as message:
            await follow_order(order, message.text)
