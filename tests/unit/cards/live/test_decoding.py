"""Large frames do not hold up the others."""

import threading

import pytest

from cards.live import decoding
from cards.live.decoding import MAX_INLINE_CHARS, decoded
from cards.protocol.client_messages import (
    DEFAULT_LIMITS,
    AnyClientMessage,
    FrameLimits,
    Ping,
    UserMessage,
)
from cards.protocol.codec import decode_client_message
from cards.protocol.errors import RemoteProtocolError

LARGE = f'{{"type":"user.message","text":"{"x" * MAX_INLINE_CHARS}"}}'


async def test_small_frames_are_decoded_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[threading.Thread] = []

    def decode(text: str, limits: FrameLimits) -> AnyClientMessage:
        threads.append(threading.current_thread())
        return decode_client_message(text, limits)

    monkeypatch.setattr(decoding, "decode_client_message", decode)

    assert isinstance(await decoded('{"type":"ping"}', DEFAULT_LIMITS), Ping)
    assert isinstance(await decoded(LARGE, DEFAULT_LIMITS), UserMessage)
    assert threads[0] is threading.main_thread()
    assert threads[1] is not threading.main_thread()


async def test_what_is_wrong_with_a_large_frame_is_told() -> None:
    with pytest.raises(RemoteProtocolError, match="not JSON"):
        await decoded(LARGE + "}", DEFAULT_LIMITS)
