import dataclasses
import json
import math
from collections import ChainMap, deque
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.protocol.json_form import MAX_DEPTH, JSONValue, clean_text, json_form

LONE_HIGH = "\ud83d"
LONE_LOW = "\ude00"


class Text(str):
    """Like Django's SafeString: a str that is not exactly one."""

    __slots__ = ()

    def __str__(self) -> str:
        return self


class Whole(int):
    """An int that is not exactly one."""


class Real(float):
    """A float that is not exactly one."""


class Colour(Enum):
    RED = "red"
    NESTED = (1, "a")


class Word(StrEnum):
    YES = "yes"


class Level(IntEnum):
    HIGH = 3


class Price(Decimal, Enum):
    LOW = "1.50"


@dataclasses.dataclass
class Point:
    x: int
    label: str


@dataclasses.dataclass
class Later:
    given: int
    computed: int = dataclasses.field(init=False)


@dataclasses.dataclass(eq=False)
class Node:
    children: dict[object, object]


class Record(msgspec.Struct):
    name: str
    size: int


class TestCleanText:
    @pytest.mark.parametrize("text", ["", "plain", "实验 é", "\U0001f600", "\t\n\x01"])
    def test_keeps_what_utf8_can_carry(self, text: str) -> None:
        assert clean_text(text) == text

    @pytest.mark.parametrize(
        ("text", "clean"),
        [
            ("a\x00b", "a\ufffdb"),
            ("é\x00", "é\ufffd"),
            (LONE_HIGH, "\ufffd"),
            (LONE_LOW, "\ufffd"),
            (LONE_HIGH + "x", "\ufffdx"),
            (LONE_LOW + LONE_HIGH, "\ufffd\ufffd"),
            (LONE_HIGH + LONE_HIGH, "\ufffd\ufffd"),
            ("\x00" + LONE_HIGH, "\ufffd\ufffd"),
            ("\ufeff" + LONE_HIGH, "\ufeff\ufffd"),
        ],
        ids=ascii,
    )
    def test_replaces_each_nul_and_half_pair(self, text: str, clean: str) -> None:
        """Spec: Ruling E22."""
        assert clean_text(text) == clean

    def test_joins_halves_that_belong_together(self) -> None:
        assert clean_text(LONE_HIGH + LONE_LOW) == "\U0001f600"

    @pytest.mark.parametrize("text", ["plain", "é"], ids=["ascii", "other"])
    def test_gives_a_plain_str_of_a_subclass(self, text: str) -> None:
        """The encoder refuses subclasses, such as Django's SafeString."""
        assert type(clean_text(Text(text))) is str

    @given(st.text(st.characters(exclude_categories=())))
    def test_gives_text_that_can_be_stored_and_sent(self, text: str) -> None:
        """Spec: Ruling E22."""
        clean = clean_text(text)

        assert "\x00" not in clean
        assert clean.encode().decode() == clean
        assert clean_text(clean) == clean

    @given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
    def test_changes_nothing_that_was_clean(self, text: str) -> None:
        assert clean_text(text) == text


SCALARS: list[tuple[str, object, JSONValue]] = [
    ("none", None, None),
    ("true", True, True),
    ("false", False, False),
    ("str", "a", "a"),
    ("str-with-nul", "a\x00", "a\ufffd"),
    ("str-half-pair", LONE_HIGH, "\ufffd"),
    ("str-subclass", Text("a"), "a"),
    ("int", -7, -7),
    ("int-subclass", Whole(7), 7),
    ("int-safe", 2**53 - 1, 2**53 - 1),
    ("int-safe-negative", 1 - 2**53, 1 - 2**53),
    ("int-2**53", 2**53, "9007199254740992"),
    ("int-minus-2**53", -(2**53), "-9007199254740992"),
    ("int-2**64", 2**64, "18446744073709551616"),
    ("int-10**40", 10**40, "1" + "0" * 40),
    ("int-10**4000", 10**4000, "1" + "0" * 4000),
    ("int-2**20000", 2**20_000, "0x1" + "0" * 5000),
    ("float", 1.5, 1.5),
    ("float-subclass", Real(1.5), 1.5),
    ("nan", math.nan, "NaN"),
    ("infinity", math.inf, "Infinity"),
    ("minus-infinity", -math.inf, "-Infinity"),
    ("decimal", Decimal("1.50"), "1.50"),
    ("decimal-nan", Decimal("NaN"), "NaN"),
    ("uuid", UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ("path", PurePosixPath("/tmp/x"), "/tmp/x"),  # noqa: S108
    ("path-half-pair", PurePosixPath("/x\udcff"), "/x\ufffd"),
    ("datetime", datetime(2026, 5, 7, 10, tzinfo=UTC), "2026-05-07T10:00:00+00:00"),
    ("date", date(2026, 5, 7), "2026-05-07"),
    ("time", time(10, 30), "10:30:00"),
    ("timedelta", timedelta(minutes=1, milliseconds=5), 60.005),
    ("bytes", b"\x00\xff", "AP8="),
    ("bytearray", bytearray(b"a"), "YQ=="),
    ("memoryview", memoryview(b"abc")[::2], "YWM="),
    ("enum", Colour.RED, "red"),
    ("enum-of-tuple", Colour.NESTED, [1, "a"]),
    ("str-enum", Word.YES, "yes"),
    ("int-enum", Level.HIGH, 3),
    ("decimal-enum", Price.LOW, "1.50"),
    ("object", object(), "(object)"),
    ("class", Point, "(type)"),
    ("generator", (each for each in [1]), "(generator)"),
    ("deque", deque([1]), "(deque)"),
    ("complex", 1j, "(complex)"),
]

CONTAINERS: list[tuple[str, object, JSONValue]] = [
    ("list", [1, None], [1, None]),
    ("tuple", (1, "a"), [1, "a"]),
    ("set", {1}, [1]),
    ("frozenset", frozenset({"a"}), ["a"]),
    ("range", range(3), [0, 1, 2]),
    ("dict", {"a": {"b": 1.5}}, {"a": {"b": 1.5}}),
    ("mapping", ChainMap({"a": 1}), {"a": 1}),
    ("dataclass", Point(1, "a"), {"x": 1, "label": "a"}),
    ("dataclass-half-made", Later(1), {"given": 1}),
    ("struct", Record("a", 2), {"name": "a", "size": 2}),
    ("key-nul", {"a\x00": 1}, {"a\ufffd": 1}),
    ("key-none", {None: 1}, {"null": 1}),
    ("key-bool", {True: 1}, {"true": 1}),
    ("key-int", {7: 1}, {"7": 1}),
    ("key-huge", {2**64: 1}, {"18446744073709551616": 1}),
    ("key-float", {1.5: 1}, {"1.5": 1}),
    ("key-nan", {math.nan: 1}, {"NaN": 1}),
    ("key-date", {date(2026, 5, 7): 1}, {"2026-05-07": 1}),
    ("key-tuple", {(1, "a"): 1}, {'[1,"a"]': 1}),
    ("key-enum", {Word.YES: 1}, {"yes": 1}),
]


def nested(levels: int) -> object:
    value: object = "inside"
    for _ in range(levels):
        value = [value]
    return value


class TestJsonForm:
    @pytest.mark.parametrize(
        ("value", "form"),
        [case[1:] for case in SCALARS],
        ids=[case[0] for case in SCALARS],
    )
    def test_of_a_scalar_is_the_one_documented(
        self, value: object, form: JSONValue
    ) -> None:
        """Spec: engine-api.md, Details."""
        result = json_form(value)

        assert result == form
        assert type(result) is type(form)

    @pytest.mark.parametrize(
        ("value", "form"),
        [case[1:] for case in CONTAINERS],
        ids=[case[0] for case in CONTAINERS],
    )
    def test_of_a_container_holds_the_forms_of_its_parts(
        self, value: object, form: JSONValue
    ) -> None:
        """Spec: engine-api.md, Details."""
        assert json_form(value) == form

    def test_keeps_64_levels(self) -> None:
        """Spec: Ruling E22."""
        assert json_form(nested(MAX_DEPTH)) == nested(MAX_DEPTH)

    def test_cuts_the_65th_level(self) -> None:
        """Spec: Ruling E22."""
        text = json.dumps(json_form(nested(MAX_DEPTH + 1)))

        assert text == "[" * MAX_DEPTH + '"(too deep)"' + "]" * MAX_DEPTH

    def test_of_a_list_inside_itself_ends(self) -> None:
        """Spec: engine-api.md, Details."""
        cycle: list[object] = [1]
        cycle.append(cycle)

        assert json_form(cycle) == [1, "(cycle)"]

    def test_of_an_object_inside_itself_ends(self) -> None:
        """Spec: engine-api.md, Details."""
        node = Node({})
        node.children["self"] = node

        assert json_form(node) == {"children": {"self": "(cycle)"}}

    def test_of_an_object_that_is_a_key_inside_itself_ends(self) -> None:
        """Spec: engine-api.md, Details."""
        node = Node({})
        node.children[node] = 1

        assert json_form(node) == {"children": {"(cycle)": 1}}

    def test_shows_a_value_twice_that_is_no_cycle(self) -> None:
        shared = [1]

        assert json_form([shared, shared]) == [[1], [1]]


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=8)
KEYS = st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.dates()
LEAVES = KEYS | st.decimals() | st.binary() | st.datetimes() | st.timedeltas()
VALUES = st.recursive(
    LEAVES | st.builds(object),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.builds(Node, st.dictionaries(KEYS, inner, max_size=2))
    ),
    max_leaves=12,
)


class TestAnyJsonForm:
    @given(VALUES)
    def test_is_json_that_a_browser_reads_without_loss(self, value: object) -> None:
        """Spec: engine-api.md, Details."""
        form = json_form(value)

        text = msgspec.json.encode(form).decode()
        assert json.loads(text) == form
        assert json.loads(json.dumps(form, allow_nan=False)) == form

    @given(VALUES)
    def test_is_its_own_json_form(self, value: object) -> None:
        form = json_form(value)

        assert json_form(form) == form
