"""Files that come with a message."""

import dataclasses

import pytest

from cards.engine import Continuation, EngineError
from cards.engines.workspace.engine import WorkspaceEngine
from cards.engines.workspace.limits import Limits
from tests.unit.cards.engine.files import file_block
from tests.unit.cards.engines.workspace.recording import Recorder, Run, recorded_turn


class TestFilesOfAMessage:
    async def test_are_shown_as_text(self, run: Run) -> None:
        recorder = await run("look", files=[file_block(b"one\ntwo\n", name="a.py")])

        assert recorder.tool.output == "one\ntwo\n"
        assert recorder.tool.shown_as["language"] == "python"
        assert recorder.tool.input == {"artifact_id": "art_1", "name": "a.py"}
        assert recorder.steps == [
            *("open message", "ok message"),
            *("open tool:Read", "ok tool:Read"),
            *("open message", "ok message"),
        ]
        said = recorder.cards[-1].said
        assert said == "`a.py` is text/plain of 8 B with 2 lines."

    @pytest.mark.parametrize(
        "content", [b"a\0b", b"\xff\xfe\xfd", b"\x89PNG\r\n\x1a\n\0"]
    )
    async def test_are_named_when_they_are_no_text(
        self, run: Run, content: bytes
    ) -> None:
        block = file_block(content, name="a.png", mime_type="image/png")

        recorder = await run("look", files=[block])

        assert recorder.tool.output == f"image/png, {len(content)} B"
        assert recorder.cards[-1].said == f"`a.png` is image/png of {len(content)} B."

    async def test_may_be_empty(self, run: Run) -> None:
        recorder = await run("", files=[file_block(b"")])

        assert recorder.cards[-1].said == "`a.txt` is text/plain of 0 B with 0 lines."

    async def test_are_cut_between_characters(
        self, engine: WorkspaceEngine, run: Run
    ) -> None:
        _limit(engine, read_bytes=3)

        recorder = await run("look", files=[file_block("é".encode() * 400_000)])

        assert recorder.tool.output == "é"
        assert recorder.tool.shown_as["metadata"] == {
            "size_bytes": 800_000,
            "is_cut": True,
        }
        assert recorder.cards[-1].said.endswith("; the card above shows its first 3 B.")

    async def test_are_looked_at_in_order_up_to_a_limit(
        self, engine: WorkspaceEngine, run: Run
    ) -> None:
        _limit(engine, attached_files=2)
        names = ["a.txt", "b.txt", "c.txt", "d.txt"]

        recorder = await run("", files=[file_block(b"x", name=name) for name in names])

        tools = [card for card in recorder.cards if card.kind == "tool"]
        assert [tool.intent for tool in tools] == ["read a.txt", "read b.txt"]
        assert "- `d.txt` is text/plain of 1 B" in recorder.cards[-1].said

    async def test_leave_the_words_beside_them_alone(self, run: Run) -> None:
        """They might be a remark, or mean the file."""
        recorder = await run("write x.md: hi", files=[file_block(b"x")])

        assert recorder.steps.count("open tool:Read") == 1
        assert "open tool:Write" not in recorder.steps

    async def test_are_not_looked_at_again_with_a_late_answer(self, run: Run) -> None:
        """Spec: Ruling E15."""
        late = Continuation(
            kind="permission", request_id="r", decision="denied", payload={}, prompt={}
        )

        recorder = await run("no", files=[file_block(b"x")], continuation=late)

        assert "open tool:Read" not in recorder.steps

    async def test_that_are_gone_fail_the_turn(self, engine: WorkspaceEngine) -> None:
        async def gone() -> object:
            raise FileNotFoundError

        block = file_block(b"x", open_file=gone)  # type: ignore[arg-type]
        recorder = Recorder()

        with pytest.raises(EngineError):
            await engine.run(recorded_turn(recorder, "look", files=[block]))

        assert recorder.tool.status == "failed"


def _limit(engine: WorkspaceEngine, **limits: int) -> None:
    workspace = engine._workspace
    workspace.limits = dataclasses.replace(Limits(), **limits)
