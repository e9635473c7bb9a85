"""From the name a user wrote to the one file or folder that is meant. Blocks."""

import difflib
from pathlib import PurePosixPath

from cards.engines.workspace.disk import Disk, Entry, EntryKind
from cards.engines.workspace.failures import WorkspaceFailure, invalid

# How many candidates an answer lists.
_SHOWN = 10


def locate(disk: Disk, name: str) -> Entry:
    """Return the file or folder that `name` means.

    The path itself wins. Otherwise a bare name is looked for everywhere, in any case
    and with or without its suffix, and has to be the only one of its sort.

    Raises:
        WorkspaceFailure: Nothing has the name (near ones are proposed), several have
            it (all are listed), or it leads outside.
    """
    exact = disk.entry(name)
    if exact is not None:
        return exact
    found = _matching(disk, name)
    if len(found) == 1:
        return found[0]
    if found:
        raise _ambiguous(name, found)
    raise _missing(disk, name)


def candidates(disk: Disk, name: str) -> list[str]:
    """Return the paths that a name may mean, in order.

    None where `locate` fails: it says why.
    """
    try:
        exact = disk.entry(name)
        found = [exact] if exact is not None else _matching(disk, name)
    except WorkspaceFailure:
        return []
    return [entry.path for entry in found]


def locate_file(disk: Disk, name: str) -> Entry:
    """Return the file that `name` means.

    Raises:
        WorkspaceFailure: As `locate`, or the name means a folder.
    """
    entry = locate(disk, name)
    if entry.kind is not EntryKind.FILE:
        sentence = f"`{entry.path or 'The workspace'}` is a folder, not a file."
        raise invalid(sentence, code="not_a_file")
    return entry


def locate_folder(disk: Disk, name: str) -> Entry:
    """Return the folder that `name` means.

    Raises:
        WorkspaceFailure: As `locate`, or the name means a file.
    """
    entry = locate(disk, name)
    if entry.kind is not EntryKind.FOLDER:
        raise invalid(f"`{entry.path}` is a file, not a folder.", code="not_a_folder")
    return entry


def _matching(disk: Disk, name: str) -> list[Entry]:
    """Return the entries of that name in the workspace's root, else those anywhere."""
    wanted = name.rstrip("/").lower()
    if not wanted or "/" in wanted:
        return []
    for scope in (disk.entries("").entries, _everything(disk)):
        for key in (_whole_name, _stem):
            found = [entry for entry in scope if key(entry) == wanted]
            if found:
                return found
    return []


def _everything(disk: Disk) -> tuple[Entry, ...]:
    files = disk.walk("").entries
    paths = {
        str(parent)
        for file in files
        for parent in PurePosixPath(file.path).parents
        if parent.parts
    }
    folders = (disk.entry(path) for path in sorted(paths))
    return (*files, *(folder for folder in folders if folder is not None))


def _whole_name(entry: Entry) -> str:
    return entry.name.lower()


def _stem(entry: Entry) -> str:
    return PurePosixPath(entry.name).stem.lower()


def _ambiguous(name: str, found: list[Entry]) -> WorkspaceFailure:
    lines = "\n".join(f"- `{entry.path}`" for entry in found[:_SHOWN])
    rest = len(found) - _SHOWN
    more = f"\n- and {rest} more" if rest > 0 else ""
    return invalid(
        f"`{name}` could be any of these; say which with its folder:\n\n{lines}{more}",
        code="ambiguous_name",
    )


def _missing(disk: Disk, name: str) -> WorkspaceFailure:
    known = {entry.path.lower(): entry.path for entry in _everything(disk)}
    known |= {path.rpartition("/")[2].lower(): path for path in known.values()}
    near = difflib.get_close_matches(name.lower(), list(known), n=3, cutoff=0.6)
    paths = sorted({known[each] for each in near})
    hint = f" Did you mean {' or '.join(f'`{path}`' for path in paths)}?"
    return invalid(
        f"There is no `{name}` in the workspace.{hint if paths else ''}",
        code="not_found",
    )
