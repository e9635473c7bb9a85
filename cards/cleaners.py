"""What `cleanup_orphans` removes beside the work of cards: apps above join in here.

Spec: interfaces.md, Commands.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol, Self

#: How long nothing is removed that may still be wanted.
GRACE: Final = timedelta(days=7)

#: Of one run of the command.
MAX_SCANNED: Final = 2000
MAX_DELETED: Final = 100


@dataclass(slots=True)
class Allowance:
    """What may still be looked at and removed."""

    scans: int = MAX_SCANNED
    deletions: int = MAX_DELETED

    def part(self, count: int) -> Self:
        """Take out one of `count` equal parts."""
        taken = type(self)(self.scans // count, self.deletions // count)
        self.scans -= taken.scans
        self.deletions -= taken.deletions
        return taken

    def give_back(self, part: Self) -> None:
        """Take back what of a part was not used."""
        self.scans += part.scans
        self.deletions += part.deletions


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a run removed, or would have.

    Attributes:
        counts: By the words of the summary line; the same words each time.
        problems: Why something was left alone; a sentence each, for the operator.
    """

    counts: Mapping[str, int]
    problems: list[str] = field(default_factory=list)


class Cleaner(Protocol):
    """Removes what an app has left over; safe to run twice and at the same time."""

    def clean(
        self, now: datetime, allowance: Allowance, *, is_dry_run: bool
    ) -> Cleaned:
        """Remove what is older than `GRACE`, within the allowance, and use that up.

        What is beyond the allowance is the next run's.

        Args:
            is_dry_run: Count what a run would remove, and change nothing.

        Raises:
            django.db.Error: The database is away; what was removed stays removed.
        """


_makers: dict[str, Callable[[], Cleaner]] = {}


def register_cleaner(name: str, make: Callable[[], Cleaner]) -> None:
    """Have an app's cleaner run with each clean-up.

    Args:
        name: Of the app; a second maker takes the place of the first.
    """
    _makers[name] = make


def registered_cleaners() -> list[Cleaner]:
    """Return a new cleaner of each app, in order of their names."""
    return [make() for _, make in sorted(_makers.items())]
