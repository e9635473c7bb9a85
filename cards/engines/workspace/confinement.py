"""Names that cannot leave the workspace, and folders opened without following links.

Every step of a path is opened by descriptor with O_NOFOLLOW, so that no link leads
outside, not even one that is put there while we look.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from cards.engines.workspace.failures import denied, invalid, link_refused

# Bytes of a path and of one of its parts; what Linux file systems take.
_PATH_BYTES = 1024
_PART_BYTES = 255

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def is_outside(name: str) -> bool:
    """Return whether a name is absolute or climbs with `..`."""
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts


def parts_of(name: str) -> tuple[str, ...]:
    """Return the parts of a name inside the workspace; () for the workspace itself.

    Raises:
        WorkspaceFailure: The name leads outside, or no file system could hold it.
    """
    if is_outside(name):
        raise denied(
            f"`{name}` is outside the workspace. Names are relative to it, without "
            "`..`.",
            code="outside_workspace",
        )
    parts = PurePosixPath(name).parts
    if not _is_possible(parts):
        raise invalid(
            "That is no name a file can have: it is too long, or holds characters "
            "that names cannot hold.",
            code="bad_name",
        )
    return parts


def _is_possible(parts: tuple[str, ...]) -> bool:
    if any(
        character < " " or character == "\x7f" for part in parts for character in part
    ):
        return False
    try:
        sizes = [len(os.fsencode(part)) for part in parts]
    except UnicodeEncodeError:
        return False
    length = sum(sizes) + len(sizes)
    return length <= _PATH_BYTES and max(sizes, default=0) <= _PART_BYTES


@contextmanager
def open_folder(
    root: Path, parts: tuple[str, ...], *, make: bool = False
) -> Iterator[int]:
    """Open a folder of the workspace and give its descriptor.

    Args:
        root: The workspace, which may itself be a link of the operator.
        parts: The way to the folder.
        make: Whether missing folders are made.

    Raises:
        WorkspaceFailure: A part is a symbolic link.
        OSError: A part is missing, is no folder or cannot be opened.
    """
    here = os.open(root, _FOLDER)
    try:
        for part in parts:
            inner = _step(here, part, make=make)
            os.close(here)
            here = inner
        yield here
    finally:
        os.close(here)


def _step(here: int, part: str, *, make: bool) -> int:
    if make:
        try:
            os.mkdir(part, 0o755, dir_fd=here)
        except FileExistsError:
            pass
        else:
            os.fsync(here)
    try:
        return os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=here)
    except OSError as error:
        # Linux says "not a folder" of a link, others "too many links".
        if error.errno in (errno.ENOTDIR, errno.ELOOP) and is_link(here, part):
            raise link_refused(part) from error
        raise


def is_link(folder: int, name: str) -> bool:
    """Return whether an entry of an open folder is a symbolic link."""
    status = status_of(folder, name)
    return status is not None and stat.S_ISLNK(status.st_mode)


def status_of(folder: int, name: str) -> os.stat_result | None:
    """Return what an entry of an open folder is, itself and no target; None if none."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
