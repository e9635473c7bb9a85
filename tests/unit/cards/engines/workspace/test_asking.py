"""What the engine asks before it acts, and how it goes on with late answers."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cards.engine import Answer, Continuation, HistoryEntry, Permission
from cards.engines.workspace.asking import Choices, name_in, question_about
from cards.engines.workspace.engine import WorkspaceEngine
from cards.engines.workspace.files import Workspace
from tests.unit.cards.engines.workspace.recording import Recorder, recorded_turn

#: Runs one text on the engine and returns what was recorded.
Run = Callable[..., Awaitable[Recorder]]

DENIED = Permission(approved=False, scope="once", message="not now", remembered=False)
NO_ANSWER = Answer(approved=False, selected=(), custom_text="")


def chosen(*selected: str, custom_text: str = "") -> Answer:
    return Answer(approved=True, selected=selected, custom_text=custom_text)


@pytest.fixture(name="run")
def _run(engine: WorkspaceEngine) -> Run:
    async def run(text: str, **given: Any) -> Recorder:
        recorder = Recorder(
            answer_with=given.pop("answer", NO_ANSWER),
            **({"permit_with": given.pop("permit")} if "permit" in given else {}),
        )
        await engine.run(recorded_turn(recorder, text, turn_no=2, **given))
        return recorder

    return run


def continuation(
    kind: str, prompt: dict[str, Any], decision: str = "approved", **payload: Any
) -> Continuation:
    return Continuation(
        kind=kind,
        request_id="req_1",
        decision=decision,
        payload=payload,
        prompt=prompt,
    )


class TestPermission:
    async def test_is_asked_before_a_program_runs(self, run: Run) -> None:
        recorder = await run("run ls")

        assert recorder.permissions == [
            ("Run", {"command": "ls"}, "This runs a program in the workspace.")
        ]
        assert recorder.tool.phases == ["permission_wait", "executing"]
        assert recorder.tool.status == "ok"

    async def test_is_not_asked_for_what_is_never_run(self, run: Run) -> None:
        recorder = await run("run rm README.md")

        assert recorder.permissions == []
        assert recorder.tool.error is not None
        assert recorder.tool.error[2] == "program_not_allowed"

    @pytest.mark.parametrize("verb", ["overwrite {} with new", "write {}: new"])
    async def test_is_asked_before_a_file_is_replaced(
        self, run: Run, workspace: Workspace, verb: str
    ) -> None:
        recorder = await run(verb.format("README.md"))

        ((name, call, message),) = recorder.permissions
        assert (name, call) == (
            "Write",
            {"file_path": "README.md", "content": "new"},
        )
        assert message is not None
        assert message.startswith("This replaces README.md, which holds ")
        assert (workspace.disk.root / "README.md").read_text() == "new\n"

    async def test_is_not_asked_for_a_new_file_or_more_text(self, run: Run) -> None:
        for text in ("write new.md: x", "append new.md: y", "append README.md: z"):
            assert (await run(text)).permissions == []

    @pytest.mark.parametrize("text", ["run ls", "write README.md: new"])
    async def test_that_is_denied_changes_nothing(
        self, run: Run, workspace: Workspace, text: str
    ) -> None:
        before = (workspace.disk.root / "README.md").read_text()

        recorder = await run(text, permit=DENIED)

        assert recorder.tool.error is not None
        assert recorder.tool.error[0] == "permission_denied"
        assert recorder.tool.error[2] == "not_permitted"
        assert recorder.answer.endswith("You said: not now")
        assert recorder.tool.output is None
        assert (workspace.disk.root / "README.md").read_text() == before


class TestQuestion:
    async def test_asks_which_of_several_files_is_meant(self, run: Run) -> None:
        recorder = await run("read plan.md", answer=chosen("notes/plan.md"))

        assert recorder.questions == [
            ('Which "plan.md" do you mean?', ["docs/plan.md", "notes/plan.md"])
        ]
        assert recorder.tool.shown_as["file_path"] == "notes/plan.md"

    async def test_is_asked_once_in_a_session(self, run: Run) -> None:
        await run("read plan.md", answer=chosen("notes/plan.md"))

        recorder = await run("count plan.md")

        assert recorder.questions == []
        assert "notes/plan.md" in str(recorder.tool.output)

    async def test_takes_another_path(self, run: Run) -> None:
        recorder = await run("read plan.md", answer=chosen(custom_text="README.md"))

        assert recorder.tool.shown_as["file_path"] == "README.md"

    async def test_that_is_declined_does_nothing(self, run: Run) -> None:
        recorder = await run("read plan.md")

        assert recorder.of_kind("tool") == []
        assert recorder.answer == "All right, I leave it."

    def test_names_what_it_is_about(self) -> None:
        assert name_in(question_about('a "b" c')) == 'a "b" c'
        assert name_in("Which color?") == ""

    def test_forgets_the_oldest_choices(self) -> None:
        choices = Choices()
        for number in range(1001):
            choices.remember("sess_1", str(number), "x")

        assert choices.recall("sess_1", "0") is None
        assert choices.recall("sess_1", "1000") == "x"
        assert choices.recall("sess_2", "1000") is None


class TestContinuation:
    async def test_does_what_was_allowed_without_asking_again(
        self, run: Run, workspace: Workspace
    ) -> None:
        """Spec: Ruling E15; case FR-21."""
        prompt = {
            "tool_name": "Write",
            "tool_input": '{"file_path":"README.md","content":"late\\n"}',
        }

        recorder = await run("…", continuation=continuation("permission", prompt))

        assert recorder.permissions == []
        assert recorder.tool.input == {"file_path": "README.md", "content": "late\n"}
        assert (workspace.disk.root / "README.md").read_text() == "late\n"

    async def test_runs_what_was_allowed(self, run: Run) -> None:
        prompt = {"tool_name": "Run", "tool_input": '{"command":"ls"}'}

        recorder = await run("…", continuation=continuation("permission", prompt))

        assert (recorder.tool.name, recorder.tool.status) == ("Run", "ok")
        assert recorder.permissions == []

    async def test_leaves_what_was_not_allowed(self, run: Run) -> None:
        prompt = {"tool_name": "Run", "tool_input": '{"command":"ls"}'}
        told = continuation("permission", prompt, "denied")

        recorder = await run("…", continuation=told)

        assert recorder.of_kind("tool") == []
        assert recorder.answer == "All right, I leave it."

    async def test_does_what_was_asked_for_with_the_file_that_was_meant(
        self, run: Run
    ) -> None:
        told = continuation(
            "question",
            {"question": question_about("plan.md")},
            selected_options=["docs/plan.md"],
        )
        history = [
            HistoryEntry("user", "read plan.md", 1),
            HistoryEntry("user", "list", 2),
        ]

        recorder = await run("…", continuation=told, history=history)

        assert recorder.questions == []
        assert recorder.tool.shown_as["file_path"] == "docs/plan.md"

    async def test_of_a_question_of_somebody_else_does_nothing(self, run: Run) -> None:
        told = continuation("question", {"question": "Color?"}, custom_text="red")

        recorder = await run("…", continuation=told)

        assert recorder.answer == "All right, I leave it."
