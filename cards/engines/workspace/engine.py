"""The built-in engine: parse the text, hand the command to its handler."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from cards.engine import Engine, FileBlock, Turn
from cards.engines.workspace.attached import look_at_files
from cards.engines.workspace.choosing import Chooser, Request
from cards.engines.workspace.commands import (
    AppendText,
    Command,
    CountLines,
    CountTo,
    DiffFiles,
    Help,
    ListFiles,
    ReadFile,
    ReportOn,
    RunProgram,
    SayText,
    SearchText,
    StreamFile,
    SummariseFolder,
    TooLong,
    Unknown,
    WriteFile,
)
from cards.engines.workspace.continuing import request_in
from cards.engines.workspace.counting import count_lines
from cards.engines.workspace.drafts import fill_once
from cards.engines.workspace.examples import example_files
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.phrases import parse
from cards.engines.workspace.reading import (
    diff_files,
    list_files,
    read_file,
    stream_file,
)
from cards.engines.workspace.reporting import report_on
from cards.engines.workspace.running import run_line
from cards.engines.workspace.searching import search_text
from cards.engines.workspace.summarising import summarise
from cards.engines.workspace.talking import (
    count_to,
    give_help,
    not_understood,
    refuse_long,
    say_text,
)
from cards.engines.workspace.wording import title_of
from cards.engines.workspace.writing import append_text, write_file

# The key fixes the type of the last argument; a mapping cannot say so.
_Handler = Callable[[Turn, Workspace, Any], Awaitable[None]]

HANDLERS: Mapping[type[Command], _Handler] = {
    Help: give_help,
    ListFiles: list_files,
    ReadFile: read_file,
    StreamFile: stream_file,
    SearchText: search_text,
    CountLines: count_lines,
    CountTo: count_to,
    WriteFile: write_file,
    AppendText: append_text,
    DiffFiles: diff_files,
    RunProgram: run_line,
    SummariseFolder: summarise,
    ReportOn: report_on,
    Unknown: not_understood,
    TooLong: refuse_long,
    SayText: say_text,
}


def workspace_root() -> Path:
    """Return the folder the engine works on, from the settings."""
    data_dir: Path = settings.CARDWIRE_DATA_DIR
    return data_dir / "workspace"


class WorkspaceEngine(Engine):
    """Works on the files of the data dir's workspace, without a model."""

    model = "workspace"

    def __init__(self) -> None:
        self._workspace = Workspace(workspace_root())
        self._chooser = Chooser(self._workspace)

    async def run(self, turn: Turn) -> None:
        """Answer one user message, or go on with an answer that came late.

        See `manual.MANUAL` for what is understood. Of a message with files these are
        looked at, and the words beside them are none of the commands.
        """
        text = turn.input.text
        if turn.turn_no == 1:
            await turn.set_title(title_of(text))
        root = self._workspace.disk.root
        await self._workspace.off_loop(fill_once, root, example_files())
        told = turn.input.continuation
        files = [each for each in turn.input.blocks if isinstance(each, FileBlock)]
        if files and told is None:
            await look_at_files(turn, self._workspace, files)
            return
        request = (
            Request(command=parse(text), said=text)
            if told is None
            else request_in(told)
        )
        command = await self._chooser.clarified(turn, request)
        await HANDLERS[type(command)](turn, self._workspace, command)
