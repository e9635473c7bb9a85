from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
import msgspec
import pytest

from cards.protocol.client_messages import AnyClientMessage, read_client_message
from cards.protocol.codec import PONG
from cards.protocol.errors import RemoteProtocolError
from cards.protocol.events import (
    CardAdd,
    CardAppend,
    CardClose,
    CardSet,
    CardTick,
    Event,
    PromptReply,
    PromptUser,
    SessionEvent,
)
from cards.protocol.kinds import (
    CHANNELS_OF_KIND,
    TRACKED_KINDS,
    CardKind,
    Channel,
    CloseStatus,
    PromptKind,
    SessionEventKind,
    TickKind,
)
from cards.protocol.payloads import (
    PAYLOAD_OF_KIND,
    REQUIRED_ON_ADD,
    AppendPayload,
    ClosePayload,
    PromptReplyPayload,
    PromptUserPayload,
    SessionEventPayload,
    TickPayload,
)
from cards.protocol.wire_schema import wire_schema
from tests.unit.cards.protocol.frames import (
    ERROR,
    HINT,
    METRICS,
    PAYLOADS,
    PROMPT_INNERS,
    SESSION_INNERS,
    TICK_INNERS,
    make_envelope,
    wire,
)

Frame = dict[str, Any]


@cache
def validator(definition: str) -> Any:
    """Return the validator of one definition, or of any frame for ""."""
    schema = wire_schema()
    if definition:
        schema = {"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]}
    return jsonschema.Draft202012Validator(schema)


def is_server_frame(frame: object) -> bool:
    return bool(validator("ServerFrame").is_valid(frame))


def is_client_frame(frame: object) -> bool:
    return bool(validator("ClientFrame").is_valid(frame))


def add(kind: CardKind) -> CardAdd:
    return CardAdd(envelope=make_envelope(kind), hint=HINT, payload=PAYLOADS[kind])


def card_set(kind: CardKind) -> CardSet:
    return CardSet(envelope=make_envelope(kind), payload=PAYLOADS[kind])


def append(kind: CardKind, channel: Channel) -> CardAppend:
    is_json = channel is Channel.TOOL_INPUT
    payload = AppendPayload(
        channel=channel,
        index=1,
        chunk=msgspec.UNSET if is_json else "x",
        partial_json="{" if is_json else msgspec.UNSET,
    )
    return CardAppend(envelope=make_envelope(kind), payload=payload)


def tick(kind: CardKind, tick_kind: TickKind) -> CardTick:
    payload = TickPayload(kind=tick_kind, inner=TICK_INNERS[tick_kind])
    return CardTick(envelope=make_envelope(kind), payload=payload)


def close(kind: CardKind, status: CloseStatus = CloseStatus.OK) -> CardClose:
    payload = ClosePayload(
        status=status,
        error=ERROR if status is CloseStatus.FAILED else msgspec.UNSET,
        inner=PAYLOADS[kind],
    )
    return CardClose(envelope=make_envelope(kind), metrics=METRICS, payload=payload)


def prompt(kind: PromptKind = PromptKind.QUESTION) -> PromptUser:
    payload = PromptUserPayload(
        request_id="req_1", kind=kind, inner=PROMPT_INNERS[kind], timeout_ms=0
    )
    return PromptUser(envelope=make_envelope(), payload=payload)


def reply() -> PromptReply:
    payload = PromptReplyPayload(request_id="req_1", decision="approved", reason="ok")
    return PromptReply(envelope=make_envelope(), payload=payload)


def session(kind: SessionEventKind) -> SessionEvent:
    payload = SessionEventPayload(kind=kind, inner=SESSION_INNERS[kind])
    return SessionEvent(envelope=make_envelope(), payload=payload)


def every_event() -> Iterator[tuple[str, Event]]:
    for kind in CardKind:
        yield f"add-{kind}", add(kind)
        yield f"set-{kind}", card_set(kind)
        for tick_kind in TickKind:
            yield f"tick-{kind}-{tick_kind}", tick(kind, tick_kind)
        for channel in sorted(CHANNELS_OF_KIND.get(kind, ())):
            yield f"append-{kind}-{channel}", append(kind, channel)
        if kind in TRACKED_KINDS:
            for status in CloseStatus:
                yield f"close-{kind}-{status}", close(kind, status)
    for prompt_kind in PromptKind:
        yield f"prompt-{prompt_kind}", prompt(prompt_kind)
    yield "reply", reply()
    for event_kind in SessionEventKind:
        yield f"session-{event_kind}", session(event_kind)


EVENTS = dict(every_event())
ONE_OF_EACH_ACTION = [
    "add-tool",
    "set-tool",
    "append-message-text",
    "tick-tool-progress",
    "close-tool-ok",
    "prompt-question",
    "reply",
    "session-opened",
]
ALWAYS_IN_ENVELOPE = [
    "event_id",
    "session_id",
    "trace_id",
    "card_id",
    "card_kind",
    "seq",
    "timestamp",
]


def changed(frame: Frame, path: str, value: object) -> Frame:
    """Return a copy of a frame with one field set."""
    first, _, rest = path.partition(".")
    return frame | {
        first: changed(frame.get(first, {}), rest, value) if rest else value
    }


def without(frame: Frame, path: str) -> Frame:
    """Return a copy of a frame without one field."""
    first, _, rest = path.partition(".")
    if not rest:
        return {name: value for name, value in frame.items() if name != first}
    return frame | {first: without(frame[first], rest)}


TOOL_ADD = wire(add(CardKind.TOOL))
TOOL_CLOSE = wire(close(CardKind.TOOL))
TOOL_FAILED = wire(close(CardKind.TOOL, CloseStatus.FAILED))
TEXT = wire(append(CardKind.MESSAGE, Channel.TEXT))
THOUGHT = wire(append(CardKind.THINKING, Channel.THINKING))
PROGRESS = wire(tick(CardKind.TOOL, TickKind.PROGRESS))
INTENT = wire(tick(CardKind.TOOL, TickKind.INTENT))
PROMPT = wire(prompt())
REPLY = wire(reply())
SESSION = {kind: wire(session(kind)) for kind in SessionEventKind}

MALFORMED: dict[str, object] = {
    "no-object": [TOOL_ADD],
    "empty": {},
    "unknown-action": changed(TOOL_ADD, "type", "card.remove"),
    "unknown-kind": changed(TOOL_ADD, "envelope.card_kind", "widget"),
    "other-kind": changed(TOOL_ADD, "envelope.card_kind", "agent"),
    "no-kind": changed(TOOL_ADD, "envelope.card_kind", ""),
    "empty-card-id": changed(TOOL_ADD, "envelope.card_id", ""),
    "seq-text": changed(TOOL_ADD, "envelope.seq", "1"),
    "seq-null": changed(TOOL_ADD, "envelope.seq", None),
    "role": changed(TOOL_ADD, "envelope.agent_role", "boss"),
    "severity": changed(TOOL_ADD, "envelope.severity", "fatal"),
    "parent-null": changed(TOOL_ADD, "envelope.parent_card_id", None),
    "no-hint": without(TOOL_ADD, "hint"),
    "no-title": without(TOOL_ADD, "hint.title"),
    "no-payload": without(TOOL_ADD, "payload"),
    "payload-null": changed(TOOL_ADD, "payload", None),
    "target": changed(TOOL_ADD, "payload.target", "moon"),
    "artifact": changed(TOOL_ADD, "payload.artifacts", [{"name": "a"}]),
    "set-type": changed(wire(card_set(CardKind.STEP)), "payload.attempts", "1"),
    "append-to-tool": changed(TEXT, "envelope.card_kind", "tool"),
    "append-no-channel": without(TEXT, "payload.channel"),
    "text-of-thinking": changed(THOUGHT, "payload.channel", "text"),
    "thinking-of-message": changed(TEXT, "payload.channel", "thinking"),
    "chunk-number": changed(TEXT, "payload.chunk", 1),
    "unknown-tick": changed(PROGRESS, "payload.kind", "wink"),
    "tick-of-other-kind": changed(PROGRESS, "payload.kind", "intent"),
    "tick-no-inner": without(PROGRESS, "payload.inner"),
    "intent-empty": without(INTENT, "payload.inner.intent"),
    "close-leaf": changed(TOOL_CLOSE, "envelope.card_kind", "artifact"),
    "close-status": changed(TOOL_CLOSE, "payload.status", "done"),
    "close-no-status": without(TOOL_CLOSE, "payload.status"),
    "failed-no-error": without(TOOL_FAILED, "payload.error"),
    "failed-no-message": without(TOOL_FAILED, "payload.error.user_message"),
    "ok-with-error": changed(TOOL_FAILED, "payload.status", "ok"),
    "error-type": changed(TOOL_FAILED, "payload.error.type", "oops"),
    "recovery": changed(TOOL_FAILED, "payload.error.recovery.action", "pray"),
    "inner-of-other": changed(TOOL_CLOSE, "payload.inner.target", "moon"),
    "metrics": changed(TOOL_CLOSE, "metrics.duration_ms", "50"),
    "prompt-no-timeout": without(PROMPT, "payload.timeout_ms"),
    "prompt-no-inner": without(PROMPT, "payload.inner"),
    "prompt-kind": changed(PROMPT, "payload.kind", "quiz"),
    "prompt-card": changed(PROMPT, "envelope.card_id", "tool_1"),
    "prompt-card-kind": changed(PROMPT, "envelope.card_kind", "tool"),
    "reply-decision": changed(REPLY, "payload.decision", "cancel"),
    "reply-no-id": without(REPLY, "payload.request_id"),
    "session-kind": changed(SESSION[SessionEventKind.OPENED], "payload.kind", "bye"),
    "session-card": changed(
        SESSION[SessionEventKind.OPENED], "envelope.card_kind", "turn"
    ),
    "opened-no-trace": without(
        SESSION[SessionEventKind.OPENED], "payload.inner.trace_id"
    ),
    "updated-state": changed(
        SESSION[SessionEventKind.UPDATED], "payload.inner.state", "asleep"
    ),
    "error-empty": without(SESSION[SessionEventKind.ERROR], "payload.inner.error"),
    "resumed-no-end": without(
        SESSION[SessionEventKind.RESUMED], "payload.inner.to_seq"
    ),
    "resume-failed-why": changed(
        SESSION[SessionEventKind.RESUME_FAILED], "payload.inner.reason", "no"
    ),
}

CLIENT_FRAMES: list[Frame] = [
    {"type": "session.create"},
    {"type": "session.create", "session_id": "s", "capabilities": {"x": [1]}},
    {"type": "user.message", "text": "Hi"},
    {"type": "user.message", "content": {"text": "Hi"}},
    {
        "type": "user.message",
        "event_id": "c1",
        "content": [{"type": "text", "text": "Hi", "source": {"type": "path"}}],
        "coordinator_mode": "plan",
        "plan_confirmation": "required",
    },
    {"type": "user.inject", "text": "Hi", "trace_id": "tr_1"},
    {"type": "tool.result", "tool_use_id": "t", "status": "ok", "output": [1]},
    {"type": "prompt.user_response", "request_id": "r", "decision": "approved"},
    {
        "type": "prompt.user_response",
        "request_id": "r",
        "decision": "retry",
        "payload": {"note": ""},
    },
    {"type": "session.interrupt"},
    {"type": "session.interrupt", "trace_id": "tr_1", "clear_queue": True},
    {"type": "session.resume", "trace_id": "tr_1"},
    {"type": "session.resume", "trace_id": "tr_1", "last_seq": 2**53 - 1},
    {"type": "ping"},
    {"type": "ping", "x": 1},
]

BAD_CLIENT_FRAMES: list[object] = [
    [],
    "ping",
    None,
    {},
    {"type": "PING"},
    {"type": "session.create", "session_id": ""},
    {"type": "session.create", "session_id": "x" * 129},
    {"type": "user.message", "content": "Hi"},
    {"type": "user.message", "content": [1]},
    {"type": "user.message", "content": [{"type": "text", "text": 1}]},
    {"type": "user.message", "content": [{"type": "image", "source": 1}]},
    {"type": "user.message", "text": "Hi", "coordinator_mode": "no"},
    {"type": "user.inject", "text": ""},
    {"type": "user.inject"},
    {"type": "tool.result", "tool_use_id": "t", "status": "maybe"},
    {"type": "tool.result", "status": "ok"},
    {"type": "prompt.user_response", "request_id": "r"},
    {"type": "prompt.user_response", "request_id": "r", "decision": True},
    {
        "type": "prompt.user_response",
        "request_id": "r",
        "decision": "approved",
        "payload": "yes",
    },
    {"type": "session.interrupt", "clear_queue": 1},
    {"type": "session.resume"},
    {"type": "session.resume", "trace_id": "tr_1", "last_seq": -1},
    {"type": "session.resume", "trace_id": "tr_1", "last_seq": 2.5},
    {"type": "session.resume", "trace_id": "tr_1", "last_seq": "3"},
    {"type": "session.resume", "trace_id": "tr_1", "last_seq": None},
    {"type": "session.resume", "trace_id": "tr_1", "last_seq": 2**53},
]


class TestWireSchema:
    def test_is_a_schema_of_the_2020_draft(self) -> None:
        """Spec: interfaces.md, /v1/wire.schema.json."""
        schema = wire_schema()

        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"

    def test_refers_only_to_definitions_that_it_has(self) -> None:
        encoded = msgspec.json.encode(wire_schema()).decode()
        names = {part.partition('"')[0] for part in encoded.split("#/$defs/")[1:]}

        assert names <= set(wire_schema()["$defs"])

    @pytest.mark.parametrize("frame", [{"type": "pong"}, {"type": "ping"}, TOOL_ADD])
    def test_takes_frames_of_either_side(self, frame: Frame) -> None:
        assert validator("").is_valid(frame)

    def test_takes_no_other_frame(self) -> None:
        assert not validator("").is_valid({"type": "no.such.type"})


class TestServerFrame:
    @pytest.mark.parametrize("name", EVENTS)
    def test_takes_every_event(self, name: str) -> None:
        """Spec: EMIT 4, 5, 6, 7, 8, 10, 11, 12."""
        assert is_server_frame(wire(EVENTS[name]))

    def test_takes_a_pong(self) -> None:
        """Spec: EMIT 2.3; Ruling E25."""
        assert is_server_frame(msgspec.json.decode(PONG))

    @pytest.mark.parametrize("name", EVENTS)
    def test_takes_unknown_fields(self, name: str) -> None:
        """Spec: Ruling E22."""
        frame = changed(wire(EVENTS[name]), "payload.aun", {"kind": "card"})

        assert is_server_frame(changed(frame, "envelope.more", 1))

    @pytest.mark.parametrize("name", MALFORMED)
    def test_refuses_a_malformed_frame(self, name: str) -> None:
        """Spec: EMIT 3 to 12; Ruling E6."""
        assert not is_server_frame(MALFORMED[name])

    @pytest.mark.parametrize("name", ONE_OF_EACH_ACTION)
    @pytest.mark.parametrize("field", ALWAYS_IN_ENVELOPE)
    def test_refuses_a_frame_without_a_part_of_its_envelope(
        self, name: str, field: str
    ) -> None:
        """Spec: EMIT 3.2; Ruling E6."""
        assert not is_server_frame(without(wire(EVENTS[name]), f"envelope.{field}"))

    @pytest.mark.parametrize(
        ("kind", "field"),
        [(kind, field) for kind in CardKind for field in REQUIRED_ON_ADD[kind]],
        ids=str,
    )
    def test_refuses_a_new_card_without_what_its_kind_requires(
        self, kind: CardKind, field: str
    ) -> None:
        """Spec: EMIT 6.1, 10."""
        assert not is_server_frame(without(wire(add(kind)), f"payload.{field}"))

    @pytest.mark.parametrize("kind", CardKind)
    def test_takes_a_patch_without_it(self, kind: CardKind) -> None:
        """Spec: EMIT 6.2; Ruling E11."""
        patch = CardSet(envelope=make_envelope(kind), payload=PAYLOAD_OF_KIND[kind]())

        assert is_server_frame(wire(patch))

    @pytest.mark.parametrize("kind", [k for k in CardKind if k not in TRACKED_KINDS])
    def test_refuses_to_close_an_untracked_card(self, kind: CardKind) -> None:
        """Spec: EMIT 10.9; Ruling E13."""
        assert not is_server_frame(wire(close(kind)))

    @pytest.mark.parametrize(
        ("kind", "channel"),
        [
            (kind, channel)
            for kind in CardKind
            for channel in Channel
            if channel not in CHANNELS_OF_KIND.get(kind, ())
        ],
        ids=str,
    )
    def test_refuses_a_stream_of_another_kind(
        self, kind: CardKind, channel: Channel
    ) -> None:
        """Spec: EMIT 6.3."""
        assert not is_server_frame(wire(append(kind, channel)))

    @pytest.mark.parametrize("frame", CLIENT_FRAMES, ids=lambda frame: frame["type"])
    def test_refuses_what_a_client_says(self, frame: Frame) -> None:
        assert not is_server_frame(frame)


class TestClientFrame:
    @pytest.mark.parametrize("frame", CLIENT_FRAMES, ids=lambda frame: frame["type"])
    def test_takes_what_the_server_reads(self, frame: Frame) -> None:
        """Spec: EMIT 9."""
        message = read_client_message(frame)

        assert is_client_frame(frame)
        assert is_client_frame(msgspec.to_builtins(message))

    def test_was_shown_every_type(self) -> None:
        """Spec: EMIT 9."""
        shown = {type(read_client_message(frame)) for frame in CLIENT_FRAMES}

        assert shown == set(AnyClientMessage.__args__)

    @pytest.mark.parametrize("frame", BAD_CLIENT_FRAMES, ids=repr)
    def test_refuses_what_the_server_refuses(self, frame: Any) -> None:
        """Spec: EMIT 9; Ruling E22."""
        with pytest.raises(RemoteProtocolError):
            read_client_message(frame)

        assert not is_client_frame(frame)

    @pytest.mark.parametrize("name", EVENTS)
    def test_refuses_what_a_server_says(self, name: str) -> None:
        assert not is_client_frame(wire(EVENTS[name]))
