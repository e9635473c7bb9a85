"""One WebSocket: what it refuses of a client that it let in.

Spec: EMIT 2, 9, 12; Ruling E22; issue "Liveness and ownership" 9.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from cards.admission import Admission
from cards.consumers import CardConsumer
from cards.protocol.client_messages import FrameLimits
from tests.integration.cards.house import (
    FakeTransport,
    Frame,
    House,
    error_of,
    kind_of,
    running_house,
)


class Socket:
    """A client and the consumer that serves it."""

    def __init__(self, consumer: CardConsumer, transport: FakeTransport) -> None:
        self.transport = transport
        self._consumer = consumer

    async def say(self, *frames: object) -> None:
        """Send frames, all before the first of them is handled."""
        for frame in frames:
            text = (
                frame if isinstance(frame, str) else msgspec.json.encode(frame).decode()
            )
            await self._consumer.websocket_receive({"text": text})

    async def errors(self, count: int) -> list[Frame]:
        """Wait for so many errors and return them."""
        await self.transport.until(lambda: len(self._errors()) >= count)
        return self._errors()

    def _errors(self) -> list[Frame]:
        return [
            error_of(frame)
            for frame in self.transport.frames
            if kind_of(frame) == "error"
        ]


@pytest_asyncio.fixture(name="house")
async def _house(transactional_db: None) -> AsyncIterator[House]:
    async with running_house() as house:
        yield house


@asynccontextmanager
async def served(
    house: House, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> AsyncIterator[Socket]:
    limits: dict[str, Any] = {
        "idle_timeout_s": 0,
        "max_frame_bytes": 10_000,
        "max_waiting_frames": 256,
        "limits": FrameLimits(),
        "allow_anonymous": True,
    }
    transport = FakeTransport()
    monkeypatch.setattr("cards.consumers.open_transport", lambda send: transport)
    consumer = CardConsumer(
        hub=house.hub,
        admission=Admission(
            max_connections=0, messages_per_minute=0, check_interval_s=0
        ),
        **(limits | options),
    )
    consumer.scope = {"headers": [], "subprotocols": [], "query_string": b""}
    accepted: list[Frame] = []

    async def send(message: Frame) -> None:
        accepted.append(message)

    consumer.base_send = send
    try:
        await consumer.websocket_connect({})
        assert accepted == [{"type": "websocket.accept", "subprotocol": None}]
        yield Socket(consumer, transport)
    finally:
        await consumer._clean_up()


class TestWaitingFrames:
    async def test_beyond_the_limit_are_told_of_by_name(
        self, house: House, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The client knows which of its messages was not taken."""
        async with served(house, monkeypatch, max_waiting_frames=2) as socket:
            await socket.say(
                *({"type": "user.message", "event_id": f"m{n}"} for n in range(4)),
                {"type": "prompt.user_response", "request_id": "r1", "decision": "x"},
                {"type": "tool.result", "tool_use_id": "t1", "status": "ok"},
                {"type": "session.create"},
                "nonsense",
            )
            errors = await socket.errors(8)

        refused = [each for each in errors if each["code"] == "TOO_MANY_FRAMES"]
        assert [each.get("details") for each in refused] == [
            {"event_id": "m2"},
            {"event_id": "m3"},
            {"request_id": "r1"},
            {"tool_use_id": "t1"},
            None,
            None,
        ]
        assert {(each["type"], each["retryable"]) for each in refused} == {
            ("overloaded", True)
        }
        taken = [each for each in errors if each["code"] == "EMPTY_MESSAGE"]
        assert [each["details"]["event_id"] for each in taken] == ["m0", "m1"]

    async def test_are_bounded_by_their_size_too(
        self, house: House, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of the largest frame two may wait."""
        async with served(house, monkeypatch, max_frame_bytes=1000) as socket:
            await socket.say(
                *(
                    {"type": "user.message", "event_id": f"m{n}", "x": "y" * 900}
                    for n in range(3)
                )
            )
            errors = await socket.errors(3)

        assert [each["details"]["event_id"] for each in errors] == ["m2", "m0", "m1"]
        assert errors[0]["code"] == "TOO_MANY_FRAMES"


class TestLimits:
    async def test_are_the_operators(
        self, house: House, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        limits = FrameLimits(depth=8, blocks=1)
        blocks = [{"text": "a"}, {"text": "b"}]
        deep = msgspec.Raw(b"[" * 9 + b"]" * 9)
        async with served(house, monkeypatch, limits=limits) as socket:
            await socket.say(
                {"type": "user.message", "event_id": "m1", "content": blocks},
                {"type": "user.message", "event_id": "m2", "text": "a", "x": deep},
            )
            errors = await socket.errors(2)

        assert [(each["code"], each["details"]) for each in errors] == [
            (
                "TOO_MANY_BLOCKS",
                {"event_id": "m1", "field": "content", "allowed": "at most 1"},
            ),
            ("TOO_DEEP", {"event_id": "m2", "allowed": "at most 8 levels"}),
        ]


class TestRefusedMessage:
    @pytest.mark.parametrize(
        ("rest", "code"),
        [
            ('"text":""', "EMPTY_MESSAGE"),
            ('"text":5', "INVALID_FIELD"),
            ('"content":[{"type":"video"}]', "UNSUPPORTED_BLOCK"),
            ('"text":"a","text":"b"', "DUPLICATE_KEY"),
            ('"text":"a","x":NaN', "INVALID_NUMBER"),
            ('"text":"\\ud800"', "INVALID_UNICODE"),
        ],
    )
    async def test_is_named_whatever_rule_it_breaks(
        self, house: House, monkeypatch: pytest.MonkeyPatch, rest: str, code: str
    ) -> None:
        async with served(house, monkeypatch) as socket:
            await socket.say(f'{{"type":"user.message","event_id":"m1",{rest}}}')
            (error,) = await socket.errors(1)

        assert error["code"] == code
        assert error["details"]["event_id"] == "m1"
