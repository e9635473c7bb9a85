"""The workspace on disk. Blocks; `files.Workspace` keeps it off the loop.

Names are confined (see `confinement`). Hidden entries, whose name starts with a dot,
are not listed or walked, and symbolic links are never followed.
"""

import fcntl
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path

from cards.engines.workspace.confinement import open_folder, parts_of, status_of
from cards.engines.workspace.drafts import replace_file
from cards.engines.workspace.failures import changed, disk_failures, invalid
from cards.engines.workspace.limits import KIB, Limits

# Bytes at the start of a file in which a NUL makes it binary; what git looks at.
_SNIFF_BYTES = 8_000


class EntryKind(StrEnum):
    """What a name stands for."""

    FILE = "file"
    FOLDER = "folder"
    #: A link, a pipe, a device: shown, never opened.
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name in the workspace."""

    #: Relative to the workspace, with slashes; "" for the workspace.
    path: str
    kind: EntryKind
    size_bytes: int
    #: Seconds since 1970.
    modified_at: float

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """Some entries in order; `is_cut` when a cap left others out."""

    entries: tuple[Entry, ...]
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """The text of a file; `is_cut` when the cap left its end out."""

    path: str
    text: str
    size_bytes: int
    is_cut: bool = False


class NotText(Exception):
    """A file is binary or not UTF-8."""


class Disk:
    """One workspace.

    Args:
        root: Its folder.
        limits: The caps.
    """

    def __init__(self, root: Path, limits: Limits) -> None:
        self.root = root
        self.limits = limits

    def entry(self, name: str) -> Entry | None:
        """Return what a name stands for; None when there is no such thing.

        Raises:
            WorkspaceFailure: The name leads outside or through a link, or the system
                does not let us look.
        """
        parts = parts_of(name)
        with disk_failures(name):
            try:
                with open_folder(self.root, parts[:-1]) as folder:
                    status = status_of(folder, parts[-1] if parts else ".")
            except (FileNotFoundError, NotADirectoryError):
                return None
        return None if status is None else _entry("/".join(parts), status)

    def entries(self, name: str) -> Entries:
        """Return what a folder holds, folders first, then by name.

        Raises:
            WorkspaceFailure: There is no such folder.
        """
        parts = parts_of(name)
        with disk_failures(name), open_folder(self.root, parts) as folder:
            found = [
                _entry("/".join((*parts, each)), status)
                for each in os.listdir(folder)
                if not each.startswith(".") and (status := status_of(folder, each))
            ]
        found.sort(key=lambda each: (each.kind is not EntryKind.FOLDER, each.path))
        cap = self.limits.list_entries
        return Entries(entries=tuple(found[:cap]), is_cut=len(found) > cap)

    def walk(self, name: str) -> Entries:
        """Return the files of a folder and of all folders in it, by path.

        A file gives itself.

        Raises:
            WorkspaceFailure: There is no such name.
        """
        entry = self.entry(name)
        if entry is not None and entry.kind is EntryKind.FILE:
            return Entries(entries=(entry,))
        cap = self.limits.walk_files
        with closing(self._files_below(name)) as files:
            found = list(islice(files, cap + 1))
        return Entries(entries=tuple(found[:cap]), is_cut=len(found) > cap)

    def _files_below(self, name: str) -> Generator[Entry, None, None]:
        parts = parts_of(name)
        with disk_failures(name), open_folder(self.root, parts) as top:
            for here, folders, files, folder in os.fwalk(dir_fd=top):
                folders[:] = sorted(each for each in folders if each[0] != ".")
                way = (*parts, *Path(here).parts)
                for each in sorted(each for each in files if each[0] != "."):
                    status = status_of(folder, each)
                    if status is not None and stat.S_ISREG(status.st_mode):
                        yield _entry("/".join((*way, each)), status)

    def read_text(self, name: str, cap_bytes: int) -> TextFile:
        """Return the text of a file, the first `cap_bytes` of it.

        Raises:
            WorkspaceFailure: There is no such file.
            NotText: It is binary or not UTF-8.
        """
        parts = parts_of(name)
        with disk_failures(name), self._open_file(parts) as file:
            size_bytes = os.fstat(file).st_size
            content = _read(file, cap_bytes + 1)
        is_cut = len(content) > cap_bytes
        content = content[:cap_bytes]
        return TextFile(
            path="/".join(parts),
            text=text_in(content, is_cut=is_cut),
            size_bytes=max(size_bytes, len(content)),
            is_cut=is_cut,
        )

    def read_bytes(self, name: str) -> bytes:
        """Return what a file holds, up to what `write_text` puts into one.

        Raises:
            WorkspaceFailure: There is no such file.
        """
        parts = parts_of(name)
        with disk_failures(name), self._open_file(parts) as file:
            return _read(file, self.limits.write_bytes)

    @contextmanager
    def _open_file(self, parts: tuple[str, ...]) -> Iterator[int]:
        if not parts:
            raise invalid("That is a folder, not a file.", code="not_a_file")
        # O_NONBLOCK: opening a pipe would wait for its writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open_folder(self.root, parts[:-1]) as folder:
            file = os.open(parts[-1], flags, dir_fd=folder)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                sentence = f"`{'/'.join(parts)}` is not a file."
                raise invalid(sentence, code="not_a_file")
            yield file
        finally:
            os.close(file)

    def replaced_by(self, name: str, text: str) -> Entry | None:
        """Return the file that a `write_text` would replace; None for a new one.

        Raises:
            WorkspaceFailure: It is not a plain file, or the text is too large.
        """
        _refuse_folder(parts_of(name))
        self._encode(name, text)
        entry = self.entry(name)
        _refuse_other_kinds(name, entry)
        return entry

    def write_text(self, name: str, text: str, *, replaces: Entry | None) -> Entry:
        """Put a text into a file, all or nothing; missing folders are made.

        Args:
            name: Of the file.
            text: All that it will hold.
            replaces: The file that may be lost, as it was seen; None for none.

        Returns:
            The file as it is now.

        Raises:
            WorkspaceFailure: There is a file and it is not exactly `replaces`, it is
                not a plain file, or the text is too large.
        """
        parts = parts_of(name)
        content = self._encode(name, text)
        with disk_failures(name), self._writing(parts) as folder:
            status = status_of(folder, parts[-1])
            found = None if status is None else _entry("/".join(parts), status)
            _refuse_other_kinds(name, found)
            if found is not None and found != replaces:
                raise changed(found.path)
            replace_file(folder, parts[-1], content)
            return _entry("/".join(parts), os.stat(parts[-1], dir_fd=folder))

    def append_text(self, name: str, text: str) -> tuple[Entry, bool]:
        """Put a text behind the last line of a file, all or nothing.

        Returns:
            The file as it is now, and whether it is new.

        Raises:
            WorkspaceFailure: It is not a plain file, or it would become too large.
        """
        parts = parts_of(name)
        content = self._encode(name, text)
        with disk_failures(name), self._writing(parts) as folder:
            status = status_of(folder, parts[-1])
            if status is not None:
                _refuse_other_kinds(name, _entry("/".join(parts), status))
                with self._open_file(parts) as file:
                    before = _read(file, self.limits.write_bytes + 1)
                gap = b"" if not before or before.endswith(b"\n") else b"\n"
                content = before + gap + content
                self._refuse_large(name, content)
            replace_file(folder, parts[-1], content)
            now = _entry("/".join(parts), os.stat(parts[-1], dir_fd=folder))
            return now, status is None

    @contextmanager
    def _writing(self, parts: tuple[str, ...]) -> Iterator[int]:
        """Open the folder of a file, alone among all writers of this workspace.

        The lock is on the workspace's folder, so it holds between processes, and
        the system takes it back when the process dies.
        """
        _refuse_folder(parts)
        with open_folder(self.root, ()) as root:
            fcntl.flock(root, fcntl.LOCK_EX)
            with open_folder(self.root, parts[:-1], make=True) as folder:
                yield folder

    def _encode(self, name: str, text: str) -> bytes:
        """Return the bytes of a text that ends its last line."""
        content = text.encode("utf-8", "replace")
        if content and not content.endswith(b"\n"):
            content += b"\n"
        self._refuse_large(name, content)
        return content

    def _refuse_large(self, name: str, content: bytes) -> None:
        if len(content) > self.limits.write_bytes:
            cap = self.limits.write_bytes // KIB
            raise invalid(
                f"`{name}` would become larger than {cap:,} KiB, which is the most I "
                "write into one file.",
                code="too_large",
            )


def _entry(path: str, status: os.stat_result) -> Entry:
    kind = EntryKind.OTHER
    if stat.S_ISREG(status.st_mode):
        kind = EntryKind.FILE
    elif stat.S_ISDIR(status.st_mode):
        kind = EntryKind.FOLDER
    return Entry(
        path=path, kind=kind, size_bytes=status.st_size, modified_at=status.st_mtime
    )


def _refuse_folder(parts: tuple[str, ...]) -> None:
    """Refuse the workspace itself as the name of a file."""
    if not parts:
        raise invalid("I need the name of a file.", code="not_a_file")


def _refuse_other_kinds(name: str, entry: Entry | None) -> None:
    if entry is not None and entry.kind is not EntryKind.FILE:
        raise invalid(f"`{name}` is not a file.", code="not_a_file")


def _read(file: int, size: int) -> bytes:
    with open(file, "rb", closefd=False) as stream:
        return stream.read(size)


def text_in(content: bytes, *, is_cut: bool) -> str:
    """Return the text of a file.

    Args:
        content: Its bytes, or its first ones.
        is_cut: Whether there are more.

    Raises:
        NotText: It is binary or not UTF-8.
    """
    if b"\0" in content[:_SNIFF_BYTES]:
        raise NotText
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # A cap may fall into the middle of a character; nothing else may be wrong.
        if is_cut and error.start >= len(content) - 3:
            return content[: error.start].decode("utf-8-sig")
        raise NotText from error
