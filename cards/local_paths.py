"""Files of the server that users may name in their messages. Blocks.

A path counts as what it leads to, links and `..` followed, and is then opened step by
step without following any, so that nothing put there meanwhile leads elsewhere. Of the
folders around a file the innermost decides, one that is allowed or one that is closed.

Spec: Ruling E22; FR-105.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

# Opening a pipe would wait for its writer, and some devices for theirs.
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC


class PathRefused(Exception):
    """A path may not be read, or holds nothing to be read.

    Args:
        code: Which of both, such as `PATH_NOT_ALLOWED`.
        message: For developers. Outside of the allowed folders it is the same
            whether there is a file or not.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class LocalPaths:
    """The folders below which files may be read.

    Args:
        allowed: Those folders; empty for none.
        closed: Folders that are not read although they lie in an allowed one.
    """

    def __init__(self, allowed: Sequence[Path], *, closed: Sequence[Path] = ()) -> None:
        self._allowed = tuple(allowed)
        self._closed = tuple(closed)

    @contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """Open a regular file for reading.

        Raises:
            PathRefused: It may not be read, is none, or there is none.
        """
        if not os.path.isabs(path):
            raise PathRefused("PATH_NOT_ALLOWED", "the path is not absolute")
        try:
            real = Path(os.path.realpath(path))
            folder = self._folder_of(real)
            descriptor = _open_below(folder, real.relative_to(folder).parts)
        except (OSError, ValueError) as error:
            # A NUL is a ValueError.
            raise _unreadable() from error
        with os.fdopen(descriptor, "rb") as file:
            yield file

    def _folder_of(self, real: Path) -> Path:
        """Return the allowed folder around a file that decides about it."""
        allowed = _innermost(self._allowed, real)
        closed = _innermost(self._closed, real)
        if allowed is None or (closed and len(closed.parts) >= len(allowed.parts)):
            raise PathRefused(
                "PATH_NOT_ALLOWED", "the path is in no folder that users may read from"
            )
        return allowed


def _innermost(folders: Sequence[Path], real: Path) -> Path | None:
    # They may be links of the operator's, and may come and go.
    around = [Path(os.path.realpath(folder)) for folder in folders]
    return max(
        (folder for folder in around if folder in real.parents),
        key=lambda folder: len(folder.parts),
        default=None,
    )


def _open_below(folder: Path, parts: tuple[str, ...]) -> int:
    here = os.open(folder, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER, dir_fd=here)
            os.close(here)
            here = inner
        file = os.open(parts[-1], _FILE, dir_fd=here)
    finally:
        os.close(here)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise _unreadable()
    return file


def _unreadable() -> PathRefused:
    return PathRefused("PATH_NOT_READABLE", "there is no regular file to be read there")
