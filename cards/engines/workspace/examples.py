"""The files a new workspace starts with: something to list, search and recite."""

from collections.abc import Iterator
from datetime import date, timedelta

#: The long text, for an answer that takes a while.
LONG_EXAMPLE = "books/lighthouse.txt"

_README = """\
# Your workspace

The assistant works on the files in this folder, and only on them.

Things to try:

- `list`, `list docs`
- `read notes/ideas.md`
- `read plan.md`, of which there are two
- `search TODO`
- `how many lines are in src?`
- `compare docs/plan.md and notes/plan.md`
- `run wc -l data/sales.csv`, after you allowed it
- `summarise .`
- `stream books/lighthouse.txt`

Change or delete what you like: the examples are put here only once.
"""

_IDEAS = """\
# Ideas

- A shelf for the spare keys.
- TODO: ask the neighbours about the ladder.
- Paint the back door green, or not at all.
"""

_NOTES_PLAN = """\
# Plan

1. Measure the garden.
2. Order twelve planks of larch.
3. Build the bench.
4. Invite everybody.
"""

_DOCS_PLAN = """\
# Plan

1. Measure the garden.
2. Order ten planks of larch and four of oak.
3. Build the bench.
4. Oil it twice.
5. Invite everybody.
"""

_GUIDE = """\
# Guide to the bench

The bench seats three. It wants a dry place in winter.

## Care

Oil it in spring. TODO: say which oil.

## Repair

Every plank is held by two screws from below.
"""

_APP = '''\
"""A till for a very small shop."""

from decimal import Decimal

PRICES = {"tea": Decimal("2.40"), "cake": Decimal("3.10")}


def total(order: dict[str, int]) -> Decimal:
    """Return what the order costs."""
    # TODO: a discount for regulars.
    return sum((PRICES[name] * count for name, count in order.items()), Decimal(0))


if __name__ == "__main__":
    print(total({"tea": 2, "cake": 1}))
'''

_TEST_APP = '''\
"""Tests of the till."""

from decimal import Decimal

from app import total


def test_two_teas_and_a_cake() -> None:
    assert total({"tea": 2, "cake": 1}) == Decimal("7.90")


# TODO: what does an empty order cost?
'''

_PAGE = """\
// The sign in the shop window.
const sign = document.querySelector("#sign");

// TODO: closed on Mondays.
export function show(open) {
  sign.textContent = open ? "Come in" : "Back soon";
}
"""

_SALES = """\
day,tea,cake
2024-03-01,14,6
2024-03-02,21,11
2024-03-03,9,3
2024-03-04,17,8
2024-03-05,12,12
2024-03-06,25,10
2024-03-07,19,7
"""

# Lists of coprime lengths: their combination repeats after 7 × 5 × 9 × 8 days.
_WINDS = (
    "Light airs from the south",
    "A stiff westerly",
    "Dead calm",
    "Fog until noon, then a breeze",
    "Gale from the north-west",
    "Wind backing east",
    "Squalls and sudden sun",
)
_SHIPS = (
    "no sail in sight",
    "two herring boats going out",
    "the mail steamer, an hour late",
    "a barque far off, hull down",
    "three colliers in line",
)
_DUTIES = (
    "I trimmed the wicks and polished the lens.",
    "I carried oil up all one hundred and twelve steps.",
    "I mended the rail on the gallery.",
    "I wrote up the stores; we are short of flour.",
    "I whitewashed the seaward side.",
    "I oiled the clockwork, which had begun to sing.",
    "I cleared the gutters of gulls' feathers.",
    "I painted the door for the third time this year.",
    "I wound the weights at eight, at midnight and at four.",
)
_THOUGHTS = (
    "The lamp burned well all night.",
    "A moth as large as my hand came to the glass and would not leave.",
    "It is strange how soon one stops hearing the sea.",
    "I read the almanac again from the beginning.",
    "The cat has decided that the second step is hers.",
    "Somebody on the passing boat waved, and I waved back.",
    "I thought I saw a light answer mine, but it was a star.",
    "Tomorrow the tender comes, if the weather lets her.",
)
_LOG_DAYS = 180


def _log() -> Iterator[str]:
    """Yield the lines of the lighthouse log, one entry a day."""
    yield "THE LOG OF THE LIGHTHOUSE AT GREY POINT"
    yield ""
    first = date(1887, 1, 1)
    for day in range(_LOG_DAYS):
        when = first + timedelta(days=day)
        wind = _WINDS[day % len(_WINDS)]
        ships = _SHIPS[day % len(_SHIPS)]
        yield f"{when:%d %B %Y}. {wind}; {ships}."
        yield _DUTIES[day % len(_DUTIES)]
        yield _THOUGHTS[day % len(_THOUGHTS)]
        yield ""


def example_files() -> dict[str, str]:
    """Return the first content of a workspace: relative path → text."""
    return {
        "README.md": _README,
        "notes/ideas.md": _IDEAS,
        "notes/plan.md": _NOTES_PLAN,
        "docs/guide.md": _GUIDE,
        "docs/plan.md": _DOCS_PLAN,
        "src/app.py": _APP,
        "src/tests/test_app.py": _TEST_APP,
        "src/web/page.js": _PAGE,
        "data/sales.csv": _SALES,
        LONG_EXAMPLE: "\n".join(_log()),
    }
