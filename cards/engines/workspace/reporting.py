"""The handler of `report`: counts a folder, and writes what it found into a file."""

from dataclasses import dataclass

from cards.engines.workspace.commands import ReportOn, WriteFile
from cards.engines.workspace.counting import FileCount, Tally
from cards.engines.workspace.disk import Disk, Entries
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.locating import locate
from cards.engines.workspace.replies import ToolUse, announce, perform, say
from cards.engines.workspace.scanning import (
    Skipped,
    lines_of,
    notes_on,
    text_of,
    visit_files,
)
from cards.engines.workspace.surface import Scope, Tool
from cards.engines.workspace.wording import (
    counted,
    in_code,
    named,
    shortened,
    sized,
)
from cards.engines.workspace.writing import write_file

# Rows of each table, and characters of a line in one.
_ROWS = 20
_LINE_CHARS = 80

# What marks a line as work that is left.
_MARK = "TODO"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left:
    """A line that names work that is left; `line_no` counts from 1."""

    path: str
    line_no: int
    text: str


async def report_on(scope: Scope, workspace: Workspace, command: ReportOn) -> None:
    """Write a report on a folder or file, which the user can open."""
    reports: list[tuple[str, str]] = []

    async def job(tool: Tool) -> str:
        entry = await workspace.off_loop(locate, workspace.disk, command.name)
        files = await workspace.off_loop(workspace.disk.walk, entry.path)
        files = _without_reports(files)
        tally, left = await _look(workspace, tool, files)
        text = report_text(entry.path, tally, left, notes_on(files, tally.skipped))
        tool.result(text, render_hint="code", language="markdown")
        reports.append((report_name(entry.path), text))
        return ""

    use = ToolUse(
        opening=f"Let me see what there is to report on {named(command.name)}.",
        name="Report",
        input={"path": command.name or "."},
        intent=f"report on {command.name or 'the workspace'}",
    )
    await announce(scope, use)
    answer = await perform(
        scope, use, job, heartbeat_seconds=workspace.limits.heartbeat_seconds
    )
    if not reports:
        await say(scope, answer)
        return
    name, text = reports[0]
    await write_file(scope, workspace, WriteFile(name, text))


async def _look(
    workspace: Workspace, tool: Tool, files: Entries
) -> tuple[Tally, list[_Left]]:
    tally = Tally(workspace.disk)
    await visit_files(workspace, tool, files, tally.add, stage="counting")
    left = await workspace.off_loop(_left_in, workspace.disk, files)
    return tally, left


def _without_reports(files: Entries) -> Entries:
    # A report on all of the workspace would count the last one, and grow with it.
    kept = tuple(each for each in files.entries if not _is_report(each.path))
    return Entries(entries=kept, is_cut=files.is_cut)


def _is_report(path: str) -> bool:
    return "/" not in path and (path == "report.md" or path.endswith("-report.md"))


def _left_in(disk: Disk, files: Entries) -> list[_Left]:
    """Return the lines that name work that is left, one more than are shown. Blocks."""
    found: list[_Left] = []
    for file in files.entries:
        text = text_of(disk, file)
        if isinstance(text, Skipped):
            continue
        for line_no, line in enumerate(lines_of(text), start=1):
            if _MARK in line:
                found.append(_Left(path=file.path, line_no=line_no, text=line.strip()))
                if len(found) > _ROWS:
                    return found
    return found


def report_name(path: str) -> str:
    """Return the file that a report on a path is written to, in the workspace."""
    return f"{path.replace('/', '-')}-report.md" if path else "report.md"


def report_text(path: str, tally: Tally, left: list[_Left], notes: list[str]) -> str:
    """Return the report as Markdown.

    Without dates: it changes with what it tells of.
    """
    largest = sorted(tally.counts, key=lambda count: (-count.lines, count.path))
    sections = [
        f"# Report on {named(path)}",
        f"{counted(tally.files, 'file')}, {counted(tally.lines, 'line')}, "
        f"{counted(tally.words, 'word')}, {sized(tally.size_bytes)}.",
        *notes,
    ]
    if largest:
        rows = [_row(count) for count in largest[:_ROWS]]
        sections.append("## Files\n\n" + "\n".join([*_HEAD, *rows]))
    if len(largest) > _ROWS:
        sections.append(f"And {counted(len(largest) - _ROWS, 'more file')}.")
    if left:
        lines = [
            f"- {in_code(each.path)}, line {each.line_no}: "
            f"{in_code(shortened(each.text, _LINE_CHARS))}"
            for each in left[:_ROWS]
        ]
        more = ["- and more"] if len(left) > _ROWS else []
        sections.append("## What is left to do\n\n" + "\n".join([*lines, *more]))
    return "\n\n".join(sections) + "\n"


_HEAD = ("| file | lines | words | size |", "|---|---:|---:|---:|")


def _row(count: FileCount) -> str:
    name = in_code(count.path).replace("|", r"\|")
    return f"| {name} | {count.lines:,} | {count.words:,} | {sized(count.size_bytes)} |"
