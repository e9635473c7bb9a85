"""From what an engine passes to what a payload holds."""

import math
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any, Literal

import pytest
from msgspec import UNSET

from cards.engine.values import (
    budget_or_unset,
    count_or_unset,
    fraction_or_unset,
    json_or_unset,
    number_or_unset,
    one_of,
    text_or_unset,
    texts_or_unset,
)
from cards.protocol.envelope import MAX_SAFE_INTEGER, BudgetAmount
from cards.protocol.json_form import clean_text


class Level(IntEnum):
    """An integer of another class."""

    HIGH = 3


class TestTextOrUnset:
    @pytest.mark.parametrize(
        ("given", "form"),
        [
            (None, UNSET),
            ("", UNSET),
            (" ", " "),
            ("a\0\ud83d", "a\ufffd\ufffd"),
            (3, "3"),
        ],
        ids=repr,
    )
    def test_cleans_or_leaves_out(self, given: Any, form: object) -> None:
        """Spec: Rulings E6, E22."""
        assert text_or_unset(given) == form


class TestTextsOrUnset:
    @pytest.mark.parametrize(
        ("given", "form"),
        [(None, UNSET), ([], UNSET), (("a\0", 1), ["a\ufffd", "1"])],
        ids=repr,
    )
    def test_cleans_or_leaves_out(self, given: Any, form: object) -> None:
        assert texts_or_unset("members", given) == form


class TestJsonOrUnset:
    @pytest.mark.parametrize("given", [None, [], {}, (), set()], ids=repr)
    def test_leaves_out_what_is_empty(self, given: object) -> None:
        assert json_or_unset(given) is UNSET

    @pytest.mark.parametrize("given", [0, False, "", 0.0, [None], {"": ""}], ids=repr)
    def test_keeps_values(self, given: object) -> None:
        assert json_or_unset(given) == given


class TestCountOrUnset:
    @pytest.mark.parametrize(
        ("given", "form"),
        [
            (0, 0),
            (7, 7),
            (5.7, 5),
            (Level.HIGH, 3),
            (Decimal(9), 9),
            (MAX_SAFE_INTEGER, MAX_SAFE_INTEGER),
        ],
        ids=repr,
    )
    def test_keeps_whole_numbers(self, given: Any, form: int) -> None:
        count = count_or_unset(given)

        assert (count, type(count)) == (form, int)

    @pytest.mark.parametrize(
        "given",
        [None, -1, -0.5, math.nan, math.inf, MAX_SAFE_INTEGER + 1, 10**20, 10**400],
        ids=str,
    )
    def test_leaves_out_others(self, given: Any) -> None:
        assert count_or_unset(given) is UNSET

    def test_refuses_what_is_no_number(self) -> None:
        given: Any = "5"

        with pytest.raises(TypeError):
            count_or_unset(given)


class TestNumberOrUnset:
    @pytest.mark.parametrize(
        "given", [0, -1.5, Decimal("0.5"), Fraction(1, 2), Level.HIGH]
    )
    def test_keeps_numbers_as_plain_floats(self, given: Any) -> None:
        number = number_or_unset(given)

        assert (number, type(number)) == (given, float)

    @pytest.mark.parametrize(
        "given",
        [None, math.nan, math.inf, -math.inf, Decimal("NaN"), 10**400],
        ids=str,
    )
    def test_leaves_out_others(self, given: Any) -> None:
        assert number_or_unset(given) is UNSET


class TestFractionOrUnset:
    @pytest.mark.parametrize(
        ("given", "form"),
        [(0.4, 0.4), (-1, 0.0), (50, 1.0), (None, UNSET), (math.nan, UNSET)],
    )
    def test_moves_into_its_bounds(self, given: Any, form: object) -> None:
        assert fraction_or_unset(given) == form


class TestBudgetOrUnset:
    @pytest.mark.parametrize("given", [None, {}])
    def test_leaves_out_nothing(self, given: Any) -> None:
        assert budget_or_unset(given) is UNSET

    def test_takes_the_parts(self) -> None:
        amount = budget_or_unset({"tokens": 9, "usd": 0.5, "calls": 2})

        assert amount == BudgetAmount(tokens=9, usd=0.5, calls=2)

    def test_refuses_other_parts(self) -> None:
        with pytest.raises(ValueError, match="'euros'; allowed: tokens, usd, calls"):
            budget_or_unset({"euros": 1})


class TestOneOf:
    def test_gives_the_word_back(self) -> None:
        assert one_of("size", "big", Literal["big", "small"]) == "big"

    def test_names_what_is_allowed(self) -> None:
        with pytest.raises(ValueError, match="size 'huge'; allowed: big, small"):
            one_of("size", "huge", Literal["big", "small"])


class TestBudgetOfNumbers:
    def test_is_refused_with_an_example(self) -> None:
        with pytest.raises(TypeError, match="mapping such as"):
            budget_or_unset(1)  # type: ignore[arg-type]


class TestNoText:
    def test_is_refused_by_what_it_is(self) -> None:
        with pytest.raises(TypeError, match="text is a str, not None"):
            clean_text(None)  # type: ignore[arg-type]
