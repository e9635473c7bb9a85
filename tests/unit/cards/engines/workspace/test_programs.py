"""Running programs: bounded in time and output, never left behind."""

import asyncio
import os
from pathlib import Path

import pytest

from cards.engines.workspace import programs
from cards.engines.workspace.failures import WorkspaceFailure
from cards.engines.workspace.program_rules import (
    ProgramPlan,
    ProgramRule,
    plan_program,
)
from cards.engines.workspace.programs import (
    ProgramOutcome,
    refuse_links,
    run_program,
)


async def _run(
    line: str, root: Path, *, timeout_seconds: float = 30, cap_bytes: int = 1024
) -> ProgramOutcome:
    return await run_program(
        plan_program(line), root, timeout_seconds=timeout_seconds, cap_bytes=cap_bytes
    )


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class TestRunProgram:
    async def test_gives_output_and_exit_status(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("hello\n")

        outcome = await _run("cat a.txt", tmp_path)

        assert (outcome.output, outcome.exit_status) == ("hello\n", 0)
        assert not outcome.is_cut

    async def test_gives_errors_with_the_output(self, tmp_path: Path) -> None:
        outcome = await _run("cat none.txt", tmp_path)

        assert "none.txt" in outcome.output
        assert outcome.exit_status == 1

    async def test_keeps_output_up_to_its_cap_and_counts_the_rest(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "long.txt").write_text("x" * 1_000_000)

        outcome = await _run("cat long.txt", tmp_path, cap_bytes=100)

        assert outcome.output == "x" * 100
        assert (outcome.kept_bytes, outcome.printed_bytes) == (100, 1_000_000)
        assert (outcome.is_cut, outcome.exit_status) == (True, 0)

    async def test_tells_programs_nothing_of_the_server(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CARDWIRE_SECRET_KEY", "secret")
        env = ProgramPlan(program="env", arguments=(), rule=ProgramRule())

        outcome = await run_program(env, tmp_path, timeout_seconds=30, cap_bytes=10_000)

        assert f"HOME={tmp_path}" in outcome.output
        assert "secret" not in outcome.output

    async def test_ends_and_reaps_a_program_whose_time_is_over(
        self, tmp_path: Path, started: asyncio.Queue[int]
    ) -> None:
        outcome = await _run("sleep 60", tmp_path, timeout_seconds=0.05)

        pid = await started.get()
        assert outcome.exit_status is None
        assert not _is_running(pid)

    async def test_keeps_what_was_printed_before_the_time_was_over(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "a.txt").write_text("hello\n")

        outcome = await _run("tail -f a.txt", tmp_path, timeout_seconds=2)

        assert (outcome.output, outcome.exit_status) == ("hello\n", None)

    async def test_ends_and_reaps_a_program_when_it_is_cancelled(
        self, tmp_path: Path, started: asyncio.Queue[int]
    ) -> None:
        task = asyncio.create_task(_run("sleep 60", tmp_path))
        pid = await started.get()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert not _is_running(pid)

    async def test_says_when_the_machine_lacks_the_program(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(programs, "_PATH", str(tmp_path))

        with pytest.raises(WorkspaceFailure) as caught:
            await _run("ls", tmp_path)

        assert caught.value.error_type == "dependency_fail"


def test_refuse_links_refuses_an_operand_that_leads_outside(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (root / "link").symlink_to(tmp_path)

    refuse_links(plan_program("cat inside.txt"), root)
    for line in ("cat link/secret.txt", "ls link"):
        with pytest.raises(WorkspaceFailure):
            refuse_links(plan_program(line), root)
