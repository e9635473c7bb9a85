"""Which of several files a name means."""

import pytest

from cards.engine import Answer
from cards.engines.workspace import choosing
from cards.engines.workspace.choosing import asked_in, question_about
from cards.engines.workspace.files import Workspace
from tests.unit.cards.engines.workspace.recording import Recorder, Run


def answering(*selected: str, custom_text: str = "") -> Recorder:
    """Return the recorder of a user who answers like this."""
    answer = Answer(approved=True, selected=selected, custom_text=custom_text)
    return Recorder(answer_with=answer)


def make(workspace: Workspace, *paths: str) -> None:
    for path in paths:
        (workspace.disk.root / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace.disk.root / path).write_text("x\n")


class TestQuestion:
    @pytest.mark.parametrize("name", ["plan.md", "PLAN.MD", "plan"])
    async def test_offers_the_paths_that_have_the_name(
        self, run: Run, name: str
    ) -> None:
        recorder = await run(f"read {name}", answering("notes/plan.md"))

        assert recorder.questions == [
            (
                f'Which "{name}" do you mean?\n\nYou said: read {name}',
                ["docs/plan.md", "notes/plan.md"],
            )
        ]
        assert recorder.tool.shown_as["file_path"] == "notes/plan.md"
        assert "`notes/plan.md`" in recorder.answer

    @pytest.mark.parametrize(
        ("text", "part"),
        [
            ("count plan.md", "notes/plan.md"),
            ("search larch in plan.md", "notes/plan.md:"),
            ("stream plan.md every 0 ms", "notes/plan.md"),
            ("list plan.md", "plan.md"),
            ("diff plan.md README.md", "--- notes/plan.md"),
            ("diff README.md plan.md", "+++ notes/plan.md"),
        ],
    )
    async def test_is_asked_by_every_command_that_looks_for_names(
        self, run: Run, text: str, part: str
    ) -> None:
        recorder = await run(text, answering("notes/plan.md"))

        assert len(recorder.questions) == 1
        assert part in str(recorder.tool.output)

    async def test_is_asked_for_each_name(self, run: Run, workspace: Workspace) -> None:
        await run("help")
        make(workspace, "a/x.md", "b/x.md")
        recorder = Recorder(
            answer_with=Answer(approved=True, selected=(), custom_text="README.md")
        )

        await run("diff plan.md x.md", recorder)

        assert [
            question.partition(" do ")[0] for question, _ in recorder.questions
        ] == [
            'Which "plan.md"',
            'Which "x.md"',
        ]

    @pytest.mark.parametrize(
        "text",
        ["read docs/plan.md", "read README", "read none", "read ../plan.md", "list"],
    )
    async def test_is_not_asked_when_there_is_no_choice(
        self, run: Run, text: str
    ) -> None:
        assert (await run(text)).questions == []

    @pytest.mark.parametrize("text", ["write plan.md: x", "append plan.md: x"])
    async def test_is_not_asked_about_what_is_written(
        self, run: Run, workspace: Workspace, text: str
    ) -> None:
        assert (await run(text)).questions == []
        assert (workspace.disk.root / "plan.md").read_text() == "x\n"

    async def test_offers_ten_paths_and_says_that_there_are_more(
        self, run: Run, workspace: Workspace
    ) -> None:
        await run("help")
        make(workspace, *(f"many/{number:02}/x.md" for number in range(12)))

        recorder = await run("read x.md", answering(custom_text="many/11/x.md"))

        ((question, options),) = recorder.questions
        assert "12 entries have that name; these are the first 10." in question
        assert options == [f"many/{number:02}/x.md" for number in range(10)]
        assert recorder.tool.shown_as["file_path"] == "many/11/x.md"

    async def test_that_is_declined_does_nothing(self, run: Run) -> None:
        recorder = await run("read plan.md")

        assert recorder.of_kind("tool") == []
        assert (
            recorder.answer == "All right, I leave `plan.md` alone: nothing was done."
        )

    async def test_offers_each_label_once(self, run: Run, workspace: Workspace) -> None:
        await run("help")
        make(workspace, "odd /x.md", "odd\udcff/x.md", "odd\udcfe/x.md")

        recorder = await run("read x.md", answering("odd?/x.md"))

        ((_, options),) = recorder.questions
        assert options == ["odd /x.md", "odd?/x.md"]
        assert recorder.tool.output == "x\n"


class TestOwnAnswer:
    @pytest.mark.parametrize(
        "text", ["notes/plan.md", "`notes/plan.md`", "./notes/plan.md"]
    )
    async def test_may_be_a_path(self, run: Run, text: str) -> None:
        recorder = await run("read plan.md", answering(custom_text=text))

        assert recorder.tool.shown_as["file_path"] == "notes/plan.md"

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("the second one", "not_found"),
            ("../secret", "outside_workspace"),
            ("/etc/passwd", "outside_workspace"),
            ("plan", "ambiguous_name"),
            ("x" * 100_000, "bad_name"),
        ],
    )
    async def test_is_looked_at_like_any_name(
        self, run: Run, text: str, code: str
    ) -> None:
        recorder = await run("read plan.md", answering(custom_text=text))

        assert recorder.tool.error is not None
        assert recorder.tool.error[2] == code
        assert len(recorder.cards[0].said) < 1_100

    async def test_beside_a_choice_is_a_remark(self, run: Run) -> None:
        recorder = await run(
            "read plan.md", answering("docs/plan.md", custom_text="the newer one")
        )

        assert recorder.tool.shown_as["file_path"] == "docs/plan.md"


class TestMemory:
    async def test_keeps_a_choice_for_the_session(self, run: Run) -> None:
        await run("read plan.md", answering("notes/plan.md"))

        recorder = await run("count plan.md")

        assert recorder.questions == []
        assert "notes/plan.md" in str(recorder.tool.output)

    async def test_is_of_one_session(self, run: Run) -> None:
        await run("read plan.md", answering("notes/plan.md"))

        recorder = await run("read plan.md", session_id="sess_2")

        assert len(recorder.questions) == 1

    async def test_holds_only_what_was_offered(self, run: Run) -> None:
        await run("read plan.md", answering(custom_text="README.md"))

        assert len((await run("read plan.md")).questions) == 1

    async def test_forgets_a_file_that_is_gone(
        self, run: Run, workspace: Workspace
    ) -> None:
        await run("help")
        make(workspace, "x/plan.md")
        await run("read plan.md", answering("x/plan.md"))
        (workspace.disk.root / "x/plan.md").unlink()

        assert len((await run("read plan.md")).questions) == 1

    async def test_is_bounded(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(choosing, "_REMEMBERED", 2)
        for number in (1, 2, 1, 3):
            answers = answering("docs/plan.md")
            await run("read plan.md", answers, session_id=f"sess_{number}")
        asked = [
            len((await run("read plan.md", session_id=f"sess_{number}")).questions)
            for number in (1, 2, 3)
        ]

        # Which one goes is the one that was chosen first.
        assert asked == [1, 0, 0]


class TestAskedIn:
    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("plan.md", "read plan.md"),
            ('a "b" do you mean? c', "read 'a \"b\" do you mean? c'"),
            ("x", "diff x\n\nYou said: y"),
        ],
    )
    @pytest.mark.parametrize("found", [2, 2000])
    def test_finds_what_was_asked(self, name: str, said: str, found: int) -> None:
        question = question_about(name, found=found, said=said)

        assert asked_in(question) == (name, said)

    @pytest.mark.parametrize("question", ["", "Which color?", 'Which "x" do you mean?'])
    def test_knows_no_other_question(self, question: str) -> None:
        assert asked_in(question) is None
