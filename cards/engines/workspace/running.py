"""The handler of `run`."""

import signal

from cards.engines.workspace.commands import RunProgram
from cards.engines.workspace.failures import WorkspaceFailure
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.permitting import Permission
from cards.engines.workspace.program_rules import ProgramPlan, plan_program
from cards.engines.workspace.programs import (
    ProgramOutcome,
    refuse_links,
    run_program,
)
from cards.engines.workspace.replies import ToolUse, reply
from cards.engines.workspace.surface import Scope, Tool
from cards.engines.workspace.wording import in_code, sized


async def run_line(scope: Scope, workspace: Workspace, command: RunProgram) -> None:
    """Run a program, if the user allows that, and answer with what it printed."""

    async def look() -> Permission | None:
        # What may not run is refused without a question.
        await _planned(workspace, command.line)
        if command.is_allowed:
            return None
        return Permission(
            input={"command": command.line},
            message="This runs one program on the files of the workspace, without a "
            f"shell, for at most {workspace.limits.program_seconds:g} seconds.",
            # So the rules are made.
            is_read_only=True,
        )

    async def job(tool: Tool) -> str:
        return await _run(workspace, tool, command.line)

    use = ToolUse(
        opening=f"Let me run {in_code(command.line)}.",
        name="Run",
        input={"command": command.line},
        intent=f"run {command.line.split()[0] if command.line.split() else 'nothing'}",
        look=look,
    )
    await reply(scope, use, job, heartbeat_seconds=workspace.limits.heartbeat_seconds)


async def _planned(workspace: Workspace, line: str) -> ProgramPlan:
    plan = plan_program(line)
    await workspace.off_loop(refuse_links, plan, workspace.disk.root)
    return plan


async def _run(workspace: Workspace, tool: Tool, line: str) -> str:
    # Anew: links may have come while the permission was waited for.
    plan = await _planned(workspace, line)
    limits = workspace.limits
    outcome = await run_program(
        plan,
        workspace.disk.root,
        timeout_seconds=limits.program_seconds,
        cap_bytes=limits.program_bytes,
    )
    cut = (
        f"Only the first {sized(outcome.kept_bytes)} of {sized(outcome.printed_bytes)} "
        "are shown."
        if outcome.is_cut
        else ""
    )
    tool.result(
        f"{outcome.output}\n({cut})" if cut else outcome.output or "(no output)",
        render_hint="terminal",
        metadata={"exit_status": outcome.exit_status, "is_cut": outcome.is_cut},
    )
    failure = _failure(plan, outcome, limits.program_seconds)
    if failure is not None:
        # The result stays beside the failure: what it printed says why.
        raise failure
    shown = "It printed nothing." if not outcome.output else "Its output is above."
    return " ".join(
        part for part in (f"{in_code(plan.line)} has ended. {shown}", cut) if part
    )


def _failure(
    plan: ProgramPlan, outcome: ProgramOutcome, timeout_seconds: float
) -> WorkspaceFailure | None:
    """Return how the program failed; None when it gave an answer."""
    status = outcome.exit_status
    line = in_code(plan.line)
    if status is None:
        return WorkspaceFailure(
            "tool_timeout",
            f"{line} ran longer than {timeout_seconds:g} seconds and was ended.",
            code="program_timeout",
        )
    if status in plan.rule.answers:
        return None
    how = f"with status {status}"
    if status < 0:
        how = f"by signal {signal.Signals(-status).name}"
    return WorkspaceFailure(
        "dependency_fail",
        f"{line} ended {how}; its card shows what it printed.",
        code="program_failed",
    )
