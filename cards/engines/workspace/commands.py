"""What a user can ask for: one frozen dataclass per command, without behaviour.

A name is the path as the user wrote it, relative to the workspace; "" is the workspace
itself. Nothing here was checked against the disk.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Help:
    """Say what the engine can do."""


@dataclass(frozen=True, slots=True)
class ListFiles:
    """List one folder."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Show one file; a folder is listed."""

    name: str


@dataclass(frozen=True, slots=True)
class StreamFile:
    """Recite one file word by word."""

    name: str
    #: Milliseconds between two chunks; None for the usual pace.
    pace_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CountTo:
    """Say the numbers from 1 to `limit`, one chunk each."""

    limit: int
    #: Milliseconds between two numbers; None for the usual pace.
    pace_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SearchText:
    """Find the lines that hold `pattern`, in any case, literally."""

    pattern: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class CountLines:
    """Count lines, words and bytes of a file or of every file in a folder."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Write a file; an existing one only if the user allows that."""

    name: str
    content: str
    #: What the user has allowed to replace, in the words that showed it; None when
    #: nobody was asked.
    allowed: str | None = None


@dataclass(frozen=True, slots=True)
class AppendText:
    """Put text behind the last line of a file, which is made when it is missing."""

    name: str
    content: str


@dataclass(frozen=True, slots=True)
class DiffFiles:
    """Show what changed from `old_name` to `new_name`."""

    old_name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class RunProgram:
    """Run one program of the allow-list; `line` is split like a shell splits words."""

    line: str
    #: Whether the user has allowed it.
    is_allowed: bool = False


@dataclass(frozen=True, slots=True)
class SummariseFolder:
    """Summarise a folder, one sub-agent for each subfolder."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class ReportOn:
    """Write a report on a file or folder into a file."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A text that is no command; `suggestions` are usages that come near it."""

    text: str
    suggestions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TooLong:
    """A text that is longer than any command."""

    #: Characters that it has, and that a command may have.
    chars: int
    limit: int


@dataclass(frozen=True, slots=True)
class SayText:
    """Nothing is to be done but to say this."""

    text: str


Command = (
    Help
    | ListFiles
    | ReadFile
    | StreamFile
    | CountTo
    | SearchText
    | CountLines
    | WriteFile
    | AppendText
    | DiffFiles
    | RunProgram
    | SummariseFolder
    | ReportOn
    | Unknown
    | TooLong
    | SayText
)
