"""Running one program of the allow-list: no shell, bounded, and never left behind."""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cards.engines.workspace.failures import WorkspaceFailure, denied
from cards.engines.workspace.program_rules import ProgramPlan

# Where programs are looked for; nothing of the server's own PATH.
_PATH = "/usr/local/bin:/usr/bin:/bin"
# Bytes read from a program at once.
_CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOutcome:
    """What came of a program."""

    #: What it printed, errors included, as far as it was kept.
    output: str
    #: Bytes it printed.
    printed_bytes: int
    #: Bytes that were kept.
    kept_bytes: int
    #: Its exit status, negative for a signal; None when its time was over.
    exit_status: int | None

    @property
    def is_cut(self) -> bool:
        """Whether it printed more than was kept."""
        return self.printed_bytes > self.kept_bytes


class _Output:
    """The output of a program, kept up to a cap and counted beyond."""

    def __init__(self, cap_bytes: int) -> None:
        self._cap_bytes = cap_bytes
        self._kept = bytearray()
        self._printed_bytes = 0

    def add(self, chunk: bytes) -> None:
        self._printed_bytes += len(chunk)
        self._kept += chunk[: self._cap_bytes - len(self._kept)]

    def outcome(self, exit_status: int | None) -> ProgramOutcome:
        return ProgramOutcome(
            output=self._kept.decode("utf-8", "replace").replace("\0", "\ufffd"),
            printed_bytes=self._printed_bytes,
            kept_bytes=len(self._kept),
            exit_status=exit_status,
        )


def refuse_links(plan: ProgramPlan, root: Path) -> None:
    """Check that no operand leads out of the workspace through a link. Blocks.

    Raises:
        WorkspaceFailure: One does.
    """
    real_root = root.resolve()
    for word in plan.operands:
        try:
            is_inside = (real_root / word).resolve().is_relative_to(real_root)
        except (OSError, RuntimeError):
            # A loop of links, or no name at all (a pattern may be long).
            continue
        if not is_inside:
            raise denied(
                f"`{word}` leads out of the workspace through a symbolic link.",
                code="symbolic_link",
            )


async def run_program(
    plan: ProgramPlan, root: Path, *, timeout_seconds: float, cap_bytes: int
) -> ProgramOutcome:
    """Run a program in the workspace until it ends or its time is over.

    Whatever ends the call, the program's process group is dead and reaped by then.

    Args:
        plan: What to run.
        root: The workspace.
        timeout_seconds: How long it may run.
        cap_bytes: How much of its output is kept.

    Raises:
        WorkspaceFailure: This machine does not have the program.
    """
    path = shutil.which(plan.program, path=_PATH)
    if path is None:
        raise WorkspaceFailure(
            "dependency_fail",
            f"This machine has no `{plan.program}`.",
            code="program_missing",
        )
    process = await asyncio.create_subprocess_exec(
        path,
        *plan.arguments,
        cwd=root,
        env=_environment(root),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    output = _Output(cap_bytes)
    has_ended = False
    try:
        async with asyncio.timeout(timeout_seconds):
            await _drain(process, output)
            exit_status = await process.wait()
            has_ended = True
    except TimeoutError:
        return output.outcome(None)
    finally:
        if not has_ended:
            await _kill(process)
    return output.outcome(exit_status)


def _environment(root: Path) -> Mapping[str, str]:
    """Return all a program learns; nothing of the server's environment, no secrets."""
    return {"PATH": _PATH, "HOME": str(root), "LANG": "C.UTF-8", "TZ": "UTC"}


async def _drain(process: asyncio.subprocess.Process, output: _Output | None) -> None:
    """Read to the end of the output; what is over the cap is read and dropped."""
    if process.stdout is None:
        return
    while chunk := await process.stdout.read(_CHUNK_BYTES):
        if output is not None:
            output.add(chunk)


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill and reap the process group."""
    # It may have ended in this moment and taken its group with it.
    with contextlib.suppress(ProcessLookupError):
        # The program leads a session of its own, so its pid is the group's id.
        os.killpg(process.pid, signal.SIGKILL)
    # `wait` does not return while there is output nobody read.
    await _drain(process, None)
    await process.wait()
