"""What a benchmark found, and whether that is good enough."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A bound for one figure."""

    figure: str
    bound: float
    is_minimum: bool

    def is_met(self, value: float) -> bool:
        """Tell whether a value keeps to the bound."""
        return value >= self.bound if self.is_minimum else value <= self.bound

    def __str__(self) -> str:
        sign = ">=" if self.is_minimum else "<="
        return f"{self.figure}{sign}{_number(self.bound)}"


def at_least(figure: str, bound: float) -> Target:
    """Return the target that a figure reaches a bound."""
    return Target(figure, bound, is_minimum=True)


def at_most(figure: str, bound: float) -> Target:
    """Return the target that a figure stays within a bound."""
    return Target(figure, bound, is_minimum=False)


@dataclass(frozen=True, slots=True)
class Result:
    """Figures by name, units in the names, and what they should be.

    Without targets the figures are there to be read beside others.
    """

    name: str
    figures: Mapping[str, float]
    targets: tuple[Target, ...]

    @property
    def missed(self) -> list[Target]:
        """The targets that the figures miss."""
        return [
            each for each in self.targets if not each.is_met(self.figures[each.figure])
        ]

    def __str__(self) -> str:
        figures = " ".join(
            f"{name}={_number(value)}" for name, value in self.figures.items()
        )
        targets = ",".join(map(str, self.targets)) or "none"
        missed = ",".join(each.figure for each in self.missed)
        verdict = f"MISSED {missed}" if missed else "ok"
        return f"{self.name}: {figures} target={targets} {verdict}"


def _number(value: float) -> str:
    if value == int(value) or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}"
