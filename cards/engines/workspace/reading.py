"""Handlers that show what is there: list, read, stream, diff."""

import difflib
from pathlib import PurePosixPath

from cards.engines.workspace.commands import (
    DiffFiles,
    ListFiles,
    ReadFile,
    StreamFile,
)
from cards.engines.workspace.disk import (
    Disk,
    Entries,
    Entry,
    EntryKind,
    NotText,
    TextFile,
)
from cards.engines.workspace.failures import WorkspaceFailure, invalid
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.limits import KIB
from cards.engines.workspace.locating import locate, locate_file
from cards.engines.workspace.replies import (
    ToolUse,
    announce,
    perform,
    reply,
    say,
    say_paced,
)
from cards.engines.workspace.scanning import lines_of
from cards.engines.workspace.surface import Scope, Tool
from cards.engines.workspace.wording import chunks_of, counted, dated, named, sized

#: Milliseconds between two chunks of a streamed file.
STREAM_PACE_MS = 20

# Entries that the answer names; the card shows all.
_NAMED_ENTRIES = 20

_LANGUAGES = {
    ".c": "c",
    ".css": "css",
    ".csv": "csv",
    ".go": "go",
    ".html": "html",
    ".java": "java",
    ".js": "javascript",
    ".json": "json",
    ".md": "markdown",
    ".py": "python",
    ".rs": "rust",
    ".sh": "bash",
    ".sql": "sql",
    ".toml": "toml",
    ".ts": "typescript",
    ".xml": "xml",
    ".yaml": "yaml",
    ".yml": "yaml",
}


async def list_files(scope: Scope, workspace: Workspace, command: ListFiles) -> None:
    """Answer with what a folder holds; a file is listed alone."""

    async def job(tool: Tool) -> str:
        entry = await workspace.off_loop(locate, workspace.disk, command.name)
        found = Entries(entries=(entry,))
        if entry.kind is EntryKind.FOLDER:
            found = await workspace.off_loop(workspace.disk.entries, entry.path)
        tool.result(
            _listing(found) or "(empty)",
            render_hint="file_info",
            file_path=entry.path or ".",
            metadata={"entries": len(found.entries), "is_cut": found.is_cut},
        )
        return _list_answer(entry, found)

    use = ToolUse(
        opening=f"Let me look into {named(command.name)}.",
        name="List",
        input={"path": command.name or "."},
        intent=f"list {command.name or 'the workspace'}",
    )
    await reply(scope, use, job, heartbeat_seconds=workspace.limits.heartbeat_seconds)


def _listing(found: Entries) -> str:
    width = max((len(_shown_name(each)) for each in found.entries), default=0)
    rows = [
        f"{_shown_name(each):{width}}  {_shown_size(each):>10}  "
        f"{dated(each.modified_at)}"
        for each in found.entries
    ]
    if found.is_cut:
        rows.append(f"(more than {len(rows)} entries; the rest is not shown)")
    return "\n".join(rows)


def _shown_name(entry: Entry) -> str:
    return f"{entry.name}/" if entry.kind is EntryKind.FOLDER else entry.name


def _shown_size(entry: Entry) -> str:
    return sized(entry.size_bytes) if entry.kind is EntryKind.FILE else "-"


def _list_answer(entry: Entry, found: Entries) -> str:
    if entry.kind is not EntryKind.FOLDER:
        return f"{named(entry.path)} is a file of {sized(entry.size_bytes)}."
    if not found.entries:
        return f"{_capital(named(entry.path))} is empty."
    folders = sum(each.kind is EntryKind.FOLDER for each in found.entries)
    files = len(found.entries) - folders
    counts = {"folder": folders, "file": files}
    count = " and ".join(counted(n, noun) for noun, n in counts.items() if n)
    more = "more than " if found.is_cut else ""
    names = "\n".join(
        f"- {named(_shown_name(each))}" for each in found.entries[:_NAMED_ENTRIES]
    )
    rest = len(found.entries) - _NAMED_ENTRIES
    tail = f"\n- and {rest:,} more, in the card above" if rest > 0 else ""
    return f"{_capital(named(entry.path))} holds {more}{count}:\n\n{names}{tail}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


async def read_file(scope: Scope, workspace: Workspace, command: ReadFile) -> None:
    """Answer with the text of a file; a folder is listed instead."""
    if await _is_folder(workspace, command.name):
        await list_files(scope, workspace, ListFiles(command.name))
        return

    async def job(tool: Tool) -> str:
        cap = workspace.limits.read_bytes
        file = await workspace.off_loop(_open_text, workspace.disk, command.name, cap)
        cut = f"\n(cut: {sized(cap)} of {sized(file.size_bytes)} shown)"
        tool.result(
            file.text + cut if file.is_cut else file.text,
            render_hint="code",
            language=language_of(file.path),
            file_path=file.path,
            metadata={"size_bytes": file.size_bytes, "is_cut": file.is_cut},
        )
        return _read_answer(file)

    use = _reading(command.name, f"Let me open {named(command.name)}.")
    await reply(scope, use, job, heartbeat_seconds=workspace.limits.heartbeat_seconds)


async def _is_folder(workspace: Workspace, name: str) -> bool:
    try:
        entry = await workspace.off_loop(locate, workspace.disk, name)
    except WorkspaceFailure:
        # The tool card that follows meets the same failure and shows it.
        return False
    return entry.kind is EntryKind.FOLDER


def _reading(name: str, opening: str) -> ToolUse:
    return ToolUse(
        opening=opening,
        name="Read",
        input={"file_path": name or "."},
        intent=f"read {name or 'the workspace'}",
    )


def _open_text(disk: Disk, name: str, cap_bytes: int) -> TextFile:
    """Return the text of the file that a name means. Blocks."""
    entry = locate_file(disk, name)
    try:
        return disk.read_text(entry.path, cap_bytes)
    except NotText as error:
        size = sized(entry.size_bytes)
        raise invalid(
            f"{named(entry.path)} is not UTF-8 text ({size}), so I cannot show it.",
            code="not_text",
        ) from error


def language_of(path: str) -> str | None:
    """Return the highlighter's name for the language of a file; None for plain text."""
    return _LANGUAGES.get(PurePosixPath(path).suffix.lower())


def _read_answer(file: TextFile) -> str:
    lines = counted(len(lines_of(file.text)), "line")
    if file.is_cut:
        return (
            f"{named(file.path)} is long ({sized(file.size_bytes)}): the card above "
            f"shows its first {lines}."
        )
    return f"{named(file.path)} has {lines} ({sized(file.size_bytes)})."


async def stream_file(scope: Scope, workspace: Workspace, command: StreamFile) -> None:
    """Recite a file in one long message, a few words at a time."""
    files: list[TextFile] = []

    async def job(tool: Tool) -> str:
        cap = workspace.limits.stream_bytes
        file = await workspace.off_loop(_open_text, workspace.disk, command.name, cap)
        size = sized(file.size_bytes)
        tool.result(f"{file.path}: {size}", render_hint="file_info")
        files.append(file)
        cut = f", only the first {sized(cap)} of it" if file.is_cut else ""
        return f"{named(file.path)} ({size}){cut}:\n\n"

    use = _reading(command.name, f"I will recite {named(command.name)}.")
    await announce(scope, use)
    answer = await perform(
        scope, use, job, heartbeat_seconds=workspace.limits.heartbeat_seconds
    )
    if not files:
        await say(scope, answer)
        return
    pace = STREAM_PACE_MS if command.pace_ms is None else command.pace_ms
    pace = min(pace, workspace.limits.pace_ms)
    await say_paced(scope, answer, chunks_of(files[0].text), pace)


async def diff_files(scope: Scope, workspace: Workspace, command: DiffFiles) -> None:
    """Answer with what differs between two files."""
    old, new = command.old_name, command.new_name

    async def job(tool: Tool) -> str:
        lines = await workspace.off_loop(_diff, workspace.disk, old, new)
        added = sum(line[0] == "+" for line in lines[2:])
        removed = sum(line[0] == "-" for line in lines[2:])
        tool.result(
            "\n".join(lines) or "(no difference)",
            render_hint="diff",
            metadata={"added": added, "removed": removed},
        )
        if not lines:
            return f"{named(old)} and {named(new)} are the same."
        return (
            f"From {named(old)} to {named(new)}, {counted(added, 'line')} came and "
            f"{counted(removed, 'line')} went."
        )

    use = ToolUse(
        opening=f"Let me compare {named(old)} with {named(new)}.",
        name="Diff",
        input={"old_path": old, "new_path": new},
        intent=f"compare {old} with {new}",
    )
    await reply(scope, use, job, heartbeat_seconds=workspace.limits.heartbeat_seconds)


def _diff(disk: Disk, old_name: str, new_name: str) -> list[str]:
    """Return a unified diff, its two header lines first; [] for equal texts."""
    old, new = (_side(disk, name) for name in (old_name, new_name))
    return list(
        difflib.unified_diff(
            lines_of(old.text), lines_of(new.text), old.path, new.path, lineterm=""
        )
    )


def _side(disk: Disk, name: str) -> TextFile:
    limits = disk.limits
    file = _open_text(disk, name, limits.diff_bytes)
    if file.is_cut or len(lines_of(file.text)) > limits.diff_lines:
        size = f"{limits.diff_bytes // KIB} KiB or {limits.diff_lines:,} lines"
        sentence = f"{named(file.path)} is larger than {size}; I compare no such files."
        raise invalid(sentence, code="too_large")
    return file
