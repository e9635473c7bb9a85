"""A server of the card protocol that a test plays, towards the page."""

import json
from collections.abc import Callable
from typing import Any

from playwright.sync_api import WebSocketRoute

from tests.acceptance.page_script import SESSION, TRACE, Script


class ScriptedServer:
    """Plays a session's log on every socket that the page opens.

    Args:
        script: What is in the log; frames added later go out with `push`.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        #: What the page sent, as it comes.
        self.sent: list[dict[str, Any]] = []
        #: Close code for sockets that are refused before their greeting; 0 for none.
        self.refusal = 0
        self._socket: WebSocketRoute | None = None
        self._pushed = 0
        self._told = 0

    def sent_of(self, frame_type: str) -> list[dict[str, Any]]:
        """Return what the page sent of one type."""
        return [frame for frame in self.sent if frame["type"] == frame_type]

    def push(self) -> None:
        """Send the frames that the log got since."""
        assert self._socket is not None
        for text in self.script.frames[self._pushed :]:
            self._socket.send(text)
        self._pushed = len(self.script.frames)

    def tell(self, kind: str, **inner: Any) -> None:
        """Send an event that concerns the connection only."""
        assert self._socket is not None
        self._told += 1
        envelope = {
            "event_id": f"evt_told_{self._told}",
            "session_id": SESSION,
            "trace_id": "tr_connection",
            "card_id": "",
            "card_kind": "",
            "seq": self._told,
            "timestamp": "2026-01-01T00:00:00.000Z",
        }
        payload = {"kind": kind, "inner": inner}
        frame = {"type": "session.event", "envelope": envelope, "payload": payload}
        self._socket.send(json.dumps(frame))

    def close(self, code: int) -> None:
        """Close the socket."""
        assert self._socket is not None
        self._socket.close(code=code)

    def serve(self, socket: WebSocketRoute) -> None:
        """Greet a client with what waits for it; give it the log when it asks."""
        self._socket = socket
        if self.refusal:
            socket.close(code=self.refusal)
            return
        socket.on_message(self._receive)
        newest = len(self.script.frames)
        self.tell(
            "opened",
            protocol_version="2.0",
            trace_id=TRACE,
            last_seq=newest,
            capabilities={"recovery": True},
        )
        for text in self.script.open_prompts():
            socket.send(text)

    def _receive(self, message: str | bytes) -> None:
        frame = json.loads(message)
        self.sent.append(frame)
        if frame["type"] == "session.resume":
            self._pushed = frame["last_seq"]
            newest = len(self.script.frames)
            from_seq = self._pushed + 1
            self.tell("resumed", trace_id=TRACE, from_seq=from_seq, to_seq=newest)
            self.push()


#: Opens a scripted session in the page.
Show = Callable[[Script], ScriptedServer]
