"""Changes that happen in one step: prepared beside, then renamed into place. Blocks."""

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from cards.engines.workspace.failures import disk_failures


def fill_once(root: Path, files: Mapping[str, str]) -> None:
    """Make the workspace with its first files, if its folder does not exist.

    The folder appears in one step: a second process, or a crash half way, never
    leaves half of it.

    Args:
        root: The workspace.
        files: Relative path → text.

    Raises:
        WorkspaceFailure: The disk refused.
    """
    if root.is_dir():
        return
    with disk_failures(root.name):
        root.parent.mkdir(parents=True, exist_ok=True)
        draft = root.with_name(f".{root.name}.{secrets.token_hex(8)}")
        try:
            for name, text in files.items():
                path = draft / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            _put_in_place(draft, root)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _put_in_place(draft: Path, root: Path) -> None:
    try:
        draft.rename(root)
    except OSError:
        # Another process was first.
        if not root.is_dir():
            raise


def replace_file(folder: int, name: str, content: bytes) -> None:
    """Give a file new content, all or nothing, and durably.

    Args:
        folder: Descriptor of its folder.
        name: Of the file in that folder, which may be new.
        content: All of it.

    Raises:
        OSError: The disk refused; the file is as it was.
    """
    draft = f".{secrets.token_hex(8)}.draft"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(draft, flags, 0o644, dir_fd=folder)
    try:
        with open(file, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(file)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(draft, dir_fd=folder)
        raise
    os.fsync(folder)
