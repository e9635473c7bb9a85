"""Answers that come when the turn that asked is gone."""

import asyncio
import json
from typing import Any

import pytest

from cards.engine import Answer, Continuation
from cards.engines.workspace.choosing import question_about
from cards.engines.workspace.files import Workspace
from tests.unit.cards.engines.workspace.recording import Recorder, Run

CANNOT_GO_ON = "I cannot go on with that answer, so nothing was done."


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


def permission(
    recorder: Recorder, decision: str = "approved", scope: str = "once", **payload: Any
) -> Continuation:
    """Return the late answer to the permission that a turn asked for."""
    (asked,) = recorder.permissions
    prompt = {
        "tool_name": asked.tool_name,
        "tool_input": json.dumps(asked.tool_input),
        "message": asked.message,
        "is_read_only": asked.is_read_only,
        "permission_key": "key",
    }
    return continuation("permission", prompt, decision, scope=scope, **payload)


def question(name: str, said: str, **payload: Any) -> Continuation:
    prompt = {"question": question_about(name, found=2, said=said)}
    return continuation("question", prompt, **payload)


@pytest.fixture(name="lose")
def _lose(run: Run) -> Run:
    """Runs a text on an engine that is stopped while it waits."""

    def stop() -> None:
        raise asyncio.CancelledError

    async def lose(text: str) -> Recorder:
        recorder = Recorder(on_asked=stop)
        with pytest.raises(asyncio.CancelledError):
            await run(text, recorder)
        return recorder

    return lose


@pytest.fixture(autouse=True)
async def _example_files(run: Run) -> None:
    await run("help")


def content_of(workspace: Workspace, name: str = "README.md") -> str:
    return (workspace.disk.root / name).read_text()


class TestPermission:
    async def test_that_is_given_runs_the_program(self, run: Run, lose: Run) -> None:
        asked = await lose("run wc -l data/sales.csv")

        recorder = await run("…", continuation=permission(asked))

        assert recorder.permissions == []
        assert recorder.tool.input == {"command": "wc -l data/sales.csv"}
        assert recorder.tool.output == "8 data/sales.csv\n"
        assert recorder.tool.status == "ok"

    async def test_that_is_given_replaces_the_file(
        self, run: Run, lose: Run, workspace: Workspace
    ) -> None:
        """Spec: Ruling E15; case FR-21."""
        content = "late\n" * 2_000
        asked = await lose(f"write README.md: {content}")

        recorder = await run("…", continuation=permission(asked))

        assert recorder.permissions == []
        assert recorder.tool.status == "ok"
        assert content_of(workspace) == content

    async def test_covers_nothing_that_was_changed_since(
        self, run: Run, lose: Run, workspace: Workspace
    ) -> None:
        asked = await lose("write README.md: late")
        (workspace.disk.root / "README.md").write_text("somebody else's\n")

        recorder = await run("…", continuation=permission(asked))

        assert recorder.permissions == []
        assert recorder.tool.error is not None
        assert recorder.tool.error[2] == "file_changed"
        assert content_of(workspace) == "somebody else's\n"

    async def test_for_the_session_covers_what_was_changed_too(
        self, run: Run, lose: Run, workspace: Workspace
    ) -> None:
        asked = await lose("write README.md: late")
        (workspace.disk.root / "README.md").write_text("somebody else's\n")

        answer = permission(asked, scope="session")
        recorder = await run("…", continuation=answer)

        # The session remembers it: the API answers this at once.
        (again,) = recorder.permissions
        assert again.tool_input == asked.permissions[0].tool_input
        assert content_of(workspace) == "late\n"

    async def test_makes_anew_a_file_that_is_gone(
        self, run: Run, lose: Run, workspace: Workspace
    ) -> None:
        asked = await lose("write README.md: late")
        (workspace.disk.root / "README.md").unlink()

        recorder = await run("…", continuation=permission(asked))

        assert recorder.tool.status == "ok"
        assert content_of(workspace) == "late\n"

    async def test_covers_no_program_that_may_not_run(self, run: Run) -> None:
        prompt = {"tool_name": "Run", "tool_input": '{"command":"rm README.md"}'}

        recorder = await run("…", continuation=continuation("permission", prompt))

        assert recorder.tool.error is not None
        assert recorder.tool.error[2] == "program_not_allowed"

    @pytest.mark.parametrize(
        ("text", "tool_name"), [("run ls", "Run"), ("write README.md: x", "Write")]
    )
    async def test_that_is_denied_does_nothing(
        self, run: Run, lose: Run, workspace: Workspace, text: str, tool_name: str
    ) -> None:
        before = content_of(workspace)
        asked = await lose(text)

        answer = permission(asked, "denied", message="too late")
        recorder = await run("…", continuation=answer)

        assert recorder.of_kind("tool") == []
        assert recorder.answer == (
            f"You did not allow `{tool_name}`, so nothing was changed or run. "
            "You said: too late"
        )
        assert content_of(workspace) == before

    @pytest.mark.parametrize(
        "prompt",
        [
            {"tool_name": "Bash", "tool_input": '{"command":"ls"}'},
            {"tool_name": "Run", "tool_input": "ls"},
            {"tool_name": "Run", "tool_input": '{"command":5}'},
            {"tool_name": "Run", "tool_input": '"ls"'},
            {"tool_name": "Write", "tool_input": '{"file_path":"README.md"}'},
            {"tool_name": "Write"},
            {},
        ],
    )
    async def test_for_the_call_of_another_engine_does_nothing(
        self, run: Run, prompt: dict[str, Any]
    ) -> None:
        recorder = await run("…", continuation=continuation("permission", prompt))

        assert recorder.of_kind("tool") == []
        assert recorder.answer.startswith(CANNOT_GO_ON)


class TestQuestion:
    @pytest.mark.parametrize(
        ("said", "tool_name", "part"),
        [
            ("read plan.md", "Read", "Order ten planks"),
            ("please count plan.md", "Count", "docs/plan.md"),
            ("search larch in plan.md", "Search", "docs/plan.md:4:"),
            ("diff plan.md notes/plan.md", "Diff", "+++ notes/plan.md"),
        ],
    )
    async def test_resumes_what_was_asked_for(
        self, run: Run, said: str, tool_name: str, part: str
    ) -> None:
        answer = question("plan.md", said, selected_options=["docs/plan.md"])

        recorder = await run("…", continuation=answer)

        assert recorder.questions == []
        assert recorder.tool.name == tool_name
        assert part in str(recorder.tool.output)

    async def test_asks_what_the_engine_asked(self, run: Run) -> None:
        """The question of a turn holds all that a later turn needs."""
        asked = await run("read plan.md")
        ((words, _),) = asked.questions

        answer = continuation(
            "question", {"question": words}, selected_options=["notes/plan.md"]
        )
        recorder = await run("…", continuation=answer)

        assert recorder.tool.shown_as["file_path"] == "notes/plan.md"

    async def test_asks_about_another_name_of_the_same_command(
        self, run: Run, workspace: Workspace
    ) -> None:
        for folder in ("docs", "notes"):
            (workspace.disk.root / folder / "x.md").write_text("x\n")
        said = question("x.md", "diff plan.md x.md", selected_options=["notes/x.md"])
        chosen = Answer(approved=True, selected=["docs/plan.md"], custom_text="")

        recorder = await run("…", Recorder(answer_with=chosen), continuation=said)

        assert len(recorder.questions) == 1
        assert recorder.tool.input == {
            "old_path": "docs/plan.md",
            "new_path": "notes/x.md",
        }

    async def test_is_remembered(self, run: Run) -> None:
        said = question("plan.md", "read plan.md", selected_options=["docs/plan.md"])
        await run("…", continuation=said)

        recorder = await run("read plan.md")

        assert recorder.questions == []
        assert recorder.tool.shown_as["file_path"] == "docs/plan.md"

    async def test_takes_a_path_of_the_users_own(self, run: Run) -> None:
        said = question(
            "plan.md", "read plan.md", selected_options=[], custom_text="`README.md`"
        )

        recorder = await run("…", continuation=said)

        assert recorder.tool.shown_as["file_path"] == "README.md"

    async def test_takes_no_other_file_for_one_that_is_gone(
        self, run: Run, workspace: Workspace
    ) -> None:
        (workspace.disk.root / "docs/plan.md").unlink()
        said = question("plan.md", "read plan.md", selected_options=["docs/plan.md"])

        recorder = await run("…", continuation=said)

        assert recorder.tool.error is not None
        assert recorder.tool.error[2] == "not_found"

    async def test_that_is_declined_does_nothing(self, run: Run) -> None:
        said = question("plan.md", "read plan.md", decision="denied")

        recorder = await run("…", continuation=said)

        assert recorder.of_kind("tool") == []
        assert (
            recorder.answer == "All right, I leave `plan.md` alone: nothing was done."
        )

    @pytest.mark.parametrize(
        "asked",
        [
            "Which color?",
            question_about("plan.md", found=2, said="write plan.md: x"),
            question_about("plan.md", found=2, said="read README.md"),
            "",
        ],
    )
    async def test_of_somebody_else_does_nothing(self, run: Run, asked: str) -> None:
        said = continuation("question", {"question": asked}, custom_text="red")

        recorder = await run("…", continuation=said)

        assert recorder.of_kind("tool") == []
        assert recorder.answer.startswith(CANNOT_GO_ON)


@pytest.mark.parametrize("kind", ["plan_review", "step_decision", "new_kind"])
async def test_answer_of_another_kind_gets_a_helpful_reply(run: Run, kind: str) -> None:
    recorder = await run("…", continuation=continuation(kind, {"goal": "x"}))

    assert recorder.of_kind("tool") == []
    assert recorder.answer.startswith(CANNOT_GO_ON)
    assert "`help`" in recorder.answer
