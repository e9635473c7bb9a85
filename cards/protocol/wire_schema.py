"""The JSON Schema of every frame, made from the types that make the frames.

Spec: EMIT 3 to 12; interfaces.md, /v1/wire.schema.json.
"""

from functools import cache
from typing import Any, get_args

import msgspec

from cards.protocol.client_messages import AnyClientMessage
from cards.protocol.envelope import Envelope, Hint, Metrics
from cards.protocol.events import PromptReply, PromptUser
from cards.protocol.kinds import (
    CHANNELS_OF_KIND,
    TRACKED_KINDS,
    CardKind,
    PromptKind,
    SessionEventKind,
    TickKind,
)
from cards.protocol.payloads import (
    INNER_OF_SESSION_EVENT,
    INNER_OF_TICK,
    PAYLOAD_OF_KIND,
    REQUIRED_ON_ADD,
    AppendPayload,
    ErrorInner,
)
from cards.protocol.prompts import INNER_OF_PROMPT

Schema = dict[str, Any]

_REF = "#/$defs/{name}"

_CLIENT_MESSAGES: tuple[type, ...] = get_args(AnyClientMessage)

_TYPES: tuple[type, ...] = (
    Envelope,
    Hint,
    Metrics,
    AppendPayload,
    ErrorInner,
    PromptUser,
    PromptReply,
    *PAYLOAD_OF_KIND.values(),
    *INNER_OF_TICK.values(),
    *INNER_OF_SESSION_EVENT.values(),
    *INNER_OF_PROMPT.values(),
    *_CLIENT_MESSAGES,
)


@cache
def wire_schema() -> Schema:
    """Return one JSON Schema (2020-12) that every frame of either side matches.

    `$defs.ServerFrame` and `$defs.ClientFrame` are the two directions. Unknown
    fields are allowed, as clients and servers ignore them.

    Spec: interfaces.md; Ruling E22.
    """
    _, components = msgspec.json.schema_components(_TYPES, ref_template=_REF)
    definitions: Schema = dict(components)
    definitions["Pong"] = {
        "type": "object",
        "properties": {"type": {"const": "pong"}},
        "required": ["type"],
    }
    definitions["ServerFrame"] = {"anyOf": [_ref("Pong"), *_server_frames()]}
    definitions["ClientFrame"] = {
        "anyOf": [_ref(message.__name__) for message in _CLIENT_MESSAGES]
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Cardwire frames",
        "anyOf": [_ref("ServerFrame"), _ref("ClientFrame")],
        "$defs": definitions,
    }


def _server_frames() -> list[Schema]:
    frames: list[Schema] = [
        *(_prompt_frame("PromptUser", _prompt_payload(kind)) for kind in PromptKind),
        _prompt_frame("PromptReply", {}),
    ]
    for kind in CardKind:
        frames.append(_card_add(kind))
        frames.append(_card_frame("card.set", kind, _payload_ref(kind)))
        frames.append(_card_frame("card.tick", kind, _tick_payload()))
        if kind in CHANNELS_OF_KIND:
            frames.append(_card_frame("card.append", kind, _append_payload(kind)))
        if kind in TRACKED_KINDS:
            frames.append(_card_close(kind))
    frames.extend(_session_event(kind) for kind in SessionEventKind)
    return frames


def _prompt_frame(name: str, payload: Schema) -> Schema:
    envelope = _cardless_envelope()
    return {"allOf": [_ref(name), _object({"envelope": envelope, "payload": payload})]}


def _prompt_payload(kind: PromptKind) -> Schema:
    return _object(
        {
            "kind": {"const": str(kind)},
            "inner": _ref(INNER_OF_PROMPT[kind].__name__),
        }
    )


def _ref(name: str) -> Schema:
    return {"$ref": _REF.format(name=name)}


def _payload_ref(kind: CardKind) -> Schema:
    return _ref(PAYLOAD_OF_KIND[kind].__name__)


def _object(required: Schema, optional: Schema | None = None) -> Schema:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
    }


def _cardless_envelope() -> Schema:
    # Ruling E6: "" on prompt.* and session.*.
    empty: Schema = {"const": ""}
    return {
        "allOf": [_ref("Envelope"), _object({"card_id": empty, "card_kind": empty})]
    }


def _card_frame(action: str, kind: CardKind, payload: Schema, **more: Schema) -> Schema:
    envelope = {
        "allOf": [
            _ref("Envelope"),
            _object({"card_id": {"minLength": 1}, "card_kind": {"const": str(kind)}}),
        ]
    }
    return _object(
        {"type": {"const": action}, "envelope": envelope, "payload": payload}, more
    )


def _card_add(kind: CardKind) -> Schema:
    payload = {"allOf": [_payload_ref(kind), {"required": list(REQUIRED_ON_ADD[kind])}]}
    frame = _card_frame("card.add", kind, payload, hint=_ref("Hint"))
    frame["required"].append("hint")
    return frame


def _append_payload(kind: CardKind) -> Schema:
    channels = sorted(CHANNELS_OF_KIND[kind])
    return {"allOf": [_ref("AppendPayload"), _object({"channel": {"enum": channels}})]}


def _tick_payload() -> Schema:
    return {
        "anyOf": [
            _object(
                {
                    "kind": {"const": str(kind)},
                    "inner": _ref(INNER_OF_TICK[kind].__name__),
                }
            )
            for kind in TickKind
        ]
    }


def _card_close(kind: CardKind) -> Schema:
    inner = _payload_ref(kind)
    failed = _object(
        {"status": {"const": "failed"}, "error": _ref("ErrorInfo")}, {"inner": inner}
    )
    other = _object(
        {"status": {"enum": ["ok", "skipped", "cancelled"]}},
        {"inner": inner, "error": False},
    )
    return _card_frame(
        "card.close", kind, {"anyOf": [failed, other]}, metrics=_ref("Metrics")
    )


def _session_event(kind: SessionEventKind) -> Schema:
    return _object(
        {
            "type": {"const": "session.event"},
            "envelope": _cardless_envelope(),
            "payload": _object(
                {
                    "kind": {"const": str(kind)},
                    "inner": _ref(INNER_OF_SESSION_EVENT[kind].__name__),
                }
            ),
        }
    )
