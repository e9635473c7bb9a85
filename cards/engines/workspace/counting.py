"""The handler of `count`, and the tally it shares with `summarise`."""

from dataclasses import dataclass

from cards.engines.workspace.commands import CountLines
from cards.engines.workspace.disk import Disk, Entries, Entry
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.locating import locate
from cards.engines.workspace.replies import ToolUse, reply
from cards.engines.workspace.scanning import (
    Skipped,
    lines_of,
    notes_on,
    text_of,
    visit_files,
)
from cards.engines.workspace.surface import Scope, Tool
from cards.engines.workspace.wording import counted, named, sized

# Rows of a tally that are shown; the total counts all.
_SHOWN_ROWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCount:
    """What one text file holds."""

    path: str
    lines: int
    words: int
    size_bytes: int


class Tally:
    """Counts of files, added one by one.

    Attributes:
        counts: Of the text files, in order.
        skipped: Of the others, why.
        size_bytes: Of all of them.
    """

    def __init__(self, disk: Disk) -> None:
        self.counts: list[FileCount] = []
        self.skipped: list[Skipped] = []
        self.size_bytes = 0
        self._disk = disk

    @property
    def files(self) -> int:
        """How many files were added, counted or skipped."""
        return len(self.counts) + len(self.skipped)

    @property
    def lines(self) -> int:
        """Lines of all text files."""
        return sum(count.lines for count in self.counts)

    @property
    def words(self) -> int:
        """Words of all text files."""
        return sum(count.words for count in self.counts)

    def add(self, file: Entry) -> bool:
        """Count one file; a `Visit`. Blocks."""
        self.size_bytes += file.size_bytes
        text = text_of(self._disk, file)
        if isinstance(text, Skipped):
            self.skipped.append(text)
        else:
            self.counts.append(
                FileCount(
                    path=file.path,
                    lines=len(lines_of(text)),
                    words=len(text.split()),
                    size_bytes=file.size_bytes,
                )
            )
        return True

    def table(self, notes: list[str]) -> str:
        """Return the counts as a table for a terminal, with the notes below."""
        rows = [
            f"{count.lines:>9,} {count.words:>9,} {count.size_bytes:>11,}  {count.path}"
            for count in self.counts[:_SHOWN_ROWS]
        ]
        rest = len(self.counts) - _SHOWN_ROWS
        if rest > 0:
            rows.append(f"({counted(rest, 'more file')}, counted but not shown)")
        head = f"{'lines':>9} {'words':>9} {'bytes':>11}"
        total = f"{self.lines:>9,} {self.words:>9,} {self.size_bytes:>11,}  total"
        return "\n".join([head, *rows, total, *(f"({note})" for note in notes)])


async def count_lines(scope: Scope, workspace: Workspace, command: CountLines) -> None:
    """Answer with the lines, words and bytes of a file or folder."""

    async def job(tool: Tool) -> str:
        entry = await workspace.off_loop(locate, workspace.disk, command.name)
        files = await workspace.off_loop(workspace.disk.walk, entry.path)
        return await count_into(workspace, tool, files, place=entry.path)

    use = ToolUse(
        opening=f"Let me count what is in {named(command.name)}.",
        name="Count",
        input={"path": command.name or "."},
        intent=f"count lines of {command.name or 'the workspace'}",
    )
    await reply(scope, use, job, heartbeat_seconds=workspace.limits.heartbeat_seconds)


async def count_into(
    workspace: Workspace, tool: Tool, files: Entries, *, place: str
) -> str:
    """Count files, make the counts the result of `tool`, return them as a sentence."""
    tally = Tally(workspace.disk)
    await visit_files(workspace, tool, files, tally.add, stage="counting")
    notes = notes_on(files, tally.skipped)
    tool.result(
        tally.table(notes),
        render_hint="file_info",
        metadata={
            "files": tally.files,
            "lines": tally.lines,
            "words": tally.words,
            "size_bytes": tally.size_bytes,
        },
    )
    where = named(place)
    admitted = "".join(f" {note}" for note in notes)
    return (
        f"{where[:1].upper()}{where[1:]} has {counted(tally.files, 'file')} with "
        f"{counted(tally.lines, 'line')}, {counted(tally.words, 'word')} and "
        f"{sized(tally.size_bytes)}.{admitted}"
    )
