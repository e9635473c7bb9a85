"""The examples of docs/engine-api.md do what is said there."""

import re
from dataclasses import replace
from typing import Any

import pytest

from cards.engine import Continuation, Engine, TextBlock
from cards.protocol.json_form import JSONValue
from tests.services import PROJECT
from tests.unit.cards.engine.files import file_block
from tests.unit.cards.engine.stage import LAPSED, Log, Stage

GUIDE = (PROJECT / "docs" / "engine-api.md").read_text()

EXAMPLES = {
    re.findall(r"class (\w+)\(Engine\)", block)[0]: block
    for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
}


async def play(stage: Stage, name: str, *answers: tuple[str, dict[str, Any]]) -> Log:
    """Run an example with these answers and return what is in the log."""
    stage.desk.answers.extend(answers)
    engine = engine_of(name)
    await engine.run(stage.turn)
    return await stage.log()


def engine_of(name: str) -> Engine:
    names: dict[str, Any] = {}
    exec(EXAMPLES[name], names)  # noqa: S102 - our own documentation
    engine: Engine = names[name]()
    return engine


def text_of(log: Log) -> str:
    return "".join(
        log.text(frame["envelope"]["card_id"]) for frame in log.added("message")
    )


class TestExamples:
    def test_are_all_played_here(self) -> None:
        assert list(EXAMPLES) == [
            "Assistant",
            "Reader",
            "Writer",
            "Careful",
            "Photographer",
            "Patient",
        ]

    async def test_show_work(self, stage: Stage) -> None:
        log = await play(stage, "Assistant")

        assert {status for _, status in log.closes()} == {"ok"}
        assert text_of(log).endswith("Done.")

    async def test_read_files(self, stage: Stage) -> None:
        blocks = [TextBlock({"type": "text", "text": "Read them"})]
        files = [
            file_block(b"one two", name="a.txt", mime_type="text/plain"),
            file_block(b"\0" * 300_000, name="b.bin", mime_type="application/x"),
        ]
        stage.turn.input = replace(stage.turn.input, blocks=[*blocks, *files])

        log = await play(stage, "Reader")

        assert text_of(log) == "a.txt has 2 words.b.bin has 300000 bytes."

    async def test_write_files(self, stage: Stage) -> None:
        log = await play(stage, "Writer")

        assert stage.artifacts.kept == {"tides.md": [b"# Tides\n"]}
        assert text_of(log) == "Done: [tides.md](artifact://art_1)."
        (tool,) = log.added("tool")
        assert log.inner(tool["envelope"]["card_id"])["output"] == "8 bytes written"

    async def test_ask(self, stage: Stage) -> None:
        log = await play(
            stage,
            "Careful",
            ("approved", {"selected_options": ["short"], "custom_text": ""}),
            ("approved", {"reason": ""}),
            ("approved", {"scope": "once", "message": ""}),
        )

        assert [str(prompt.kind) for prompt in stage.desk.prompts] == [
            "question",
            "plan_review",
            "permission",
        ]
        assert log.closes()[0] == ("tool", "ok")
        assert text_of(log) == "Doing look, write, short."

    async def test_go_on_without_an_answer(self, stage: Stage) -> None:
        log = await play(
            stage,
            "Careful",
            (LAPSED, {}),
            ("approved", {"reason": ""}),
            ("denied", {"scope": "once", "message": ""}),
        )

        (tool,) = log.added("tool")
        error = log.closing(tool["envelope"]["card_id"])["error"]
        assert (error["type"], error["message"]) == (
            "permission_denied",
            "the user said no",
        )
        assert text_of(log) == "Doing look, write, my way."

    @pytest.mark.parametrize(
        ("status", "closed", "text"),
        [
            ("success", "ok", "Smile! Nice."),
            ("denied", "failed", "Smile! Never mind."),
        ],
    )
    async def test_call_the_client(
        self, stage: Stage, status: str, closed: str, text: str
    ) -> None:
        log = await play(stage, "Photographer", (status, {}))

        assert ("tool", closed) in log.closes()
        assert text_of(log) == text

    async def test_go_on_with_an_answer_of_a_turn_that_is_gone(
        self, stage: Stage
    ) -> None:
        answered: dict[str, JSONValue] = {"selected_options": [], "custom_text": "red"}
        stage.turn.input = replace(
            stage.turn.input,
            continuation=Continuation(
                kind="question",
                request_id="req_1",
                decision="approved",
                payload=answered,
                prompt={"question": "Which colour?"},
            ),
        )

        assert text_of(await play(stage, "Patient")) == "Then red."
        assert stage.desk.prompts == []

    async def test_ask_when_there_is_none(self, stage: Stage) -> None:
        answered = {"selected_options": [], "custom_text": "blue"}

        log = await play(stage, "Patient", ("approved", answered))

        assert text_of(log) == "Then blue."
