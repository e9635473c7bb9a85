"""A lock file that the kernel lets go of when its process ends, however it ends.

Neighbours on the same running kernel can tell by it at once that a process is gone,
without waiting for a lease to expire.
"""

import fcntl
import os
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def kernel_id() -> str:
    """Return what names the running kernel; "" where it cannot be known.

    File locks of another kernel, on a shared disk, may not be seen here.
    """
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


class ProcessLock:
    """Held from `take` until `release` or the end of the process.

    Args:
        directory: Where the lock files are; made if need be.
        name: Of the lock.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._path = directory / name
        self._descriptor: int | None = None

    def take(self) -> None:
        """Make the file and lock it; does nothing when held already.

        Raises:
            OSError: Somebody else holds it, or the disk is at fault.
        """
        if self._descriptor is not None:
            # The kernel would refuse a second descriptor of our own like another's.
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def release(self) -> None:
        """Remove the file and let go; does nothing when not held."""
        if self._descriptor is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None


def is_abandoned(directory: Path, name: str) -> bool:
    """Tell whether the lock's process is certainly gone: its file stands unlocked.

    A file that is not there proves nothing: its process may use another directory.
    """
    try:
        descriptor = os.open(directory / name, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def remove_abandoned(directory: Path, name: str) -> None:
    """Remove the file of a process that is gone."""
    (directory / name).unlink(missing_ok=True)
