"""The sweep of many expired prompts, and how long others wait for it meanwhile."""

import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.results import Result, at_most
from benchmarks.servers import CARDWIRE, PROJECT, data_directory

#: Expired prompts, spread over sessions.
PROMPTS = 100_000
SESSIONS = 100

#: Bytes of one prompt's frame.
FRAME = b'{"type":"prompt.user"}'.ljust(600, b" ")


def expired_prompts() -> Result:
    """Sweep 100,000 prompts of 100 sessions while another process writes."""
    with data_directory() as data_dir:
        environ = {**os.environ, **CARDWIRE.environ, "CARDWIRE_DATA_DIR": str(data_dir)}
        manage = [sys.executable, "manage.py"]
        subprocess.run(
            [*manage, "migrate", "--verbosity=0"], cwd=PROJECT, env=environ, check=True
        )
        database = data_dir / "cardwire.sqlite3"
        _fill(database)
        writer = _Writer(database)
        started = time.monotonic()
        sweep = subprocess.Popen(
            [*manage, "sweep_waits"],
            cwd=PROJECT,
            env=environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        peak_mb = _peak_mb_of(sweep)
        seconds = time.monotonic() - started
        writer.stop()
        said = sweep.stdout.read() if sweep.stdout else ""
        swept = re.search(r"expired=(\d+)", said)
        if swept is None or int(swept[1]) != PROMPTS:
            raise RuntimeError(f"the sweep said {said!r}")
    return Result(
        "sweep-100000",
        {
            "prompts_per_s": PROMPTS / seconds,
            "peak_memory_mb": peak_mb,
            "longest_wait_s": writer.longest_s,
            "writes": writer.count,
        },
        (at_most("longest_wait_s", 1), at_most("peak_memory_mb", 250)),
    )


def _fill(path: Path) -> None:
    # Sixteen days ago, and yesterday, as Django stores them on SQLite.
    moments = [
        str(datetime.fromtimestamp(time.time() - age_s, UTC).replace(tzinfo=None))
        for age_s in (16 * 86_400, 86_400)
    ]
    with sqlite3.connect(path) as connection:
        connection.executemany(
            "INSERT INTO cards_session (id, session_id, trace_id, principal, title,"
            " created_at, last_activity_at, owner, fence)"
            " VALUES (?, ?, ?, 'user:1', '', ?, ?, '', 0)",
            [(n, f"sess_{n}", f"tr_{n}", *moments) for n in range(1, SESSIONS + 1)],
        )
        connection.executemany(
            "INSERT INTO cards_turn (id, session_id, turn_no, event_id, card_id,"
            " run_id, state, message, accepted_at, is_stopped)"
            " VALUES (?, ?, 1, 'c1', 'turn_c1', 'run_1', 'ended', '{}', ?, 0)",
            [(n, n, moments[0]) for n in range(1, SESSIONS + 1)],
        )
        connection.executemany(
            "INSERT INTO prompts_pendingwait (request_id, session_id, turn_id, kind,"
            " state, frame, seq, created_at, expires_at, decision, is_lapsed, reason,"
            " rejection) VALUES (?, ?, ?, 'question', 'pending', ?, ?, ?, ?, '', 0,"
            " '', '')",
            [
                (f"req_{n}", n % SESSIONS + 1, n % SESSIONS + 1, FRAME, n, *moments)
                for n in range(PROMPTS)
            ],
        )


class _Writer:
    """Writes now and then, as a server does, and looks how long that takes."""

    def __init__(self, path: Path) -> None:
        self.longest_s = 0.0
        self.count = 0
        self._path = path
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        connection = sqlite3.connect(self._path, timeout=30, isolation_level=None)
        while not self._is_over.wait(0.01):
            began = time.monotonic()
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("UPDATE cards_session SET title = 'x' WHERE id = 1")
            connection.execute("COMMIT")
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            self.count += 1
        connection.close()

    def stop(self) -> None:
        """Write no more."""
        self._is_over.set()
        self._thread.join()


def _peak_mb_of(process: "subprocess.Popen[str]") -> float:
    peak_kb = 0
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        found = re.search(r"VmHWM:\s+(\d+)", status)
        peak_kb = max(peak_kb, int(found[1]) if found else 0)
        time.sleep(0.05)
    return peak_kb / 1024
