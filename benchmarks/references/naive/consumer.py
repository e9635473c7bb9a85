"""The obvious implementation: for each frame one insert, then one group_send."""

import asyncio
import uuid
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer

from benchmarks.orders import Order, follow_order, parse_order
from benchmarks.references.frames import append_frame, turn_closed_frame
from benchmarks.references.naive.models import Event


class NaiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels is untyped
    """Logs each frame through the ORM and relays it through the channel layer."""

    async def connect(self) -> None:
        """Join a group of one's own."""
        self._trace = f"trace.{uuid.uuid4().hex}"
        self._seq = 0
        await self.channel_layer.group_add(self._trace, self.channel_name)
        await self.accept()

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None
    ) -> None:
        """Start to follow the order in a text frame."""
        # Not awaited: while a consumer handles a message it relays nothing.
        self._work = asyncio.create_task(self._follow(parse_order(text_data or "")))

    async def _follow(self, order: Order) -> None:
        await follow_order(order, self._emit)
        await self._publish(turn_closed_frame(self._seq + 1))

    async def _emit(self, chunk: str) -> None:
        await self._publish(append_frame(self._seq + 1, chunk))

    async def _publish(self, text: str) -> None:
        self._seq += 1
        await Event.objects.acreate(trace=self._trace, seq=self._seq, text=text)
        await self.channel_layer.group_send(
            self._trace, {"type": "relay", "text": text}
        )

    async def relay(self, event: dict[str, Any]) -> None:
        """Send what came through the layer."""
        await self.send(text_data=event["text"])

    async def disconnect(self, code: int) -> None:
        """Leave the group."""
        await self.channel_layer.group_discard(self._trace, self.channel_name)
