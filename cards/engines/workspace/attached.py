"""Handler of the files that come with a message: each is looked at, none is changed."""

from collections.abc import Sequence
from contextlib import aclosing

from cards.engine import FileBlock
from cards.engines.workspace.disk import NotText, text_in
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.reading import language_of
from cards.engines.workspace.replies import ToolUse, reply, say
from cards.engines.workspace.scanning import lines_of
from cards.engines.workspace.surface import Scope, Tool
from cards.engines.workspace.wording import counted, in_code, sized


async def look_at_files(
    scope: Scope, workspace: Workspace, files: Sequence[FileBlock]
) -> None:
    """Show the text of each file, or what it is if it is none."""
    most = workspace.limits.attached_files
    for file in files[:most]:
        await _look_at(scope, workspace, file)
    if len(files) > most:
        rest = "\n".join(f"- {_described(file)}" for file in files[most:])
        await say(scope, f"I look at {most} files of a message. The others:\n\n{rest}")


async def _look_at(scope: Scope, workspace: Workspace, file: FileBlock) -> None:
    cap = workspace.limits.read_bytes

    async def job(tool: Tool) -> str:
        content = await _beginning(file, cap + 1)
        is_cut = len(content) > cap
        try:
            text = text_in(content[:cap], is_cut=is_cut)
        except NotText:
            kind = f"{file.mime_type}, {sized(file.size_bytes)}"
            tool.result(kind, render_hint="file_info", file_path=file.name)
            return f"{_described(file)}."
        tool.result(
            text,
            render_hint="code",
            language=language_of(file.name),
            file_path=file.name,
            metadata={"size_bytes": file.size_bytes, "is_cut": is_cut},
        )
        shown = f"; the card above shows its first {sized(cap)}" if is_cut else ""
        count = counted(len(lines_of(text)), "line")
        has = "" if is_cut else f" with {count}"
        return f"{_described(file)}{has}{shown}."

    use = ToolUse(
        opening=f"Let me look at {in_code(file.name)}.",
        name="Read",
        input={"artifact_id": file.artifact.artifact_id, "name": file.name},
        intent=f"read {file.name}",
    )
    await reply(scope, use, job, heartbeat_seconds=workspace.limits.heartbeat_seconds)


def _described(file: FileBlock) -> str:
    return f"{in_code(file.name)} is {file.mime_type} of {sized(file.size_bytes)}"


async def _beginning(file: FileBlock, size: int) -> bytes:
    content = bytearray()
    async with aclosing(file.chunks()) as chunks:
        async for chunk in chunks:
            content += chunk
            if len(content) >= size:
                break
    return bytes(content[:size])
