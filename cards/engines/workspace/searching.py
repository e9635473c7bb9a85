"""The handler of `search`."""

from cards.engines.workspace.commands import SearchText
from cards.engines.workspace.disk import Entry
from cards.engines.workspace.failures import invalid
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.locating import locate
from cards.engines.workspace.replies import ToolUse, reply
from cards.engines.workspace.scanning import Skipped, notes_on, text_of, visit_files
from cards.engines.workspace.surface import Scope, Tool
from cards.engines.workspace.text_search import TextSearch
from cards.engines.workspace.wording import counted, in_code, named, shortened

# Hits that the answer names, and characters of each; the card shows all.
_NAMED_HITS = 10
_NAMED_CHARS = 100


async def search_text(scope: Scope, workspace: Workspace, command: SearchText) -> None:
    """Answer with the lines that hold a text."""

    async def job(tool: Tool) -> str:
        return await _search(workspace, tool, command)

    what = in_code(command.pattern) if command.pattern else "nothing"
    use = ToolUse(
        opening=f"Let me look for {what} in {named(command.name)}.",
        name="Search",
        input={"pattern": command.pattern, "path": command.name or "."},
        # Shown as it is, not as Markdown.
        intent=f"search {command.name or 'the workspace'} for "
        f"{command.pattern or 'nothing'}",
    )
    await reply(scope, use, job, heartbeat_seconds=workspace.limits.heartbeat_seconds)


async def _search(workspace: Workspace, tool: Tool, command: SearchText) -> str:
    if not command.pattern:
        raise invalid(
            "I need a text to look for: every line holds the empty one.",
            code="empty_pattern",
        )
    disk = workspace.disk
    entry = await workspace.off_loop(locate, disk, command.name)
    files = await workspace.off_loop(disk.walk, entry.path)
    search = TextSearch(command.pattern, workspace.limits)
    skipped: list[Skipped] = []

    def visit(file: Entry) -> bool:
        text = text_of(disk, file)
        if isinstance(text, Skipped):
            skipped.append(text)
        else:
            search.look_into(file.path, text)
        return not search.is_full

    visited = await visit_files(workspace, tool, files, visit, stage="searching")
    notes = notes_on(files, skipped)
    if search.is_full:
        notes.append(
            f"Stopped after {counted(len(search.hits), 'match', 'matches')}, in file "
            f"{visited:,} of {len(files.entries):,}; there are more."
        )
    tool.result(
        "\n".join([*search.output, *(f"({note})" for note in notes)]) or "(no match)",
        render_hint="search",
        metadata={
            "hits": len(search.hits),
            "files_searched": visited - len(skipped),
            "is_cut": search.is_full or files.is_cut,
        },
    )
    return _answer(command, search, visited - len(skipped), notes)


def _answer(
    command: SearchText, search: TextSearch, searched: int, notes: list[str]
) -> str:
    pattern = in_code(command.pattern)
    looked = f"I looked into {counted(searched, 'file')} in {named(command.name)}."
    admitted = "".join(f"\n\n{note}" for note in notes)
    if not search.hits:
        return f"No match for {pattern}. {looked}{admitted}"
    files = len({hit.path for hit in search.hits})
    first = "\n".join(
        f"- `{hit.path}:{hit.line_no}` "
        f"{in_code(shortened(hit.line.strip(), _NAMED_CHARS))}"
        for hit in search.hits[:_NAMED_HITS]
    )
    rest = len(search.hits) - _NAMED_HITS
    tail = f"\n- and {rest:,} more, in the card above" if rest > 0 else ""
    found = counted(len(search.hits), "match", "matches")
    head = f"Found {found} for {pattern} in {counted(files, 'file')}. {looked}"
    return f"{head}\n\n{first}{tail}{admitted}"
