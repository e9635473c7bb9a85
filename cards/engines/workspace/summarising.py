"""The handler of `summarise`: one sub-agent for each subfolder, all at once.

Spec: EMIT 14.3.
"""

import asyncio
from dataclasses import dataclass

from cards.engines.workspace.commands import SummariseFolder
from cards.engines.workspace.counting import count_into
from cards.engines.workspace.disk import Disk, Entry, EntryKind
from cards.engines.workspace.failures import WorkspaceFailure
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.locating import locate_folder
from cards.engines.workspace.replies import Job, ToolUse, perform, reply, say
from cards.engines.workspace.scanning import Skipped, lines_of, text_of
from cards.engines.workspace.surface import Agent, Scope, Tool
from cards.engines.workspace.wording import counted, in_code, named, shortened

# Files of a folder whose beginning is shown, and characters of each beginning.
_HEADS = 5
_HEAD_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What one sub-agent brings home."""

    path: str
    report: str
    is_done: bool


async def summarise(
    scope: Scope, workspace: Workspace, command: SummariseFolder
) -> None:
    """Answer with what a folder holds, told by one sub-agent for each subfolder."""

    async def job(tool: Tool) -> str:
        return await _summarise(scope, workspace, tool, command.name)

    use = ToolUse(
        opening=f"I will send somebody into every folder of {named(command.name)}.",
        name="Summarise",
        input={"path": command.name or "."},
        intent=f"summarise {command.name or 'the workspace'}",
    )
    await reply(scope, use, job, heartbeat_seconds=workspace.limits.heartbeat_seconds)


async def _summarise(scope: Scope, workspace: Workspace, tool: Tool, name: str) -> str:
    disk = workspace.disk
    folder = await workspace.off_loop(locate_folder, disk, name)
    listed = await workspace.off_loop(disk.entries, folder.path)
    subfolders = [each for each in listed.entries if each.kind is EntryKind.FOLDER]
    files = [each for each in listed.entries if each.kind is EntryKind.FILE]
    sent = subfolders[: workspace.limits.agents]
    parts = await _send_agents(scope, workspace, tool, sent)
    own = await workspace.off_loop(_heads, disk, files[:_HEADS])
    left_out = len(subfolders) - len(sent)
    report = _report(folder, parts, files, own, left_out)
    failed = sum(not part.is_done for part in parts)
    tool.result(
        report,
        metadata={"agents": len(parts), "failed": failed, "left_out": left_out},
    )
    if failed:
        raise WorkspaceFailure(
            "dependency_fail",
            f"{counted(failed, 'folder')} of {len(parts)} could not be summarised.\n\n"
            f"{report}",
            code="agent_failed",
        )
    return report


async def _send_agents(
    scope: Scope, workspace: Workspace, tool: Tool, folders: list[Entry]
) -> list[_Part]:
    """Run one sub-agent for each folder at once; the parts come in folder order."""
    done = 0

    async def send(folder: Entry) -> _Part:
        nonlocal done
        part = await _visit(scope, workspace, folder)
        done += 1
        await tool.progress(
            "summarising",
            progress_pct=done / len(folders),
            items_processed=done,
            items_total=len(folders),
            unit="folders",
        )
        return part

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(send(folder)) for folder in folders]
    return [task.result() for task in tasks]


async def _visit(scope: Scope, workspace: Workspace, folder: Entry) -> _Part:
    """Send one sub-agent into a folder; its failure is its own and ends no other."""
    try:
        async with scope.agent(
            folder.name,
            task_prompt=f"Say what is in {named(folder.path)}.",
            subagent_type="folder_reader",
        ) as agent:
            report = await _explore(agent, workspace, folder)
            agent.finish(output_summary=report, num_turns=1)
    except WorkspaceFailure as failure:
        return _Part(path=folder.path, report=failure.sentence, is_done=False)
    return _Part(path=folder.path, report=report, is_done=True)


async def _explore(agent: Agent, workspace: Workspace, folder: Entry) -> str:
    files = await workspace.off_loop(workspace.disk.walk, folder.path)

    async def count(tool: Tool) -> str:
        return await count_into(workspace, tool, files, place=folder.path)

    async def read_heads(tool: Tool) -> str:
        chosen = files.entries[:_HEADS]
        heads = await workspace.off_loop(_heads, workspace.disk, list(chosen))
        tool.result("\n".join(heads) or "(no files)", render_hint="file_info")
        return "\n".join(heads)

    size = await _use(agent, workspace, "Count", folder, count)
    heads = await _use(agent, workspace, "Heads", folder, read_heads)
    report = f"{size}\n\n{heads}" if heads else size
    await say(agent, report)
    return report


async def _use(
    agent: Agent, workspace: Workspace, name: str, folder: Entry, job: Job
) -> str:
    use = ToolUse(
        opening="",
        name=name,
        input={"path": folder.path},
        intent=f"{name.lower()} of {folder.path}",
    )
    return await perform(
        agent, use, job, heartbeat_seconds=workspace.limits.heartbeat_seconds
    )


def _heads(disk: Disk, files: list[Entry]) -> list[str]:
    """Return one line of Markdown for each file: its name and how it begins. Blocks."""
    return [f"- {in_code(file.path)}: {_head(disk, file)}" for file in files]


def _head(disk: Disk, file: Entry) -> str:
    text = text_of(disk, file)
    if isinstance(text, Skipped):
        return str(text)
    first = next((line.strip() for line in lines_of(text) if line.strip()), "")
    return in_code(shortened(first, _HEAD_CHARS)) if first else "empty"


def _report(
    folder: Entry,
    parts: list[_Part],
    files: list[Entry],
    heads: list[str],
    left_out: int,
) -> str:
    count = f"{counted(len(parts) + left_out, 'folder')} and "
    head = f"In {named(folder.path)} there are {count}{counted(len(files), 'file')}."
    sections = [f"**{part.path}/**\n\n{part.report}" for part in parts]
    if heads:
        rest = len(files) - len(heads)
        more = f"\n- and {counted(rest, 'more file')}" if rest else ""
        sections.append("**Files beside them**\n\n" + "\n".join(heads) + more)
    if left_out:
        sections.append(f"{counted(left_out, 'folder')} more were left out.")
    return "\n\n".join([head, *sections])
