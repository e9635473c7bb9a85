"""Handlers that only talk: help, a text that is no command, counting aloud, a word."""

from cards.engines.workspace.commands import (
    CountTo,
    Help,
    SayText,
    TooLong,
    Unknown,
)
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.manual import help_text
from cards.engines.workspace.replies import say, say_paced
from cards.engines.workspace.surface import Scope
from cards.engines.workspace.wording import counted, in_code, shortened

#: Milliseconds between two numbers.
COUNT_PACE_MS = 50

# Characters of an unknown text that are quoted back.
_QUOTED_CHARS = 80
# Numbers in one line of a count.
_ROW = 10


async def give_help(scope: Scope, workspace: Workspace, command: Help) -> None:
    """Say what the engine can do."""
    del workspace, command
    await say(scope, help_text())


async def not_understood(scope: Scope, workspace: Workspace, command: Unknown) -> None:
    """Say that the text is no command, and what comes near it."""
    del workspace
    quoted = in_code(shortened(" ".join(command.text.split()), _QUOTED_CHARS))
    usages = "\n".join(f"- `{usage}`" for usage in command.suggestions)
    await say(
        scope,
        f"I did not understand {quoted}. I only know a few commands and plain ways "
        f"to say them. Perhaps:\n\n{usages}\n\n`help` shows all of them.",
    )


async def refuse_long(scope: Scope, workspace: Workspace, command: TooLong) -> None:
    """Say that the text is longer than any command."""
    del workspace
    chars = counted(command.chars, "character")
    await say(
        scope,
        f"That has {chars}, and a command at most {command.limit:,}: nothing was done. "
        "Only the text behind `write FILE:` and `append FILE:` may be longer.",
    )


async def say_text(scope: Scope, workspace: Workspace, command: SayText) -> None:
    """Say what there is to say."""
    del workspace
    await say(scope, command.text)


async def count_to(scope: Scope, workspace: Workspace, command: CountTo) -> None:
    """Say the numbers from 1 to a limit, one chunk each, at a pace."""
    limits = workspace.limits
    if not 1 <= command.limit <= limits.count_to:
        most = counted(limits.count_to, "number")
        await say(scope, f"I count from 1, and at most {most} in one answer.")
        return
    pace = COUNT_PACE_MS if command.pace_ms is None else command.pace_ms
    chunks = [
        f"{number}{' ' if number % _ROW else chr(10)}"
        for number in range(1, command.limit + 1)
    ]
    await say_paced(scope, "", chunks, min(pace, limits.pace_ms))
