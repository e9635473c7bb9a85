"""How the rows of `phrases` are written: regular expressions that stay readable. Pure.

In a pattern one space stands for any run of white space, a space with a question mark
for an optional one, and a word in capitals for a fragment: NAME is one word or a quoted
name, PLACE a NAME with the words people put around it ("the docs folder").
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from cards.engines.workspace.commands import Command

_QUOTED = r"\"[^\"\n]+\"|'[^'\n]+'|`[^`\n]+`"
_FRAGMENTS = {
    "NAME": rf"(?:(?:{_QUOTED})[.,;]?|[^\s\"'`]\S*)",
    # A name that a separator may follow.
    "KEY": rf"(?:{_QUOTED}|[^\s:\"'`]+)",
    # A name with a dot or a slash in it is surely a file.
    "FILEKEY": rf"(?:{_QUOTED}|[^\s:\"'`]*[./][^\s:\"'`]*)",
    "SEP": r"(?::[\x20\t]?| ?\n| (?:with|containing|saying)(?: the text)? )",
    "FILLERS": (
        r"(?:(?:the|a|an|my|our|this|new|text|file|folder|directory|called|named) )*"
    ),
    "KIND": r"(?: (?:file|folder|directory|dir|subfolder))?",
    "PLACE": r"FILLERS(?P<name>all (?:the )?files|NAME)KIND",
    "ANYWHERE": r"(?:(?: (?:in|of|inside|under|within|from|at|for))? PLACE)?",
    "WITHIN": r"(?: (?:in|inside|under|within) PLACE)?",
    "TEXT": r"(?P<pattern>.+?)",
    "PACE": r"(?: (?:every|at|each) (?P<pace>\d{1,7}) ?(?:ms|milliseconds?))?",
}
_FRAGMENT = re.compile("|".join(sorted(_FRAGMENTS, key=len, reverse=True)))


class Reach(Enum):
    """What of the text a row has to match."""

    #: The beginning; what follows is content, kept to the letter.
    PREFIX = "prefix"
    #: All of it, to the letter.
    VERBATIM = "verbatim"
    #: All of it without question marks and thanks at the end.
    TRIMMED = "trimmed"


@dataclass(frozen=True, slots=True)
class Phrase:
    """One row: what to match, and the command to build from it and what follows."""

    reach: Reach
    pattern: re.Pattern[str]
    build: Callable[[re.Match[str], str], Command]

    def match(self, subject: str) -> re.Match[str] | None:
        """Return the match of the row; None when it has none."""
        if self.reach is Reach.PREFIX:
            return self.pattern.match(subject)
        return self.pattern.fullmatch(subject)


def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of the table: fragments first, then spaces."""
    while _FRAGMENT.search(pattern):
        pattern = _FRAGMENT.sub(lambda word: _FRAGMENTS[word[0]], pattern)
    spaced = re.sub(" (\\??)", lambda mark: r"\s*" if mark[1] else r"\s+", pattern)
    return re.compile(spaced, re.IGNORECASE | re.DOTALL)


def prefix(pattern: str, build: Callable[[re.Match[str], str], Command]) -> Phrase:
    """Return a row of which the rest is content."""
    return Phrase(Reach.PREFIX, _compile(pattern), build)


def verbatim(pattern: str, build: Callable[[re.Match[str]], Command]) -> Phrase:
    """Return a row that takes the text to the letter."""
    return Phrase(Reach.VERBATIM, _compile(pattern), lambda found, _: build(found))


def phrase(pattern: str, build: Callable[[re.Match[str]], Command]) -> Phrase:
    """Return a row that ignores question marks and thanks at the end."""
    return Phrase(Reach.TRIMMED, _compile(pattern), lambda found, _: build(found))
