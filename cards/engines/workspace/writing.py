"""Handlers that change files: write and append."""

from collections.abc import Mapping

from cards.engines.workspace.commands import AppendText, WriteFile
from cards.engines.workspace.disk import Disk, Entry
from cards.engines.workspace.failures import changed
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.keeping import keep
from cards.engines.workspace.limits import KIB
from cards.engines.workspace.permitting import Permission
from cards.engines.workspace.replies import ToolUse, reply
from cards.engines.workspace.scanning import Skipped, lines_of, text_of
from cards.engines.workspace.surface import Scope, Tool
from cards.engines.workspace.wording import counted, named, shortened, sized, timed

# Characters of the content that a tool's input shows.
_SHOWN_CHARS = 4 * KIB
# Lines that a question shows of what would be lost, and characters of each.
_LOST_LINES = 5
_LOST_CHARS = 100


async def write_file(scope: Scope, workspace: Workspace, command: WriteFile) -> None:
    """Write a new file; an existing one only if the user allows that."""
    disk = workspace.disk
    replaced: Entry | None = None

    async def look() -> Permission | None:
        nonlocal replaced
        replaced = await workspace.off_loop(
            disk.replaced_by, command.name, command.content
        )
        if replaced is None:
            return None
        loss = await workspace.off_loop(_loss, disk, replaced)
        if command.allowed is None:
            # All of the content: what is allowed is what will be written.
            call = {"file_path": replaced.path, "content": command.content}
            return Permission(input=call, message=loss)
        if command.allowed != loss:
            raise changed(replaced.path)
        return None

    async def job(tool: Tool) -> str:
        entry = await workspace.off_loop(
            disk.write_text, command.name, command.content, replaces=replaced
        )
        size = sized(entry.size_bytes)
        tool.result(
            f"{entry.path}: {size} written",
            render_hint="file_info",
            file_path=entry.path,
            metadata={"size_bytes": entry.size_bytes},
        )
        return (
            f"{named(entry.path)} is written: {size}. "
            f"{await keep(scope, workspace, entry)}"
        )

    use = ToolUse(
        opening=f"I will write {named(command.name)}.",
        name="Write",
        input=_shown_input(command.name, command.content),
        intent=f"write {command.name}",
        look=look,
    )
    await reply(scope, use, job, heartbeat_seconds=workspace.limits.heartbeat_seconds)


def _loss(disk: Disk, file: Entry) -> str:
    """Return what is lost when a file is replaced, as plain text. Blocks.

    Another text stands for another file: a late answer counts only while it is the
    same.
    """
    text = text_of(disk, file)
    is_text = not isinstance(text, Skipped)
    lines = lines_of(text) if is_text else []
    size = sized(file.size_bytes)
    what = f"{size}, {counted(len(lines), 'line') if is_text else text}"
    head = (
        f'This replaces "{file.path}", which is lost then: {what}, last changed '
        f"{timed(file.modified_at)}."
    )
    filled = [line for line in lines if line.strip()]
    if not filled:
        return head
    shown = [shortened(line, _LOST_CHARS) for line in filled[:_LOST_LINES]]
    more = ["…"] if len(filled) > _LOST_LINES else []
    return "\n".join([f"{head} It begins:", "", *shown, *more])


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
        kept = await keep(scope, workspace, entry)
        if is_new:
            return f"{named(entry.path)} did not exist, so I made it: {size}. {kept}"
        return (
            f"The text is at the end of {named(entry.path)}, which has {size} now. "
            f"{kept}"
        )

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
