"""Handlers that change files: write and append."""

from collections.abc import Mapping

from cards.engines.workspace.asking import Permission
from cards.engines.workspace.commands import AppendText, WriteFile
from cards.engines.workspace.disk import Disk, Entry, EntryKind
from cards.engines.workspace.failures import WorkspaceFailure
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.limits import KIB
from cards.engines.workspace.replies import ToolUse, reply
from cards.engines.workspace.surface import Scope, Tool
from cards.engines.workspace.wording import named, sized

# Characters of the content that a tool's input shows.
_SHOWN_CHARS = 4 * KIB


async def write_file(scope: Scope, workspace: Workspace, command: WriteFile) -> None:
    """Write a new file; an existing one only if the user allows that."""
    disk = workspace.disk
    existing = await workspace.off_loop(_existing, disk, command.name)
    verb = "write" if existing is None else "overwrite"

    async def job(tool: Tool) -> str:
        entry = await workspace.off_loop(
            disk.write_text,
            command.name,
            command.content,
            overwrite=existing is not None,
        )
        size = sized(entry.size_bytes)
        tool.result(
            f"{entry.path}: {size} written",
            render_hint="file_info",
            file_path=entry.path,
            metadata={"size_bytes": entry.size_bytes},
        )
        return f"{named(entry.path)} is written: {size}."

    use = ToolUse(
        opening=f"I will {verb} {named(command.name)}.",
        name="Write",
        input=_shown_input(command.name, command.content),
        intent=f"{verb} {command.name}",
        permission=None
        if existing is None or command.is_allowed
        else Permission(
            # All of it: what is allowed is what will be written.
            input={"file_path": command.name, "content": command.content},
            message=f"This replaces {existing.path}, which holds"
            f" {sized(existing.size_bytes)}.",
        ),
    )
    await reply(scope, use, job, heartbeat_seconds=workspace.limits.heartbeat_seconds)


def _existing(disk: Disk, name: str) -> Entry | None:
    """Return the file that a write would replace; blocks."""
    try:
        entry = disk.entry(name)
    except WorkspaceFailure:
        # The write will say why.
        return None
    return entry if entry is not None and entry.kind is EntryKind.FILE else None


async def append_text(scope: Scope, workspace: Workspace, command: AppendText) -> None:
    """Put text at the end of a file, which is made when it is missing."""

    async def job(tool: Tool) -> str:
        entry, is_new = await workspace.off_loop(
            workspace.disk.append_text, command.name, command.content
        )
        size = sized(entry.size_bytes)
        tool.result(
            f"{entry.path}: {size} after appending",
            render_hint="file_info",
            file_path=entry.path,
            metadata={"size_bytes": entry.size_bytes, "is_new": is_new},
        )
        if is_new:
            return f"{named(entry.path)} did not exist, so I made it: {size}."
        return f"The text is at the end of {named(entry.path)}, which has {size} now."

    use = ToolUse(
        opening=f"I will add that to {named(command.name)}.",
        name="Append",
        input=_shown_input(command.name, command.content),
        intent=f"append to {command.name}",
    )
    await reply(scope, use, job, heartbeat_seconds=workspace.limits.heartbeat_seconds)


def _shown_input(name: str, content: str) -> Mapping[str, object]:
    """Return the input of a write, without the end of a long content."""
    if len(content) <= _SHOWN_CHARS:
        return {"file_path": name, "content": content}
    return {
        "file_path": name,
        "content": f"{content[:_SHOWN_CHARS]}…",
        "content_chars": len(content),
    }
