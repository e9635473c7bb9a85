"""From what an engine passes to what a payload holds.

None and empty text, lists and objects are left out of frames (Ruling E6); numbers
that JSON or a browser cannot hold are left out too, because a wrong number is worse
than none.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Literal, TypeVar, get_args

from msgspec import UNSET, UnsetType

from cards.protocol.envelope import MAX_SAFE_INTEGER, BudgetAmount
from cards.protocol.json_form import JSONValue, clean_text, json_form

MessageRole = Literal["assistant", "user"]
AgentType = Literal["sync", "async"]
Strategy = Literal["sequential", "parallel", "mixed"]
TodoStatus = Literal["pending", "in_progress", "completed", "cancelled"]
BudgetKind = Literal["warning", "exhausted", "reset"]
MemoryOp = Literal["read", "write", "compact"]
NoteSeverity = Literal["info", "warn", "error"]

Word = TypeVar("Word", bound=str)
Item = TypeVar("Item")


def one_of(name: str, word: Word, words: object) -> Word:
    """Return a word that is among those of a Literal.

    Models choose such words too, and a frame with another one is illegal.

    Raises:
        ValueError: It is not; the message lists those that are.
    """
    allowed = get_args(words)
    if word not in allowed:
        raise ValueError(f"unknown {name} {word!r}; allowed: {', '.join(allowed)}")
    return word


def text_or_unset(text: str | None) -> str | UnsetType:
    """Return clean text; UNSET for None and "". Spec: Rulings E6, E22."""
    return clean_text(str(text)) if text else UNSET


def listed(name: str, given: Iterable[Item]) -> list[Item]:
    """Return what an engine gave as a list.

    A text is a sequence as well, of its characters, and a mapping one of its names:
    nobody means these.

    Args:
        name: Of the argument.

    Raises:
        TypeError: It is one of the two, or nothing that could be listed.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"{name} is a list, such as [{given!r}], not {given!r}")
    return list(given)


def texts_or_unset(name: str, texts: Iterable[str] | None) -> list[str] | UnsetType:
    """Return a list of clean texts; UNSET for None and an empty list.

    Args:
        name: Of the argument.

    Raises:
        TypeError: A text stands where a list is due.
    """
    given = listed(name, () if texts is None else texts)
    return [clean_text(str(text)) for text in given] or UNSET


def json_or_unset(value: object) -> JSONValue | UnsetType:
    """Return the JSON form of a value; UNSET for None and empty containers.

    0, False and "" are values.
    """
    form = json_form(value)
    if form is None or form in ([], {}):
        return UNSET
    return form


def count_or_unset(number: float | None) -> int | UnsetType:
    """Return a whole number from 0 to 2**53 - 1; UNSET for all others."""
    finite = number_or_unset(number)
    if finite is UNSET or not 0 <= finite <= MAX_SAFE_INTEGER:
        return UNSET
    return int(finite)


def number_or_unset(number: float | None) -> float | UnsetType:
    """Return a finite number; UNSET for None, NaN, infinities and what is larger.

    Decimals and the numbers of other libraries become floats.
    """
    if number is None:
        return UNSET
    try:
        return float(number) if math.isfinite(number) else UNSET
    except OverflowError:
        return UNSET


def fraction_or_unset(number: float | None) -> float | UnsetType:
    """Return a number moved into 0 to 1; UNSET for None and NaN."""
    finite = number_or_unset(number)
    return UNSET if finite is UNSET else min(1.0, max(0.0, finite))


def budget_or_unset(
    amounts: Mapping[str, float] | None,
) -> BudgetAmount | UnsetType:
    """Return an amount from its parts `tokens`, `usd` and `calls`.

    Raises:
        ValueError: A part has another name.

    Spec: EMIT 3.4.
    """
    if not amounts:
        return UNSET
    if not isinstance(amounts, Mapping):
        raise TypeError(
            f"a budget is a mapping such as {{'tokens': 1000}}, not {amounts!r}"
        )
    unknown = set(amounts) - {"tokens", "usd", "calls"}
    if unknown:
        raise ValueError(
            f"unknown budget part {min(unknown)!r}; allowed: tokens, usd, calls"
        )
    return BudgetAmount(
        tokens=count_or_unset(amounts.get("tokens")),
        usd=number_or_unset(amounts.get("usd")),
        calls=count_or_unset(amounts.get("calls")),
    )
