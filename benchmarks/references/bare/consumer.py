"""What channels and daphne can do by themselves: a consumer that only sends."""

from channels.generic.websocket import AsyncWebsocketConsumer

from benchmarks.orders import follow_order, parse_order
from benchmarks.references.frames import append_frame, turn_closed_frame


class BareConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels is untyped
    """Follows an order by sending each frame; there is no log."""

    _seq = 0

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None
    ) -> None:
        """Follow the order in a text frame."""
        await follow_order(parse_order(text_data or ""), self._emit)
        self._seq += 1
        await self.send(text_data=turn_closed_frame(self._seq))

    async def _emit(self, chunk: str) -> None:
        self._seq += 1
        await self.send(text_data=append_frame(self._seq, chunk))
