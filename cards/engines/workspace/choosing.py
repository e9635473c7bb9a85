"""Which of several files is meant: asked once, and remembered for the session.

The question holds the words that the user's wish was put in, so that it can be met
with an answer that comes when the turn that asked is gone.

Spec: engine-api.md, Asking; Ruling E15.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from cards.engine import Turn
from cards.engines.workspace.commands import (
    AppendText,
    Command,
    SayText,
    WriteFile,
)
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.locating import candidates
from cards.engines.workspace.wording import counted, in_code, shortened, unquoted

# Paths that a question offers; the user may write another one.
_OFFERED = 10
# Characters that a path may have; what the user writes may be much longer.
_PATH_CHARS = 1024
# Choices that are remembered, of all sessions together.
_REMEMBERED = 1000

# The fields of commands that name a file or a folder.
_NAME_FIELDS = frozenset({"name", "old_name", "new_name"})

_QUESTION = re.compile(
    r'Which "(?P<name>[^\n]+)" do you mean\?[^\n]*\n\nYou said: (?P<said>.+)', re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user wants done.

    Attributes:
        command: What it comes to.
        said: The words that ask for it.
        answers: What the user answered already: name → a label that was offered, or a
            path.
    """

    command: Command
    said: str
    answers: Mapping[str, str] = field(default_factory=dict)


class Chooser:
    """Makes clear which files a command means.

    Choices are kept in memory: after a restart the user is asked again. One counts
    only while its file is still among those the name may mean.

    Args:
        workspace: Where the files are.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._chosen: OrderedDict[tuple[str, str], str] = OrderedDict()

    async def clarified(self, turn: Turn, request: Request) -> Command:
        """Return the command with the path of each file in place of its name.

        A name that the user does not want to explain ends in a `SayText`.
        """
        command = request.command
        for name in names_in(command):
            path = await self._meant(turn, request, name)
            if path is None:
                return declined(name)
            command = _with_path(command, name, path)
        return command

    async def _meant(self, turn: Turn, request: Request, name: str) -> str | None:
        """Return what to use in place of a name; None when the user declined."""
        workspace = self._workspace
        found = await workspace.off_loop(candidates, workspace.disk, name)
        paths = {_label(path): path for path in found}
        answer = request.answers.get(name)
        if answer is None:
            if len(found) < 2:
                return name
            known = self._chosen.get((turn.session_id, name))
            if known in found:
                return known
            question = question_about(name, found=len(found), said=request.said)
            given = await turn.ask(question, options=list(paths)[:_OFFERED])
            if not given.approved:
                return None
            answer = answer_in(given.selected, given.custom_text)
        path = paths.get(answer, answer)
        if path in found:
            self._remember(turn.session_id, name, path)
        return path

    def _remember(self, session_id: str, name: str, path: str) -> None:
        self._chosen[session_id, name] = path
        self._chosen.move_to_end((session_id, name))
        while len(self._chosen) > _REMEMBERED:
            self._chosen.popitem(last=False)


def question_about(name: str, *, found: int, said: str) -> str:
    """Return the question which of several files a name means, as plain text.

    Args:
        name: Of the files.
        found: How many have it.
        said: The words that the user's wish was put in.
    """
    more = (
        f" {counted(found, 'entry', 'entries')} have that name; these are the first "
        f"{_OFFERED}."
        if found > _OFFERED
        else ""
    )
    return f'Which "{name}" do you mean?{more}\n\nYou said: {said}'


def asked_in(question: str) -> tuple[str, str] | None:
    """Return name and words of a `question_about`; None for any other question."""
    match = _QUESTION.fullmatch(question)
    return (match["name"], match["said"]) if match else None


def answer_in(selected: Sequence[str], custom_text: str) -> str:
    """Return the label that was chosen, else the path that was written."""
    # Words beside a choice are a remark.
    return selected[0] if selected else shortened(unquoted(custom_text), _PATH_CHARS)


def declined(name: str) -> SayText:
    """Return what to do when the user does not say which file a name means."""
    return SayText(f"All right, I leave {in_code(name)} alone: nothing was done.")


def names_in(command: Command) -> list[str]:
    """Return the names in a command that are looked for, each once."""
    if isinstance(command, WriteFile | AppendText):
        # What is written to is the path as it was given.
        return []
    names = [
        str(getattr(command, each.name))
        for each in fields(command)
        if each.name in _NAME_FIELDS
    ]
    return list(dict.fromkeys(names))


def _with_path(command: Command, name: str, path: str) -> Command:
    changes = {
        each.name: path
        for each in fields(command)
        if each.name in _NAME_FIELDS and getattr(command, each.name) == name
    }
    # The command has these fields, and they are texts.
    return replace(command, **changes)  # type: ignore[arg-type]


def _label(path: str) -> str:
    # As an option shows it: a name on disk may hold bytes that are no text.
    return path.encode("utf-8", "replace").decode().strip()
