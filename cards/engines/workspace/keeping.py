"""Files that were written are kept for the user too: each change is a version."""

from cards.engine import EngineError
from cards.engines.workspace.disk import Entry
from cards.engines.workspace.failures import WorkspaceFailure
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.surface import Scope


def kept_name(path: str) -> str:
    """Return the name that a file is kept under: its path without slashes.

    Files of the same name in two folders are two files.
    """
    return path.replace("/", "-")


async def keep(scope: Scope, workspace: Workspace, entry: Entry) -> str:
    """Keep what a file holds now; return a sentence that says where it can be opened.

    The file itself is written already, whatever becomes of this.
    """
    disk = workspace.disk
    try:
        content = await workspace.off_loop(disk.read_bytes, entry.path)
        kept = await scope.artifact(
            kept_name(entry.path),
            content,
            description=f"{entry.path} in the workspace",
        )
    except WorkspaceFailure as failure:
        return f"It cannot be opened here. {failure.sentence}"
    except EngineError as error:
        return f"It cannot be opened here: {error.error.user_message}"
    version = f" (version {kept.version})" if kept.version > 1 else ""
    return f"You can open it here: {kept.name}{version}"
