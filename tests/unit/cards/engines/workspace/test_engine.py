"""Whole turns, as the cards show them."""

import asyncio
import dataclasses
import json
import os
from pathlib import Path

import pytest

from cards.engines.workspace import WorkspaceEngine
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.limits import Limits
from tests.unit.cards.engines.workspace.recording import Ask, Recorder, recorded_turn


def _limit(workspace: Workspace, **limits: float) -> None:
    limited = dataclasses.replace(Limits(), **limits)  # type: ignore[arg-type]
    workspace.limits = workspace.disk.limits = limited


class TestWorkspaceEngine:
    async def test_fills_the_workspace_on_first_use(
        self, engine: WorkspaceEngine, tmp_path: Path
    ) -> None:
        await engine.run(recorded_turn(Recorder(), "help"))

        assert (tmp_path / "workspace" / "README.md").is_file()

    async def test_names_the_session_by_its_first_message(
        self, engine: WorkspaceEngine
    ) -> None:
        first, second = Recorder(), Recorder()

        await engine.run(recorded_turn(first, "search  TODO\nin src"))
        await engine.run(recorded_turn(second, "help", turn_no=2))

        assert (first.title, second.title) == ("search TODO in src", None)


class TestToolReply:
    async def test_follows_the_tool_transcript(self, ask: Ask) -> None:
        """Spec: EMIT 14.2."""
        recorder = await ask("search TODO")

        assert recorder.steps == [
            *("open message", "ok message"),
            *("open tool:Search", "ok tool:Search"),
            *("open message", "ok message"),
        ]
        announced, tool = recorder.cards[0], recorder.cards[1]
        assert tool.parent is announced
        assert announced.said
        assert len(announced.input_pieces) > 1
        assert json.loads("".join(announced.input_pieces)) == tool.input

    @pytest.mark.parametrize(
        ("text", "hint"),
        [
            ("list", "file_info"),
            ("read src/app.py", "code"),
            ("search TODO", "search"),
            ("diff docs/plan.md notes/plan.md", "diff"),
            ("run ls", "terminal"),
        ],
    )
    async def test_hints_how_to_show_the_result(
        self, ask: Ask, text: str, hint: str
    ) -> None:
        recorder = await ask(text)

        assert recorder.tool.status == "ok"
        assert recorder.tool.shown_as["render_hint"] == hint

    @pytest.mark.parametrize(
        ("text", "error_type", "code"),
        [
            ("read none.txt", "invalid_input", "not_found"),
            ("read plan.md", "invalid_input", "ambiguous_name"),
            ("read ../secret", "permission_denied", "outside_workspace"),
            ("list none", "invalid_input", "not_found"),
            ("search x in none", "invalid_input", "not_found"),
            ('search ""', "invalid_input", "empty_pattern"),
            ("find `` in src", "invalid_input", "empty_pattern"),
            ("count none", "invalid_input", "not_found"),
            ("append docs: x", "invalid_input", "not_a_file"),
            ("write docs: x", "invalid_input", "not_a_file"),
            ("write ../x: x", "permission_denied", "outside_workspace"),
            ("diff README.md none", "invalid_input", "not_found"),
            ("run rm README.md", "permission_denied", "program_not_allowed"),
            ("run cat none.txt", "dependency_fail", "program_failed"),
            ("summarise README.md", "invalid_input", "not_a_folder"),
            ("stream none.txt", "invalid_input", "not_found"),
        ],
    )
    async def test_fails_the_card_and_says_why(
        self, ask: Ask, text: str, error_type: str, code: str
    ) -> None:
        recorder = await ask(text)

        assert recorder.tool.status == "failed"
        assert recorder.tool.error is not None
        assert recorder.tool.error[0] == error_type
        assert recorder.tool.error[2] == code
        assert recorder.answer == recorder.tool.error[1]


class TestList:
    async def test_names_folders_and_files(self, ask: Ask) -> None:
        recorder = await ask("list")

        assert recorder.answer.startswith("The workspace holds 5 folders and 1 file:")
        assert "- `docs/`" in recorder.answer
        assert "README.md" in str(recorder.tool.output)

    async def test_admits_what_it_leaves_out(
        self, ask: Ask, workspace: Workspace
    ) -> None:
        _limit(workspace, list_entries=2)

        recorder = await ask("list")

        assert "(more than 2 entries" in str(recorder.tool.output)
        assert "more than" in recorder.answer


class TestRead:
    async def test_shows_code_with_its_language(self, ask: Ask) -> None:
        recorder = await ask("what is in app.py?")

        assert recorder.tool.shown_as["language"] == "python"
        assert recorder.tool.shown_as["file_path"] == "src/app.py"
        assert "TODO: a discount" in str(recorder.tool.output)

    async def test_lists_a_folder_instead(self, ask: Ask) -> None:
        recorder = await ask("what is in docs?")

        assert recorder.tool.name == "List"
        assert "`guide.md`" in recorder.answer

    async def test_admits_what_it_cuts(self, ask: Ask, workspace: Workspace) -> None:
        _limit(workspace, read_bytes=10)

        recorder = await ask("read README.md")

        assert "(cut: 10 B of" in str(recorder.tool.output)
        assert "its first" in recorder.answer

    async def test_shows_no_binary(self, ask: Ask, workspace: Workspace) -> None:
        (workspace.disk.root / "x.bin").write_bytes(b"\0\1")

        recorder = await ask("read x.bin")

        assert recorder.tool.error is not None
        assert recorder.tool.error[2] == "not_text"


class TestSearch:
    async def test_shows_progress_by_file(self, ask: Ask) -> None:
        recorder = await ask("search TODO")

        ticks = [tick for tick in recorder.tool.ticks if tick["kind"] == "progress"]
        done = [tick["items_processed"] for tick in ticks]
        assert done == list(range(11))
        assert {tick["items_total"] for tick in ticks} == {10}
        assert {tick["unit"] for tick in ticks} == {"files"}

    async def test_shows_hits_with_their_neighbours(self, ask: Ask) -> None:
        recorder = await ask("search discount in src")

        output = str(recorder.tool.output)
        assert "src/app.py:10:     # TODO: a discount for regulars." in output
        assert "src/app.py-8- def total" in output
        assert "`src/app.py:10`" in recorder.answer

    async def test_says_when_nothing_matches(self, ask: Ask) -> None:
        recorder = await ask("search zebra")

        assert recorder.tool.status == "ok"
        assert recorder.answer.startswith("No match for `zebra`.")

    async def test_admits_where_it_stopped(
        self, ask: Ask, workspace: Workspace
    ) -> None:
        _limit(workspace, search_hits=2)

        recorder = await ask("search the")

        assert "Stopped after 2 matches" in str(recorder.tool.output)
        assert "Stopped after 2 matches" in recorder.answer

    async def test_admits_files_it_did_not_look_into(
        self, ask: Ask, workspace: Workspace
    ) -> None:
        (workspace.disk.root / "x.bin").write_bytes(b"\0")
        (workspace.disk.root / "y.txt").write_text("x" * 20_000)
        _limit(workspace, scan_bytes=10_000, walk_files=100)

        recorder = await ask("search zebra")

        assert "1 file left out: not text." in recorder.answer
        assert "2 files left out: too large." in recorder.answer


class TestCount:
    async def test_counts_a_folder(self, ask: Ask) -> None:
        recorder = await ask("how many lines are in notes?")

        assert recorder.answer == (
            "`notes` has 2 files with 11 lines, 46 words and 233 B."
        )
        assert "total" in str(recorder.tool.output)


class TestWrite:
    async def test_writes_and_appends(self, ask: Ask, workspace: Workspace) -> None:
        await ask("write new/a.txt: one")
        recorder = await ask("append new/a.txt: two")

        assert (workspace.disk.root / "new/a.txt").read_text() == "one\ntwo\n"
        assert recorder.tool.status == "ok"

    async def test_shows_only_the_beginning_of_a_long_content(
        self, ask: Ask, workspace: Workspace
    ) -> None:
        recorder = await ask(f"write long.txt: {'x' * 100_000}")

        assert (workspace.disk.root / "long.txt").stat().st_size == 100_001
        assert len(json.dumps(recorder.tool.input)) < 5_000
        assert len(recorder.cards[0].input_pieces) <= 40

    async def test_says_when_append_made_the_file(self, ask: Ask) -> None:
        recorder = await ask("append log.txt: one")

        assert "did not exist, so I made it" in recorder.answer


class TestDiff:
    async def test_shows_what_changed(self, ask: Ask) -> None:
        recorder = await ask("compare notes/plan.md and docs/plan.md")

        assert "-2. Order twelve planks of larch." in str(recorder.tool.output)
        assert "3 lines came and 2 lines went" in recorder.answer

    async def test_says_when_files_are_the_same(self, ask: Ask) -> None:
        recorder = await ask("diff README.md README.md")

        assert "are the same" in recorder.answer


class TestRun:
    async def test_shows_the_output(self, ask: Ask) -> None:
        recorder = await ask("run wc -l data/sales.csv")

        assert recorder.tool.output == "8 data/sales.csv\n"

    async def test_shows_the_output_of_a_failure_too(self, ask: Ask) -> None:
        recorder = await ask("run cat none.txt")

        assert "none.txt" in str(recorder.tool.output)
        assert recorder.tool.status == "failed"

    async def test_takes_no_match_of_grep_for_an_answer(self, ask: Ask) -> None:
        recorder = await ask("run grep zebra README.md")

        assert recorder.tool.status == "ok"
        assert "It printed nothing." in recorder.answer

    async def test_shows_heartbeats_and_ends_what_takes_too_long(
        self, ask: Ask, workspace: Workspace
    ) -> None:
        _limit(workspace, program_seconds=0.2, heartbeat_seconds=0.01)

        recorder = await ask("run sleep 60")

        assert any(tick["kind"] == "heartbeat" for tick in recorder.tool.ticks)
        assert recorder.tool.error is not None
        assert recorder.tool.error[0] == "tool_timeout"

    async def test_admits_what_it_cuts(self, ask: Ask, workspace: Workspace) -> None:
        _limit(workspace, program_bytes=10)

        recorder = await ask("run cat README.md")

        assert "Only the first 10 B of" in str(recorder.tool.output)
        assert "Only the first 10 B of" in recorder.answer


class TestSummarise:
    async def test_sends_an_agent_into_each_subfolder(self, ask: Ask) -> None:
        """Spec: EMIT 14.3."""
        recorder = await ask("summarise src")

        assert [agent.name for agent in recorder.of_kind("agent")] == ["tests", "web"]
        for agent in recorder.of_kind("agent"):
            assert agent.parent is recorder.tool
            assert agent.status == "ok"
            assert agent.summary
            inside = [card for card in recorder.cards if card.within is agent]
            assert [card.label for card in inside] == [
                *("tool:Count", "tool:Heads", "message"),
            ]
            assert inside[0].parent is agent
        assert "**src/web/**" in recorder.answer
        assert "`src/app.py`" in recorder.answer

    async def test_sends_them_all_at_once(self, ask: Ask) -> None:
        recorder = await ask("summarise")

        opened = [step for step in recorder.steps if "agent:" in step]
        assert opened[:5] == [
            f"open agent:{name}" for name in ("books", "data", "docs", "notes", "src")
        ]

    async def test_admits_the_folders_it_left_out(
        self, ask: Ask, workspace: Workspace
    ) -> None:
        _limit(workspace, agents=2)

        recorder = await ask("summarise")

        assert len(recorder.of_kind("agent")) == 2
        assert "3 folders more were left out" in recorder.answer

    async def test_an_agent_that_fails_fails_the_tool_but_no_other_agent(
        self, ask: Ask, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        walk = workspace.disk.walk

        def walk_but_docs(name: str) -> object:
            return walk("gone" if name == "docs" else name)

        monkeypatch.setattr(workspace.disk, "walk", walk_but_docs)

        recorder = await ask("summarise")

        status = {agent.name: agent.status for agent in recorder.of_kind("agent")}
        assert status.pop("docs") == "failed"
        assert set(status.values()) == {"ok"}
        assert recorder.tool.status == "failed"
        assert "1 folder of 5 could not be summarised" in recorder.answer


class TestPacedAnswers:
    async def test_count_to_says_every_number(self, ask: Ask) -> None:
        recorder = await ask("count to 25 every 0 ms")

        (message,) = recorder.cards
        assert message.said.split() == [str(number) for number in range(1, 26)]
        assert len(message.chunks) == 25

    async def test_count_to_refuses_what_never_ends(self, ask: Ask) -> None:
        recorder = await ask("count to 999999999")

        assert "at most 100,000" in recorder.answer

    async def test_stream_recites_the_whole_file(
        self, ask: Ask, workspace: Workspace
    ) -> None:
        recorder = await ask("stream books/lighthouse.txt every 0 ms")

        text = (workspace.disk.root / "books/lighthouse.txt").read_text()
        assert recorder.answer.endswith(text)
        assert len(recorder.cards[-1].chunks) > 1000

    async def test_an_interrupt_cancels_the_message(
        self, engine: WorkspaceEngine
    ) -> None:
        recorder = Recorder()
        turn = recorded_turn(recorder, "count to 1000 every 1000 ms")
        task = asyncio.create_task(engine.run(turn))
        recorder.on_text = lambda chunk: None if task.done() else _cancel(task)

        with pytest.raises(asyncio.CancelledError):
            await task

        assert recorder.cards[0].status == "cancelled"


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


class TestInterrupt:
    async def test_cancels_the_tool_and_its_program(
        self, engine: WorkspaceEngine, started: asyncio.Queue[int]
    ) -> None:
        recorder = Recorder()
        task = asyncio.create_task(engine.run(recorded_turn(recorder, "run sleep 60")))
        pid = await started.get()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert recorder.tool.status == "cancelled"
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    async def test_cancels_every_agent_and_its_tool(
        self, engine: WorkspaceEngine
    ) -> None:
        recorder = Recorder()
        task = asyncio.create_task(engine.run(recorded_turn(recorder, "summarise")))
        # The first words of an agent come when the others are still at work; each
        # further word is one more interrupt.
        recorder.on_text = lambda _: (
            _cancel(task) if recorder.cards[-1].within is not None else None
        )
        with pytest.raises(asyncio.CancelledError):
            await task

        status = {card.status for card in recorder.of_kind("agent")}
        assert recorder.tool.status == "cancelled"
        assert "cancelled" in status
        assert status <= {"cancelled", "ok"}
        assert "open" not in {card.status for card in recorder.cards}


class TestTalk:
    async def test_help_shows_every_command(self, ask: Ask) -> None:
        recorder = await ask("help")

        assert "| `search TEXT in FOLDER` |" in recorder.answer

    async def test_says_that_it_did_not_understand(self, ask: Ask) -> None:
        recorder = await ask("delete `everything`")

        assert "I did not understand" in recorder.answer
        assert "`help` shows all" in recorder.answer
        assert recorder.of_kind("tool") == []

    async def test_says_that_a_search_is_too_long(self, ask: Ask) -> None:
        recorder = await ask("search " + "x" * 100_000)

        assert "100,007 characters, and a command at most 2,000" in recorder.answer
        assert len(recorder.answer) < 500
        assert recorder.of_kind("tool") == []

    async def test_help_says_what_is_asked(self, ask: Ask) -> None:
        recorder = await ask("help")

        assert "I ask before I replace one" in recorder.answer
        assert "allow it for the session" in recorder.answer
        assert "ask which one you mean" in recorder.answer
