"""Servers under test: daphne processes with a data directory of their own.

Figures of a process come from Linux: its CPU clock and /proc.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from benchmarks.wire_client import WireConnection

PROJECT: Final = Path(__file__).resolve().parent.parent

_DAPHNE: Final = (sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p")

#: Seconds that a server may take to answer.
START_PATIENCE_S: Final = 30.0

#: Settings of the caller that would change what is measured.
_FOREIGN = ("CARDWIRE_", "DATABASE_URL", "REDIS_URL", "DJANGO_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How to start a kind of server.

    Attributes:
        prepare: Arguments for Python that make the database; () for none.
        data_dir_variable: Environment variable that takes the data directory.
        greets: Whether the first frame of a connection comes from the server.
    """

    name: str
    application: str
    data_dir_variable: str
    environ: dict[str, str] = field(default_factory=dict)
    prepare: tuple[str, ...] = ()
    greets: bool = False


CARDWIRE = Recipe(
    name="cardwire",
    application="config.asgi:application",
    data_dir_variable="CARDWIRE_DATA_DIR",
    environ={
        # As in production: under DEBUG Django keeps a copy of every statement.
        "CARDWIRE_DEBUG": "0",
        "CARDWIRE_SECRET_KEY": "not a secret: the server is local and holds nothing",
        "CARDWIRE_ALLOWED_HOSTS": "127.0.0.1",
        "CARDWIRE_ALLOW_ANONYMOUS": "1",
        "CARDWIRE_ENGINE": "benchmarks.engines.BurstEngine",
    },
    prepare=("manage.py", "migrate", "--verbosity=0"),
    greets=True,
)
BARE = Recipe(
    name="bare",
    application="benchmarks.references.bare.asgi:application",
    data_dir_variable="BENCHMARK_DATA_DIR",
)
NAIVE = Recipe(
    name="naive",
    application="benchmarks.references.naive.asgi:application",
    data_dir_variable="BENCHMARK_DATA_DIR",
    prepare=(
        "-m",
        "django",
        "migrate",
        "--run-syncdb",
        "--verbosity=0",
        "--settings=benchmarks.references.naive.settings",
    ),
)


class Server:
    """A running server; a context manager that stops it.

    Args:
        data_dir: Kept when the server stops, so that another can go on with it.
    """

    def __init__(self, recipe: Recipe, data_dir: Path) -> None:
        self.recipe = recipe
        self._environ = _clean_environ() | recipe.environ
        self._environ[recipe.data_dir_variable] = str(data_dir)
        self._log = data_dir / "server.log"
        self.port = _free_port()

    def __enter__(self) -> Self:
        """Prepare the database, start the process and wait until it answers.

        Raises:
            RuntimeError: It did not start; the message holds its output.
        """
        if self.recipe.prepare:
            subprocess.run(
                [sys.executable, *self.recipe.prepare],
                cwd=PROJECT,
                env=self._environ,
                check=True,
            )
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*_DAPHNE, str(self.port), self.recipe.application],
                cwd=PROJECT,
                env=self._environ,
                stdout=log,
                stderr=log,
            )
        try:
            self._wait_until_it_answers()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()
        if error is not None:
            error.add_note(f"{self.recipe.name} said:\n{self._log.read_text()[-4000:]}")

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                has_ended = self._process.poll() is not None
                if has_ended or time.monotonic() > deadline:
                    raise RuntimeError(
                        f"{self.recipe.name} did not start:\n{self._log.read_text()}"
                    ) from None
                time.sleep(0.05)

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def connect(self, session_id: str = "") -> WireConnection:
        """Return a new connection, its greeting still unread."""
        query = f"?session_id={session_id}" if session_id else ""
        return WireConnection(self.port, f"/v1/ws{query}")

    def cpu_s(self) -> float:
        """Return the CPU seconds, user and system, that the process has used."""
        # Linux: the CPU clock of process P is (~P << 3) | CPUCLOCK_SCHED. It counts
        # nanoseconds, where /proc/P/stat counts hundredths of a second.
        return time.clock_gettime((~self._process.pid << 3) | 2)

    def memory_bytes(self) -> int:
        """Return the resident memory of the process."""
        return self._status("VmRSS")

    def peak_memory_bytes(self) -> int:
        """Return the largest resident memory since the last `forget_peak_memory`."""
        return self._status("VmHWM")

    def forget_peak_memory(self) -> None:
        """Begin anew to look for the largest resident memory."""
        # Linux: 5 resets the peak.
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5")

    def _status(self, name: str) -> int:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        for line in status.splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        raise LookupError(f"the kernel does not tell {name}")


@contextmanager
def data_directory() -> Iterator[Path]:
    """Give a directory that is gone afterwards.

    It lies in the checkout: the system's temp directory may be memory, where being
    durable costs nothing.
    """
    parent = PROJECT / "var"
    parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=parent) as name:
        yield Path(name)


@contextmanager
def running(*recipes: Recipe) -> Iterator[list[Server]]:
    """Give servers started by these recipes, and stop them afterwards."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(Server(each, stack.enter_context(data_directory())))
            for each in recipes
        ]


def _clean_environ() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_FOREIGN)
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
