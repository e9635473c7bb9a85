"""Rings between workers: that frames are durable, that something was stored.

The channel layer may lose messages, so a ring carries nothing that is not in the
database: whoever misses one finds out by looking. All workers are in one group; one
message is on its way and the next one gathers, so their number does not grow with
the traffic.

Spec: Ruling E26; design.md 1.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

logger = logging.getLogger(__name__)

_GROUP = "cardwire.workers"

#: Seconds after which the layer is joined again; it forgets members after a day.
REJOIN_S = 3600.0

#: Seconds to wait when the layer is away.
RETRY_S = 1.0

Ring = Callable[[dict[int, int], Sequence[int]], None]


class Doorbell:
    """Rings the other workers, and hears them.

    Args:
        layer: A channel layer; None when this process is the only worker.
        worker_id: Tells one's own rings from the others'.
    """

    def __init__(self, layer: Any, worker_id: str) -> None:
        self._layer = layer
        self._worker_id = worker_id
        self._newest: dict[int, int] = {}
        self._called: set[int] = set()
        self._sending: asyncio.Task[None] | None = None

    def ring(self, session_pk: int, newest_seq: int) -> None:
        """Say that a session's log reaches this seq; never blocks, may get lost."""
        if self._layer is not None:
            self._newest[session_pk] = newest_seq
            self._begin()

    def call(self, session_pk: int) -> None:
        """Say that something was stored for a session's owner; may get lost."""
        if self._layer is not None:
            self._called.add(session_pk)
            self._begin()

    def _begin(self) -> None:
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        try:
            while self._newest or self._called:
                newest, self._newest = self._newest, {}
                called, self._called = self._called, set()
                await self._layer.group_send(
                    _GROUP,
                    {
                        "type": "ring",
                        "worker_id": self._worker_id,
                        # Pairs: message packers refuse numbers as keys.
                        "newest": list(newest.items()),
                        "called": list(called),
                    },
                )
        except Exception as error:  # noqa: BLE001 - whatever the layer's library raises
            logger.warning("the other workers were not rung: %s", error)
        finally:
            self._sending = None

    async def listen(self, on_ring: Ring) -> None:
        """Hear the others until cancelled; returns at once without a layer.

        Args:
            on_ring: Called with session → newest seq, and the sessions whose owner
                is called.
        """
        while self._layer is not None:
            try:
                await self._listen_for_a_while(on_ring)
            except Exception as error:  # noqa: BLE001 - as above
                logger.warning("the channel layer is away: %s", error)
                await asyncio.sleep(RETRY_S)

    async def _listen_for_a_while(self, on_ring: Ring) -> None:
        channel = await self._layer.new_channel("cardwire")
        await self._layer.group_add(_GROUP, channel)
        try:
            async with asyncio.timeout(REJOIN_S):
                while True:
                    message = await self._layer.receive(channel)
                    if message["worker_id"] != self._worker_id:
                        on_ring(dict(message["newest"]), message["called"])
        except TimeoutError:
            return
        finally:
            await self._layer.group_discard(_GROUP, channel)

    async def close(self) -> None:
        """Let the last rings out."""
        if self._sending is not None:
            await asyncio.wait([self._sending])
