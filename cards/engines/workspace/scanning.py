"""Going through the files of a folder, in short pieces with progress."""

from collections.abc import Callable
from enum import StrEnum

from cards.engines.workspace.disk import Disk, Entries, Entry, NotText
from cards.engines.workspace.failures import WorkspaceFailure
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.surface import Tool
from cards.engines.workspace.wording import counted


class Skipped(StrEnum):
    """Why a file was not looked into."""

    BINARY = "not text"
    LARGE = "too large"
    GONE = "could not be read"


#: Does something with one file, blocking; returns whether to go on.
Visit = Callable[[Entry], bool]


async def visit_files(
    workspace: Workspace, tool: Tool, files: Entries, visit: Visit, *, stage: str
) -> int:
    """Visit files in order until one visit says stop.

    Returns:
        How many were visited.
    """
    total = len(files.entries)
    step = max(1, -(-total // workspace.limits.progress_steps))
    visited = 0
    goes_on = True
    await tool.progress(stage, items_processed=0, items_total=total, unit="files")
    while goes_on and visited < total:
        batch = files.entries[visited : visited + step]
        count, goes_on = await workspace.off_loop(_visit_batch, batch, visit)
        visited += count
        await tool.progress(
            stage,
            progress_pct=visited / total,
            items_processed=visited,
            items_total=total,
            unit="files",
        )
    return visited


def _visit_batch(batch: tuple[Entry, ...], visit: Visit) -> tuple[int, bool]:
    for count, entry in enumerate(batch, start=1):
        if not visit(entry):
            return count, False
    return len(batch), True


def text_of(disk: Disk, entry: Entry) -> str | Skipped:
    """Return the text of a file, or why it is skipped. Blocks."""
    if entry.size_bytes > disk.limits.scan_bytes:
        return Skipped.LARGE
    try:
        return disk.read_text(entry.path, disk.limits.scan_bytes).text
    except NotText:
        return Skipped.BINARY
    except WorkspaceFailure:
        # Removed or closed to us since the walk; the others still count.
        return Skipped.GONE


def notes_on(files: Entries, skipped: list[Skipped]) -> list[str]:
    """Return what a result has to admit: files left out, and why."""
    notes = [
        f"{counted(skipped.count(reason), 'file')} left out: {reason}."
        for reason in Skipped
        if reason in skipped
    ]
    if files.is_cut:
        cap = counted(len(files.entries), "file")
        notes.append(f"The folder holds more than {cap}; the rest was left out.")
    return notes


def lines_of(text: str) -> list[str]:
    """Return the lines of a text; a line break at its end begins no new one."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines
