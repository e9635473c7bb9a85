"""Frames as they go over the wire."""

import asyncio
from typing import Any

import pytest
from websockets.frames import Frame
from websockets.streams import StreamReader

from cards.transport import Batch, SendTransport, frame_text


def parse(data: bytes) -> Frame:
    reader = StreamReader()
    reader.feed_data(data)
    parser = Frame.parse(reader.read_exact, mask=False)
    while True:
        try:
            next(parser)
        except StopIteration as end:
            frame: Frame = end.value
            return frame


class TestFrameText:
    @pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65535, 65536, 70000])
    def test_is_read_by_another_implementation(self, size: int) -> None:
        """Spec: RFC 6455 5.2."""
        payload = b"x" * size

        frame = parse(frame_text(payload))

        assert (frame.opcode, frame.fin, bytes(frame.data)) == (1, True, payload)


class TestBatch:
    def test_is_framed_once(self) -> None:
        batch = Batch([b"a", b"b"])

        assert batch.framed == frame_text(b"a") + frame_text(b"b")
        assert batch.framed is batch.framed
        assert len(batch) == 2


class TestSendTransport:
    async def test_sends_in_order_and_closes_last(self) -> None:
        sent: list[dict[str, Any]] = []
        drained = asyncio.Event()

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        transport = SendTransport(send)
        transport.on_writable(drained.set)
        transport.write(Batch([b"a", "é".encode()]))
        assert not transport.is_writable
        transport.close(1001)
        await drained.wait()
        await transport.stop()

        assert [m.get("text", m.get("code")) for m in sent] == ["a", "é", 1001]
        assert transport.is_writable
