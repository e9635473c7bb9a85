"""Files that the engine keeps for its user."""

from cards.engine import EngineError
from cards.engines.workspace.commands import WriteFile
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.writing import write_file
from tests.unit.cards.engines.workspace.recording import (
    Ask,
    Recorder,
    recorded_turn,
)


class TestWrite:
    async def test_keeps_what_it_wrote_for_the_user(self, ask: Ask) -> None:
        recorder = await ask("write notes/new.md: one")

        assert recorder.kept == [("notes-new.md", b"one\n")]
        assert recorder.answer == (
            "`notes/new.md` is written: 4 B. You can open it here: notes-new.md"
        )

    async def test_keeps_all_of_what_it_appended_to(self, ask: Ask) -> None:
        await ask("write a.txt: one")
        recorder = await ask("append a.txt: two")

        assert recorder.kept == [("a.txt", b"one\ntwo\n")]
        assert recorder.answer.endswith("You can open it here: a.txt")

    async def test_tells_when_it_cannot_be_kept(self, workspace: Workspace) -> None:
        """It is written all the same."""
        recorder = Recorder(refusal=EngineError("overloaded", "the disk is full"))
        turn = recorded_turn(recorder, "write a.txt: one")

        await write_file(turn, workspace, WriteFile("a.txt", "one"))

        assert (workspace.disk.root / "a.txt").read_text() == "one\n"
        assert recorder.tool.status == "ok"
        assert "It cannot be opened here: The service is busy" in recorder.answer


class TestReport:
    async def test_is_written_into_a_file_and_kept(
        self, ask: Ask, workspace: Workspace
    ) -> None:
        """EMIT 13."""
        recorder = await ask("report on notes")

        text = (workspace.disk.root / "notes-report.md").read_text()
        assert recorder.kept == [("notes-report.md", text.encode())]
        assert text.startswith("# Report on `notes`\n\n2 files, 11 lines, 46 words")
        assert "| `notes/ideas.md` | 5 |" in text
        assert (
            "- `notes/ideas.md`, line 4: `- TODO: ask the neighbours about the ladder.`"
        ) in text
        assert recorder.answer.endswith("You can open it here: notes-report.md")
        assert [card.name for card in recorder.of_kind("tool")] == ["Report", "Write"]

    async def test_does_not_tell_of_earlier_reports(
        self, ask: Ask, workspace: Workspace
    ) -> None:
        await ask("report")
        before = (workspace.disk.root / "report.md").read_text()
        await ask("report on notes")
        await ask("report")

        assert (workspace.disk.root / "report.md").read_text() == before

    async def test_on_what_is_not_there_writes_nothing(
        self, ask: Ask, workspace: Workspace
    ) -> None:
        recorder = await ask("report on nowhere")

        assert recorder.tool.status == "failed"
        assert "There is no `nowhere`" in recorder.answer
        assert recorder.kept == []
        assert not list(workspace.disk.root.glob("*report.md"))

    async def test_shows_twenty_rows_and_admits_the_rest(
        self, ask: Ask, workspace: Workspace
    ) -> None:
        (workspace.disk.root / "many").mkdir()
        for number in range(30):
            file = workspace.disk.root / "many" / f"{number:02}.txt"
            file.write_text("TODO\n" * (number + 1))

        await ask("report on many")

        text = (workspace.disk.root / "many-report.md").read_text()
        assert text.count("| `many/") == 20
        assert "And 10 more files." in text
        assert text.count("- `many/") == 20
        assert "- and more" in text
