"""The JSON form of any Python value that an engine hands over.

| Python value | JSON form |
|---|---|
| str | the same; NUL and lone surrogates become U+FFFD |
| int within ±(2**53 - 1) | number |
| a larger int | string of its digits, because browsers would lose some |
| float; NaN and infinities | number; the strings "NaN", "Infinity", "-Infinity" |
| Decimal, UUID, Path, Enum | string; of an Enum the form of its value |
| datetime, date, time | ISO 8601 string |
| timedelta | seconds as a number |
| bytes, bytearray, memoryview | base64 string |
| set, frozenset, tuple, list, other iterable of a known kind | array |
| dict or other Mapping | object; keys by the same rules, joined into strings |
| dataclass, msgspec Struct | object of its fields |
| a container inside itself | the string "(cycle)" |
| deeper than 64 levels | the string "(too deep)" |
| anything else | the string "(ClassName)"; its content is not guessed at |

Spec: none; engine-api.md, Details.
"""

import base64
import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

import msgspec

from cards.protocol.envelope import MAX_SAFE_INTEGER

if TYPE_CHECKING:
    JSONValue: TypeAlias = (
        bool | int | float | str | list["JSONValue"] | dict[str, "JSONValue"] | None
    )
else:
    # msgspec reads annotations at run time and knows no recursive aliases; the
    # decoder bounds depth and content instead.
    JSONValue = Any

#: Levels of nesting; the same bound as for client frames. Spec: Ruling E22.
MAX_DEPTH = 64

_REPLACEMENT = "\ufffd"


def clean_text(text: str) -> str:
    """Return `text` with NUL and lone surrogates replaced by U+FFFD.

    Spec: Ruling E22.
    """
    if not isinstance(text, str):
        raise TypeError(f"text is a str, not {text!r}")
    # Of a subclass such as SafeString, which the encoder refuses, only the text.
    text = str.__str__(text)
    if "\x00" in text:
        text = text.replace("\x00", _REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # Pairs that were split over two escapes come together; halves do not.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def json_form(value: object) -> JSONValue:
    """Return the JSON form of `value`, a tree of plain JSON types; never fails.

    Spec: none; engine-api.md, Details.
    """
    return _form(value, frozenset())


def _form(value: object, holders: frozenset[int]) -> JSONValue:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        # Before the scalars: an Enum may be a Decimal or a str as well.
        return _form(value.value, holders)
    for kind, convert in _SCALARS:
        if isinstance(value, kind):
            return convert(value)
    return _container_form(value, holders)


def _container_form(value: object, holders: frozenset[int]) -> JSONValue:
    if id(value) in holders:
        return "(cycle)"
    if len(holders) >= MAX_DEPTH:
        return "(too deep)"
    inside = holders | {id(value)}
    fields = _fields_of(value)
    if fields is not None:
        return {_key(key, inside): _form(each, inside) for key, each in fields}
    if isinstance(value, _ARRAYS):
        return [_form(each, inside) for each in value]
    return f"({type(value).__name__})"


def _fields_of(value: object) -> Iterable[tuple[object, object]] | None:
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, msgspec.Struct):
        return [(name, getattr(value, name)) for name in value.__struct_fields__]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [
            (field.name, getattr(value, field.name))
            for field in dataclasses.fields(value)
            # A field without a default may never have been set.
            if hasattr(value, field.name)
        ]
    return None


def _key(key: object, holders: frozenset[int]) -> str:
    form = _form(key, holders)
    return form if isinstance(form, str) else msgspec.json.encode(form).decode()


def _int_form(value: int) -> int | str:
    # int() also strips IntEnum and other subclasses.
    plain = int(value)
    return plain if abs(plain) <= MAX_SAFE_INTEGER else _digits(plain)


def _digits(value: int) -> str:
    # Python refuses to print integers of more than 4300 digits.
    return str(value) if value.bit_length() < 14_000 else hex(value)


def _float_form(value: float) -> float | str:
    if math.isfinite(value):
        return float(value)
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _isoformat(value: datetime | date | time) -> str:
    return value.isoformat()


def _base64(value: bytes | bytearray | memoryview) -> str:
    return base64.b64encode(bytes(value)).decode("ascii")


_ARRAYS = (list, tuple, set, frozenset, range)

_SCALARS: tuple[tuple[type | tuple[type, ...], Callable[..., JSONValue]], ...] = (
    (str, clean_text),
    (int, _int_form),
    (float, _float_form),
    (Decimal, str),
    ((UUID, PurePath), lambda value: clean_text(str(value))),
    ((datetime, date, time), _isoformat),
    (timedelta, timedelta.total_seconds),
    ((bytes, bytearray, memoryview), _base64),
)
