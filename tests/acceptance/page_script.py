"""A server's side of the card protocol, scripted, for the tests of the page."""

import json
from typing import Any

TRACE = "tr_0123456789abcdef01234567"
SESSION = "sess_scripted"

Fields = dict[str, Any]

#: What an assistant may be made to say by somebody who means no good.
HOSTILE_MARKDOWN = """
<script>window.owned = 1</script> <img src=x onerror="window.owned = 1">

[a](javascript:window.owned=1) [b](data:text/html,x) [c](file:///etc/passwd)
[d](vbscript:x) [e](/relative) [ok](https://example.org/) [mail](mailto:a@example.org)
![beacon](https://evil.example/pixel.png) ![inline](data:image/png;base64,AAAA)
[f](&#106;avascript:window.owned=1) <https://example.org/auto>

```html" onmouseover="window.owned=1
<b>x</b>
```

| a |
|:-:|
| [g](JaVaScRiPt:window.owned=1) |
"""

#: Blocks of every kind, to be cut at any place.
LONG_MARKDOWN = """# Title

Some *text* with `code`.

1. one

2. two

   ```python
   x = 1
   ```

> quote

| a | b |
|---|--:|
| 1 | 2 |

[link] and the end.

[link]: https://example.org/
"""


def error(error_type: str, message: str, user_message: str, **fields: Any) -> Fields:
    """Return an ErrorInfo."""
    return {
        "type": error_type,
        "code": error_type.upper(),
        "message": message,
        "user_message": user_message,
        "retryable": False,
        **fields,
    }


#: What ended a turn that nobody runs any more. Spec: Ruling E14.
WORKER_LOST = error(
    "internal",
    "the worker that ran this turn is gone",
    "The server was interrupted while it was answering.",
    code="WORKER_LOST",
    retryable=True,
)

#: What ended a turn when its server was stopped.
SERVER_STOPPED = error(
    "internal",
    "the server was stopped during this turn",
    "The server was restarted while it was answering.",
    code="SERVER_STOPPED",
    retryable=True,
)


class Script:
    """The log of a session, written by the test. Spec: EMIT 3.1, 6; Ruling E2."""

    def __init__(self) -> None:
        self.frames: list[str] = []

    def _log(self, frame_type: str, payload: Fields, **envelope: str) -> None:
        seq = len(self.frames) + 1
        frame = {
            "type": frame_type,
            "envelope": {
                "event_id": f"evt_{seq}",
                "session_id": SESSION,
                "trace_id": TRACE,
                "card_id": envelope.pop("card_id", ""),
                "card_kind": envelope.pop("card_kind", ""),
                "seq": seq,
                "timestamp": "2026-01-01T00:00:00.000Z",
                **envelope,
            },
            "payload": payload,
        }
        if frame_type == "card.add":
            frame["hint"] = payload.pop("_hint", {"title": envelope.get("title", "T")})
        if frame_type == "card.close":
            frame["metrics"] = {"duration_ms": 1500}
        self.frames.append(json.dumps(frame, ensure_ascii=False))

    def add(
        self,
        card_id: str,
        kind: str,
        parent: str = "",
        /,
        *,
        title: str = "",
        **payload: Any,
    ) -> str:
        """Open a card and return its id."""
        if title:
            payload["_hint"] = {"title": title, "icon": payload.pop("icon", "")}
        envelope = {"parent_card_id": parent} if parent else {}
        self._log("card.add", payload, card_id=card_id, card_kind=kind, **envelope)
        return card_id

    def append(self, card_id: str, text: str, channel: str = "text") -> None:
        """Append to a stream."""
        self._log("card.append", {"channel": channel, "chunk": text}, card_id=card_id)

    def set(self, card_id: str, **payload: Any) -> None:
        """Change fields."""
        self._log("card.set", payload, card_id=card_id)

    def tick(self, card_id: str, kind: str, **inner: Any) -> None:
        """Send a tick."""
        self._log("card.tick", {"kind": kind, "inner": inner}, card_id=card_id)

    def close(self, card_id: str, status: str = "ok", **payload: Any) -> None:
        """Close a card."""
        self._log("card.close", {"status": status, **payload}, card_id=card_id)

    def session_event(self, kind: str, **inner: Any) -> None:
        """Log an event of the session."""
        self._log("session.event", {"kind": kind, "inner": inner})

    def ask(
        self,
        request_id: str,
        kind: str,
        *,
        asked_at: str = "2026-01-01T00:00:00.000Z",
        timeout_ms: int = 0,
        **inner: Any,
    ) -> None:
        """Ask the user something."""
        payload = {
            "request_id": request_id,
            "kind": kind,
            "inner": inner,
            "timeout_ms": timeout_ms,
        }
        self._log("prompt.user", payload, agent_id="main", timestamp=asked_at)

    def settle(self, request_id: str, decision: str, **payload: str) -> None:
        """Say how a prompt was settled."""
        reply = {"request_id": request_id, "decision": decision, **payload}
        self._log("prompt.reply", reply)

    def open_prompts(self) -> list[str]:
        """Return the frames of the prompts that wait, oldest first."""
        waiting: dict[str, str] = {}
        for text in self.frames:
            frame = json.loads(text)
            if frame["type"] == "prompt.user":
                waiting[frame["payload"]["request_id"]] = text
            elif frame["type"] == "prompt.reply":
                waiting.pop(frame["payload"]["request_id"], None)
        return list(waiting.values())

    def say(self, text: str, *, card_id: str = "m") -> None:
        """Log a turn with one whole message."""
        turn = self.turn(f"turn_{card_id}", "Tell me")
        self.add(card_id, "message", turn, role="assistant")
        self.append(card_id, text)
        self.close(card_id)
        self.close(turn)

    def turn(self, card_id: str, text: str) -> str:
        """Open a turn with the user's words."""
        content = [{"type": "text", "text": text}]
        words = {"event_id": card_id[5:], "text": text, "content": content}
        return self.add(card_id, "turn", turn_no=1, channel="chat", input=words)


def at_work(text: str = "Write the report") -> Script:
    """Return a session whose turn runs: a tool works, a message grows."""
    s = Script()
    turn = s.turn("turn_1", text)
    s.add("msg", "message", turn, role="assistant")
    s.append("msg", "I read the sources first.")
    s.close("msg")
    command = {"command": "pytest -q"}
    s.add("tool", "tool", turn, title="Bash", name="Bash", input=command)
    s.tick("tool", "intent", intent="Run the tests")
    return s


def queue_of(*texts: str) -> list[Fields]:
    """Return a queue as `session.event(updated)` carries it."""
    return [{"event_id": f"q{n}", "text": text} for n, text in enumerate(texts, 1)]


def cut_off(status: str, error: Fields, *, text: str = "Write the report") -> Script:
    """Return a session whose turn was ended from outside, and the session error."""
    s = at_work(text)
    detail = {"error": error} if status == "failed" else {}
    s.close("tool", status, **detail)
    s.close("turn_1", status, **detail)
    s.session_event("error", error=error)
    return s


def one_of_each_kind() -> Script:
    """Return a session with a card of every kind, and one of a later protocol."""
    s = Script()
    s.add(
        "sys",
        "system",
        title="No search",
        icon="warning",
        summary="Why",
        action_hint="Fix",
    )
    turn = s.turn("turn_1", "Do everything")
    s.add("thk", "thinking", turn)
    s.append("thk", "hm", "thinking")
    s.close("thk", inner={"length": 2})
    s.add("msg", "message", turn, role="assistant")
    s.append("msg", "Let me **see**.")
    s.close("msg")
    tool = s.add(
        "tool", "tool", "msg", title="Bash", name="Bash", input={"command": "ls"}
    )
    s.tick(tool, "note", text="skipped the cache")
    s.add(
        "agent",
        "agent",
        tool,
        title="researcher",
        name="researcher",
        task_prompt="Find",
    )
    plan = s.add("plan", "plan", "agent", plan_id="p", goal="Reach the goal", steps=[])
    s.add("step", "step", plan, step_id="s1", status="queued", input_summary="First")
    s.set("step", status="running", attempts=2)
    s.add("inner", "message", "step", role="assistant")
    s.append("inner", "Deep inside.")
    s.close("inner")
    s.close("step", inner={"output_summary": "Reached"})
    s.close(plan)
    s.add("art", "artifact", "agent", artifact_id="art_1", name="report.md", version=2)
    s.close("agent", inner={"output_summary": "Found it", "num_turns": 3})
    s.close(tool, inner={"output": "\x1b[32ma.txt\x1b[0m", "render_hint": "terminal"})
    s.add("mem", "memory_op", turn, op="write", subject="a fact", bytes=2048)
    s.add(
        "bud", "budget", turn, kind="warning", spent={"tokens": 9}, limit={"tokens": 10}
    )
    s.add("todo", "todo", turn, subject="Write", status="in_progress")
    s.add("team", "team", turn, team_name="Crew", members=["ann", "bob"])
    s.add("holo", "hologram", turn, title="Hologram", depth=3)
    s.close(turn)
    return s


def every_bad_end() -> Script:
    """Return a session whose cards end in every way but well."""
    s = Script()
    turn = s.turn("turn_1", "Try it")
    broken = error("tool_timeout", "Bash exceeded 120 s", "That took too long.")
    for status in ("failed", "skipped", "cancelled", "vanished"):
        s.add(status, "tool", turn, title="Bash", name="Bash")
        s.close(status, status, **({"error": broken} if status == "failed" else {}))
    failure = error("internal", "KeyError: x", "Something unexpected happened.")
    s.close(turn, "failed", error=failure)
    return s
