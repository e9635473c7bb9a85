"""Text frames to plain JSON and events to bytes, strictly in both directions.

Spec: EMIT 3.1; Rulings E6, E22.
"""

import json
from typing import Final, NoReturn, TypeAlias

import msgspec

from cards.protocol.client_messages import (
    DEFAULT_LIMITS,
    AnyClientMessage,
    FrameLimits,
    read_client_message,
)
from cards.protocol.errors import LocalProtocolError, refuse
from cards.protocol.events import Event
from cards.protocol.json_form import MAX_DEPTH, JSONValue, clean_text

_encoder = msgspec.json.Encoder()

# Where a value stands, innermost key or index first; it becomes text only for an
# error, because a long key must not be copied for each value below it.
_Path: TypeAlias = "tuple[_Path, str | int] | None"

#: Longest field path in an error; the rest is cut off.
_MAX_FIELD_CHARS = 200

#: The answer to a ping: no envelope, no seq. Spec: EMIT 2.3; Ruling E25.
PONG = b'{"type":"pong"}'


def encode_event(event: Event) -> bytes:
    """Return the bytes of a frame: UTF-8 JSON, nothing escaped that need not be.

    Raises:
        LocalProtocolError: The event holds text that UTF-8 cannot carry; whoever
            made it should have used `clean_text`.

    Spec: EMIT 3.1; Ruling E6.
    """
    try:
        return _encoder.encode(event)
    except (UnicodeEncodeError, OverflowError) as error:
        raise LocalProtocolError(f"the event cannot be encoded: {error}") from error


def decode_client_message(
    text: str, limits: FrameLimits = DEFAULT_LIMITS
) -> AnyClientMessage:
    """Return the client message in a text frame.

    Args:
        limits: What it may hold.

    Raises:
        RemoteProtocolError: The frame is not strict JSON, or its message breaks
            a rule.

    Spec: EMIT 9; Ruling E22.
    """
    return read_client_message(decode_json(text, limits.depth), limits)


#: By which field a message of a type is known, in what we say of it as well.
_ID_FIELDS: Final = {
    "user.message": "event_id",
    "prompt.user_response": "request_id",
    "tool.result": "tool_use_id",
}


class _Named(msgspec.Struct):
    """A frame as far as its ids; the rest is passed over at the speed of memory."""

    type: object = None
    event_id: object = None
    request_id: object = None
    tool_use_id: object = None


_name_decoder = msgspec.json.Decoder(_Named)

#: Characters of a frame that is read a second time, slowly, for its id alone.
_MAX_ODD_CHARS = 1024 * 1024

#: Characters of an id. Spec: none; that of `ClientId`.
_MAX_ID_CHARS = 128


def name_message(text: str) -> dict[str, JSONValue]:
    """Return the id by which a client knows the message in a frame, under its name.

    Whatever else is wrong with the frame: the client has to know which of its
    messages had no effect. Empty when nothing names it.

    Spec: EMIT 9, 12.
    """
    try:
        named = _name_decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        named = _name_oddly(text)
    id_field = _ID_FIELDS.get(named.type) if isinstance(named.type, str) else None
    if id_field is None:
        return {}
    client_id = getattr(named, id_field)
    if not isinstance(client_id, str) or not 1 <= len(client_id) <= _MAX_ID_CHARS:
        return {}
    return {id_field: clean_text(client_id)}


def _name_oddly(text: str) -> _Named:
    # NaN and halves of surrogate pairs, which msgspec does not read.
    try:
        frame = json.loads(text) if len(text) <= _MAX_ODD_CHARS else None
    except (ValueError, RecursionError):
        frame = None
    if not isinstance(frame, dict):
        return _Named()
    return _Named(**{each: frame.get(each) for each in _Named.__struct_fields__})


def decode_json(text: str, max_depth: int = MAX_DEPTH) -> JSONValue:
    """Return the JSON value in `text`, with NUL in strings replaced by U+FFFD.

    Args:
        max_depth: Levels of nesting.

    Raises:
        RemoteProtocolError: Not JSON, nested more deeply, a key given twice, NaN or
            Infinity, or half of a surrogate pair.

    Spec: Ruling E22.
    """
    try:
        value: JSONValue = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_bounded_int,
        )
        return _clean(value, None, max_depth)
    except json.JSONDecodeError as error:
        raise refuse(
            f"the frame is not JSON: {error.msg} at character {error.pos}",
            code="INVALID_JSON",
            allowed="one JSON object per text frame",
        ) from error
    except (RecursionError, _TooDeep) as error:
        raise _too_deep(max_depth) from error


def _object(pairs: list[tuple[str, JSONValue]]) -> dict[str, JSONValue]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise refuse(
            "a key is given twice in one object",
            code="DUPLICATE_KEY",
            field=clean_text(twice[:_MAX_FIELD_CHARS]),
            allowed="each key once",
        )
    return fields


def _refuse_constant(word: str) -> NoReturn:
    raise refuse(f"{word} is not JSON", code="INVALID_NUMBER", allowed="finite numbers")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        _refuse_constant("a number too large for a double")
    return number


def _bounded_int(digits: str) -> int:
    # Python refuses to parse integers of more than 4300 digits with ValueError.
    if len(digits) > 400:
        _refuse_constant("an integer of more than 400 digits")
    return int(digits)


def _clean(value: JSONValue, path: _Path, levels: int) -> JSONValue:
    if isinstance(value, str):
        return _clean_string(value, path)
    if not isinstance(value, dict | list):
        return value
    if not levels:
        raise _TooDeep
    if isinstance(value, list):
        return [
            _clean(each, (path, index), levels - 1) for index, each in enumerate(value)
        ]
    # Two keys may have become one.
    return _object(
        [
            (_clean_string(key, (path, key)), _clean(each, (path, key), levels - 1))
            for key, each in value.items()
        ]
    )


def _clean_string(text: str, path: _Path) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise refuse(
                "a string holds half of a surrogate pair",
                code="INVALID_UNICODE",
                field=_field(path) or None,
                allowed="whole Unicode characters",
            ) from error
    return clean_text(text)


def _field(path: _Path) -> str:
    field = ""
    while path is not None:
        path, part = path
        step = f"[{part}]" if isinstance(part, int) else f".{part[:_MAX_FIELD_CHARS]}"
        field = (step + field)[: _MAX_FIELD_CHARS + 1]
    return clean_text(field.removeprefix(".")[:_MAX_FIELD_CHARS])


class _TooDeep(Exception):
    """The limit is known further up."""


def _too_deep(max_depth: int) -> Exception:
    return refuse(
        "the frame is nested too deeply",
        code="TOO_DEEP",
        allowed=f"at most {max_depth} levels",
    )
