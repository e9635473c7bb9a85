"""A client of the card protocol on a real socket."""

import json
from contextlib import ExitStack
from typing import Any

from websockets.sync.client import ClientConnection, connect

from cards.protocol.kinds import CardKind

Frame = dict[str, Any]

#: Seconds to wait for a frame that is due.
PATIENCE_S = 30


class CardClient:
    """Speaks the protocol and keeps every frame as it came.

    Args:
        url: Of the socket.
        headers: More headers of the handshake, such as a cookie or an origin.
    """

    def __init__(self, url: str, headers: dict[str, str] | None = None) -> None:
        self._stack = ExitStack()
        self.socket: ClientConnection = self._stack.enter_context(
            connect(
                url, additional_headers=headers, max_size=None, open_timeout=PATIENCE_S
            )
        )
        self.raw: list[str] = []
        self.opened = self.receive()

    def receive(self) -> Frame:
        text = self.socket.recv(timeout=PATIENCE_S)
        assert isinstance(text, str)
        self.raw.append(text)
        frame: Frame = json.loads(text, parse_constant=_refuse)
        return frame

    def send(self, frame: object) -> None:
        self.socket.send(frame if isinstance(frame, str) else json.dumps(frame))

    def say(self, text: str, event_id: str | None = None) -> None:
        frame = {"type": "user.message", "content": [{"type": "text", "text": text}]}
        self.send(frame | ({"event_id": event_id} if event_id else {}))

    def resume(self, last_seq: int, trace_id: str | None = None) -> Frame:
        trace = trace_id or self.trace_id
        self.send({"type": "session.resume", "trace_id": trace, "last_seq": last_seq})
        return self.until(lambda frame: inner_kind(frame).startswith("resume"))[-1]

    def replay(self, last_seq: int, trace_id: str | None = None) -> list[Frame]:
        """Resume, and return the replayed frames once nothing else comes."""
        answer = self.resume(last_seq, trace_id)
        inner = answer["payload"]["inner"]
        frames = [self.receive() for _ in range(inner["from_seq"], inner["to_seq"] + 1)]
        assert self.nothing_else() == []
        return frames

    def until(self, is_last: object) -> list[Frame]:
        """Receive frames up to the first that fits, and return them all."""
        assert callable(is_last)
        frames = [self.receive()]
        while not is_last(frames[-1]):
            frames.append(self.receive())
        return frames

    def until_turn_ends(self) -> list[Frame]:
        return self.until(is_end_of_turn)

    def nothing_else(self) -> list[Frame]:
        """Return what came before the answer to a ping sent now."""
        self.send({"type": "ping"})
        return self.until(lambda frame: frame["type"] == "pong")[:-1]

    @property
    def session_id(self) -> str:
        return str(self.opened["envelope"]["session_id"])

    @property
    def trace_id(self) -> str:
        return str(self.opened["payload"]["inner"]["trace_id"])

    def close(self) -> None:
        self._stack.close()

    def __enter__(self) -> "CardClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


def is_end_of_turn(frame: Frame) -> bool:
    kind = frame.get("envelope", {}).get("card_kind")
    return bool(frame["type"] == "card.close" and kind == CardKind.TURN)


def inner_kind(frame: Frame) -> str:
    return str(frame.get("payload", {}).get("kind", ""))


def error_of(frame: Frame) -> Frame:
    assert inner_kind(frame) == "error", frame
    error: Frame = frame["payload"]["inner"]["error"]
    return error


def text_of(frames: list[Frame], channel: str = "text") -> str:
    return "".join(
        frame["payload"].get("chunk", frame["payload"].get("partial_json"))
        for frame in frames
        if frame["type"] == "card.append" and frame["payload"]["channel"] == channel
    )


def seqs_of(frames: list[Frame], trace_id: str) -> list[int]:
    return [
        frame["envelope"]["seq"]
        for frame in frames
        if frame.get("envelope", {}).get("trace_id") == trace_id
    ]
