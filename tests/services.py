"""The services that tests talk to: daphne, PostgreSQL, Redis.

A missing service is skipped with the reason; with CI=true it fails.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

PROJECT = Path(__file__).resolve().parent.parent

POSTGRES_URL = os.environ.get(
    "TEST_POSTGRES_URL", "postgres://postgres@127.0.0.1:5432/postgres"
)
REDIS_URL = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/9")

#: Seconds that a server may take to answer, on a machine that is busy with tests.
START_TIMEOUT_S = 60


def missing(reason: str) -> None:
    """Skip the test, or fail it where everything is due to be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must have it: {reason}")
    pytest.skip(reason)


@contextmanager
def postgres_database() -> Iterator[str]:
    """Give the URL of a fresh database, dropped at the end."""
    name = f"cardwire_test_{uuid.uuid4().hex[:12]}"
    try:
        admin = psycopg.connect(POSTGRES_URL, autocommit=True, connect_timeout=5)
    except psycopg.OperationalError as error:
        missing(f"no PostgreSQL at {POSTGRES_URL}: {error}")
        raise
    with admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield urlsplit(POSTGRES_URL)._replace(path=f"/{name}").geturl()
        finally:
            admin.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


def _answers(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex((host, port)) == 0


@contextmanager
def redis_server() -> Iterator[str]:
    """Give the URL of a Redis: the one that runs, else one of our own."""
    address = urlsplit(REDIS_URL)
    if _answers(address.hostname or "127.0.0.1", address.port or 6379):
        yield REDIS_URL
        return
    binary = shutil.which("redis-server")
    if binary is None:
        missing(f"no Redis at {REDIS_URL} and no redis-server installed")
        raise AssertionError
    port = free_port()
    arguments = ["--port", str(port), "--save", "", "--appendonly", "no"]
    process = subprocess.Popen([binary, *arguments], stdout=subprocess.DEVNULL)
    try:
        until(lambda: _answers("127.0.0.1", port), "Redis to answer")
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    """Return a port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def until(condition: object, what: str, timeout_s: float = START_TIMEOUT_S) -> None:
    """Wait for a condition of another process, which cannot tell us."""
    assert callable(condition)
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {timeout_s} s for {what}")
        time.sleep(0.05)


class CardwireServer:
    """A daphne that serves the project, to be killed and started again.

    Args:
        data_dir: Its data directory, kept between starts.
        application: Served in place of the project's own.
        environment: Added to ours.
    """

    def __init__(
        self,
        data_dir: Path,
        application: str = "config.asgi:application",
        **environment: str,
    ) -> None:
        self._application = application
        self.port = free_port()
        self.data_dir = data_dir
        self._environment = {
            **os.environ,
            "CARDWIRE_DATA_DIR": str(data_dir),
            "CARDWIRE_DEBUG": "1",
            "PYTHONPATH": str(PROJECT),
            "DJANGO_SETTINGS_MODULE": "config.settings",
            **environment,
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._log = (data_dir / "server.log").open("ab")

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def socket_url(self) -> str:
        """Where the card protocol is spoken."""
        return f"ws://127.0.0.1:{self.port}/v1/ws"

    @property
    def log(self) -> str:
        """What the server wrote so far."""
        return (self.data_dir / "server.log").read_text(errors="replace")

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        assert self._process is not None
        return self._process.pid

    def manage(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a management command with the server's settings."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT,
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
        )

    def start(self) -> None:
        """Migrate and serve; return when it answers."""
        self.manage("migrate", "--verbosity", "0")
        self.start_again()

    def start_again(self) -> None:
        """Serve a database that is migrated already; return when it answers."""
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "daphne", "-b", "127.0.0.1"),
                *("-p", str(self.port), self._application),
            ],
            cwd=PROJECT,
            env=self._environment,
            stdout=self._log,
            stderr=self._log,
        )
        until(self._is_ready, "the server to answer")

    def _is_ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            pytest.fail(f"the server ended at once:\n{self.log[-4000:]}")
        try:
            with urllib.request.urlopen(f"{self.url}/v1/wire.schema.json", timeout=5):
                return True
        except urllib.error.HTTPError as error:
            pytest.fail(f"the server answers {error.code}:\n{self.log[-4000:]}")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def send_signal(self, how: signal.Signals) -> None:
        """Send a signal and do not wait for what it does."""
        os.kill(self.pid, how)

    def kill(self) -> None:
        """End the server without any warning (kill -9)."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the server if it runs."""
        self._end(signal.SIGTERM)
        self._log.flush()

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(timeout=START_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            pytest.fail(f"the server did not end on {how.name}")
        finally:
            self._process = None

    def close(self) -> None:
        """Give everything back."""
        self.stop()
        self._log.close()
