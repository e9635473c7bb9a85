"""What the engine may not do unasked, and what it says when it may not."""

import asyncio
import os
from collections.abc import Callable

import pytest

from cards.engine import Permission, PromptUnavailable
from cards.engines.workspace.engine import WorkspaceEngine
from cards.engines.workspace.files import Workspace
from tests.unit.cards.engines.workspace.recording import Recorder, Run, recorded_turn

DENIED = Permission(
    approved=False, scope="once", message="not  now,\nplease", remembered=False
)


def content_of(workspace: Workspace, name: str = "README.md") -> str:
    return (workspace.disk.root / name).read_text()


def replace(workspace: Workspace, content: str) -> Callable[[], None]:
    """Return what somebody else does while the engine waits."""

    def write() -> None:
        (workspace.disk.root / "README.md").write_text(content)

    return write


class TestRun:
    async def test_is_asked_for_with_the_exact_line(self, run: Run) -> None:
        recorder = await run("run ls  -la 'src'")

        (asked,) = recorder.permissions
        assert (asked.tool_name, asked.tool_input) == (
            "Run",
            {"command": "ls  -la 'src'"},
        )
        assert asked.message
        assert "at most 30 seconds" in asked.message
        assert asked.is_read_only
        assert recorder.tool.phases == ["permission_wait", "executing"]
        assert recorder.tool.status == "ok"

    async def test_shows_its_card_while_it_waits(self, run: Run) -> None:
        recorder = Recorder()
        seen: list[tuple[str, object]] = []
        recorder.on_asked = lambda: seen.append(
            (recorder.tool.status, recorder.tool.input)
        )

        await run("run ls", recorder)

        assert seen == [("open", {"command": "ls"})]
        assert recorder.tool.ticks == []

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("run rm README.md", "program_not_allowed"),
            ("run ls | wc", "no_shell"),
            ("run find . -delete", "argument_not_allowed"),
            ("run cat /etc/passwd", "outside_workspace"),
            ("run cat link", "symbolic_link"),
        ],
    )
    async def test_is_not_asked_for_what_is_never_run(
        self, run: Run, workspace: Workspace, text: str, code: str
    ) -> None:
        (workspace.disk.root / "link").symlink_to("/etc/passwd")

        recorder = await run(text)

        assert recorder.permissions == []
        assert recorder.tool.error is not None
        assert recorder.tool.error[2] == code

    async def test_looks_again_after_the_wait(
        self, run: Run, workspace: Workspace, started: asyncio.Queue[int]
    ) -> None:
        link = workspace.disk.root / "late"
        recorder = Recorder()
        recorder.on_asked = lambda: link.symlink_to("/etc/passwd")

        await run("run cat late", recorder)

        assert len(recorder.permissions) == 1
        assert recorder.tool.error is not None
        assert recorder.tool.error[2] == "symbolic_link"
        assert started.empty()


class TestWrite:
    @pytest.mark.parametrize("verb", ["overwrite {} with new", "write {}: new"])
    async def test_is_asked_for_before_a_file_is_replaced(
        self, run: Run, workspace: Workspace, verb: str
    ) -> None:
        os.utime(workspace.disk.root / "README.md", (1e9, 1e9))

        recorder = await run(verb.format("./README.md"))

        (asked,) = recorder.permissions
        assert (asked.tool_name, asked.tool_input) == (
            "Write",
            # The path itself, so that an answer for the session covers all its names.
            {"file_path": "README.md", "content": "new"},
        )
        assert not asked.is_read_only
        assert recorder.tool.phases == ["permission_wait", "executing"]
        assert content_of(workspace) == "new\n"

    async def test_shows_what_would_be_lost(
        self, run: Run, workspace: Workspace
    ) -> None:
        path = workspace.disk.root / "README.md"
        path.write_text("one\n\n" + "".join(f"line {n}\n" for n in range(9)))
        os.utime(path, (1e9, 1e9))

        recorder = await run("write README.md: new")

        assert recorder.permissions[0].message == (
            'This replaces "README.md", which is lost then: 68 B, 11 lines, '
            "last changed 2001-09-09 01:46:40 UTC. It begins:\n\n"
            "one\nline 0\nline 1\nline 2\nline 3\n…"
        )

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            (b"", "0 B, 0 lines, last changed"),
            (b"\0\1", "2 B, not text, last changed"),
            (b"x" * 5_000_000, "4.8 MiB, too large, last changed"),
        ],
    )
    async def test_says_so_when_there_is_nothing_to_show(
        self, run: Run, workspace: Workspace, content: bytes, told: str
    ) -> None:
        (workspace.disk.root / "README.md").write_bytes(content)

        recorder = await run("write README.md: new")

        message = recorder.permissions[0].message
        assert message is not None
        assert told in message
        assert message.endswith(" UTC.")

    async def test_asks_for_all_of_a_long_content(self, run: Run) -> None:
        content = "x" * 100_000

        recorder = await run(f"write README.md: {content}")

        assert recorder.permissions[0].tool_input == {
            "file_path": "README.md",
            "content": content,
        }

    @pytest.mark.parametrize(
        "text", ["write new.md: x", "append new.md: y", "append README.md: z"]
    )
    async def test_is_not_asked_for_when_nothing_is_lost(
        self, run: Run, text: str
    ) -> None:
        recorder = await run(text)

        assert recorder.permissions == []
        assert recorder.tool.status == "ok"

    @pytest.mark.parametrize(
        "text", ["write docs: x", f"write README.md: {'x' * 2**20}"]
    )
    async def test_is_not_asked_for_what_is_never_written(
        self, run: Run, text: str
    ) -> None:
        recorder = await run(text)

        assert recorder.permissions == []
        assert recorder.tool.status == "failed"

    async def test_is_for_what_was_shown_only(
        self, run: Run, workspace: Workspace
    ) -> None:
        recorder = Recorder()
        recorder.on_asked = replace(workspace, "somebody else's\n")

        await run("write README.md: new", recorder)

        assert recorder.tool.error is not None
        assert recorder.tool.error[2] == "file_changed"
        assert "Say it once more" in recorder.answer
        assert content_of(workspace) == "somebody else's\n"


class TestDenial:
    @pytest.mark.parametrize(
        ("text", "tool_name"), [("run ls", "Run"), ("write README.md: new", "Write")]
    )
    async def test_changes_and_runs_nothing(
        self,
        run: Run,
        workspace: Workspace,
        started: asyncio.Queue[int],
        text: str,
        tool_name: str,
    ) -> None:
        await run("help")
        before = content_of(workspace)

        recorder = await run(text, Recorder(permit_with=DENIED))

        assert recorder.tool.status == "failed"
        assert recorder.tool.error == (
            "permission_denied",
            f"You did not allow `{tool_name}`, so nothing was changed or run. "
            "You said: not now, please",
            "user_denied",
        )
        assert recorder.tool.phases == ["permission_wait"]
        assert recorder.tool.output is None
        assert recorder.answer == recorder.tool.error[1]
        assert content_of(workspace) == before
        assert started.empty()

    async def test_repeats_no_endless_remark(self, run: Run) -> None:
        endless = Permission(
            approved=False, scope="once", message="no " * 30_000, remembered=False
        )

        recorder = await run("run ls", Recorder(permit_with=endless))

        assert len(recorder.answer) < 500


class TestWaiting:
    async def test_that_is_interrupted_cancels_the_card(
        self, engine: WorkspaceEngine, workspace: Workspace
    ) -> None:
        def interrupt() -> None:
            raise asyncio.CancelledError

        recorder = Recorder()
        recorder.on_asked = interrupt

        with pytest.raises(asyncio.CancelledError):
            await engine.run(recorded_turn(recorder, "write README.md: new"))

        assert recorder.tool.status == "cancelled"
        assert content_of(workspace) != "new\n"

    async def test_that_cannot_be_stored_does_nothing(
        self, engine: WorkspaceEngine, workspace: Workspace
    ) -> None:
        """Spec: Ruling E15."""

        def refuse() -> None:
            raise PromptUnavailable

        recorder = Recorder()
        recorder.on_asked = refuse

        with pytest.raises(PromptUnavailable):
            await engine.run(recorded_turn(recorder, "write README.md: new"))

        assert recorder.tool.status == "failed"
        assert content_of(workspace) != "new\n"


async def test_summaries_ask_nothing(run: Run) -> None:
    recorder = await run("summarise")

    assert recorder.of_kind("agent")
    assert (recorder.permissions, recorder.questions) == ([], [])
