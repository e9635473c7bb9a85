"""Files that engines make: their cards, and who names them."""

import contextlib
import io
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from cards.engine import Artifact, EngineError
from cards.engine.block import close_open_below
from cards.protocol.kinds import CloseStatus
from tests.unit.cards.engine.stage import Log, Stage


def payload(log: Log, card_id: str) -> dict[str, Any]:
    (frame,) = log.of(card_id, "card.add")
    added: dict[str, Any] = frame["payload"]
    return added


class TestArtifact:
    async def test_is_kept_and_shown_by_a_card_that_never_closes(
        self, stage: Stage
    ) -> None:
        """EMIT 5, 10; HC-46."""
        report = await stage.turn.artifact(
            "report.md", "# Done", role="report", description="All of it"
        )

        log = await stage.log()
        assert stage.artifacts.kept == {"report.md": [b"# Done"]}
        assert payload(log, "art_1") == {
            "artifact_id": "art_1",
            "name": "report.md",
            "type": "file",
            "mime_type": "text/plain",
            "size_bytes": 6,
            "description": "All of it",
            "role": "report",
            "uri": "artifact://art_1",
            "version": 1,
        }
        assert log.of("art_1", "card.close") == []
        assert log.only("artifact")["hint"]["title"] == "report.md"
        assert report.uri == "artifact://art_1"
        assert report.ref() == {
            "artifact_id": "art_1",
            "name": "report.md",
            "type": "file",
            "mime_type": "text/plain",
            "size_bytes": 6,
            "description": "All of it",
            "role": "report",
        }

    async def test_of_the_same_name_is_the_next_version_with_a_card_of_its_own(
        self, stage: Stage
    ) -> None:
        """Ruling E7: no card id twice."""
        first = await stage.turn.artifact("a.txt", "one")
        second = await stage.turn.artifact("a.txt", "two")

        cards = (await stage.log()).added("artifact")
        assert [card["payload"]["version"] for card in cards] == [1, 2]
        assert [card["payload"]["artifact_id"] for card in cards] == ["art_1", "art_1"]
        assert cards[0]["envelope"]["card_id"] == "art_1"
        assert cards[1]["envelope"]["card_id"].startswith("art_")
        assert (first.version, second.version) == (1, 2)

    async def test_shows_its_icon_as_base64(self, stage: Stage) -> None:
        """EMIT 10.9: `thumbnail` is a PNG."""
        stage.artifacts.icon = b"\x89PNG"

        await stage.turn.artifact("a.png", b"\x89PNG and more")

        added = payload(await stage.log(), "art_1")
        assert added["thumbnail"] == b64encode(b"\x89PNG").decode()

    @pytest.mark.parametrize(
        ("content", "kept"),
        [
            ("", b""),
            ("größer ☃", "größer ☃".encode()),
            ("half \ud83d of a pair", b"half ? of a pair"),
            (b"\x00\xff", b"\x00\xff"),
            (bytearray(b"abc"), b"abc"),
            (memoryview(b"abcdef")[::2].tobytes(), b"ace"),
            (io.BytesIO(b"from a file"), b"from a file"),
            ("x" * 600_000, b"x" * 600_000),
            (b"y" * 600_000, b"y" * 600_000),
        ],
    )
    async def test_takes_text_and_bytes(
        self, stage: Stage, content: Any, kept: bytes
    ) -> None:
        await stage.turn.artifact("a", content)

        assert stage.artifacts.kept["a"] == [kept]

    async def test_takes_the_path_of_a_file(self, stage: Stage, tmp_path: Path) -> None:
        path = tmp_path / "made.bin"
        path.write_bytes(b"z" * 300_000)

        await stage.turn.artifact("made.bin", path)

        assert stage.artifacts.kept["made.bin"] == [b"z" * 300_000]

    async def test_tells_of_a_path_that_is_not_there(
        self, stage: Stage, tmp_path: Path
    ) -> None:
        with pytest.raises(FileNotFoundError):
            await stage.turn.artifact("a", tmp_path / "missing")

        assert (await stage.log()).added("artifact") == []

    @pytest.mark.parametrize("content", [None, 3, ["a"], {"a": 1}])
    async def test_refuses_what_has_no_bytes(self, stage: Stage, content: Any) -> None:
        with pytest.raises(TypeError, match="allowed: text, bytes, a path"):
            await stage.turn.artifact("a", content)

    async def test_refuses_a_file_of_text(self, stage: Stage) -> None:
        content: Any = io.StringIO("words")

        with pytest.raises(TypeError, match="open it for reading bytes"):
            await stage.turn.artifact("a", content)

    async def test_that_is_not_kept_has_no_card(self, stage: Stage) -> None:
        stage.artifacts.refusal = EngineError("dependency_fail", "the disk is full")

        with pytest.raises(EngineError, match="the disk is full"):
            await stage.turn.artifact("a", "text")

        assert (await stage.log()).added("artifact") == []

    async def test_of_an_ended_turn_is_not_shown(self, stage: Stage) -> None:
        """Ruling E12."""
        stage.end_turn()

        await stage.turn.artifact("a", "text")

        assert (await stage.log()).added("artifact") == []
        assert not stage.artifacts.files[0].is_wanted()


class TestArtifactRefs:
    """EMIT 10: tools, agents and steps name in their close what was made in them."""

    async def test_of_all_blocks_around(self, stage: Stage) -> None:
        async with stage.turn.agent("writer") as agent, agent.tool("Write") as tool:
            report = await agent.artifact("report.md", "text")

        log = await stage.log()
        (card,) = log.added("artifact")
        assert card["envelope"]["parent_card_id"] == tool.card_id
        assert card["envelope"]["agent_id"] == agent.card_id
        assert log.inner(tool.card_id) == {"artifacts": [report.ref()]}
        assert log.inner(agent.card_id) == {"artifacts": [report.ref()]}

    async def test_of_a_step_that_delivers_what_it_made(self, stage: Stage) -> None:
        """EMIT 13: `deliverables` of the step."""
        steps: list[Any] = [{"id": "s1", "description": "Write"}]
        async with stage.turn.plan(goal="A report", steps=steps) as plan:
            async with plan.step("s1") as step:
                await step.running()
                async with stage.turn.agent("writer") as agent:
                    report = await agent.artifact("report.md", "text")
                step.finish("Written")

        inner = (await stage.log()).inner(step.card_id)
        assert inner["deliverables"] == [report.artifact_id]
        assert inner["artifacts"] == [report.ref()]
        assert inner["output_summary"] == "Written"

    async def test_of_a_step_that_says_what_it_delivers(self, stage: Stage) -> None:
        steps: list[Any] = [{"id": "s1", "description": "Write"}]
        async with stage.turn.plan(goal="A report", steps=steps) as plan:
            async with plan.step("s1") as step:
                await stage.turn.artifact("draft.md", "text")
                step.finish(deliverables=["art_other"])

        inner = (await stage.log()).inner(step.card_id)
        assert inner["deliverables"] == ["art_other"]

    async def test_that_a_result_names_come_first_and_once(self, stage: Stage) -> None:
        earlier = await stage.turn.artifact("earlier.md", "text")
        async with stage.turn.tool("Write") as tool:
            made = await stage.turn.artifact("made.md", "text")
            tool.result("two files", artifacts=[earlier, made])

        inner = (await stage.log()).inner(tool.card_id)
        assert inner["artifacts"] == [earlier.ref(), made.ref()]

    async def test_once_for_all_versions_and_of_the_newest(self, stage: Stage) -> None:
        async with stage.turn.tool("Write") as tool:
            await stage.turn.artifact("a.md", "text")
            newest = await stage.turn.artifact("a.md", "longer text")

        inner = (await stage.log()).inner(tool.card_id)
        assert inner["artifacts"] == [newest.ref()]

    async def test_of_a_failed_tool_are_named_all_the_same(self, stage: Stage) -> None:
        with pytest.raises(ZeroDivisionError):
            async with stage.turn.tool("Write") as tool:
                made = await stage.turn.artifact("a.md", "text")
                raise ZeroDivisionError

        assert (await stage.log()).inner(tool.card_id) == {"artifacts": [made.ref()]}

    async def test_are_bounded(self, stage: Stage) -> None:
        async with stage.turn.tool("Write") as tool:
            for number in range(300):
                await stage.turn.artifact(f"{number}.txt", "text")

        log = await stage.log()
        assert len(log.inner(tool.card_id)["artifacts"]) == 256
        assert len(log.added("artifact")) == 300

    @pytest.mark.parametrize("artifacts", ["report.md", ["report.md"], [{"a": 1}]])
    async def test_are_of_kept_files_only(self, stage: Stage, artifacts: Any) -> None:
        async with stage.turn.tool("Write") as tool:
            with pytest.raises(TypeError, match="artifacts"):
                tool.result("done", artifacts=artifacts)

    def test_leave_out_what_is_not_known(self) -> None:
        plain = Artifact(
            artifact_id="art_1",
            name="a",
            version=1,
            type="file",
            mime_type="text/plain",
            size_bytes=0,
            role="",
            description="",
        )

        assert plain.ref() == {
            "artifact_id": "art_1",
            "name": "a",
            "type": "file",
            "mime_type": "text/plain",
            "size_bytes": 0,
        }


class TestMentions:
    """Ruling E21; EMIT 13; HC-48, HC-49."""

    async def test_become_links_across_chunks(self, stage: Stage) -> None:
        await stage.turn.artifact("report.md", "text")
        async with stage.turn.message() as message:
            for chunk in ("Done: rep", "or", "t.m", "d", ". Bye"):
                await message.text(chunk)

        text = (await stage.log()).text(message.card_id)
        assert text == "Done: [report.md](artifact://art_1). Bye"

    async def test_are_known_from_when_they_are_kept(self, stage: Stage) -> None:
        async with stage.turn.message() as message:
            await message.text("I write report.md now.\n\n")
            await stage.turn.artifact("report.md", "text")
            await message.text("See report.md!\n")

        text = (await stage.log()).text(message.card_id)
        assert text == (
            "I write report.md now.\n\nSee [report.md](artifact://art_1)!\n"
        )

    @pytest.mark.parametrize("is_failing", [False, True])
    async def test_held_back_go_before_the_close_however_it_comes(
        self, stage: Stage, *, is_failing: bool
    ) -> None:
        await stage.turn.artifact("report.md", "text")
        with contextlib.suppress(ZeroDivisionError):
            async with stage.turn.message() as message:
                await message.text("See report.md")
                if is_failing:
                    raise ZeroDivisionError

        log = await stage.log()
        assert log.text(message.card_id) == "See [report.md](artifact://art_1)"
        assert [f["type"] for f in log.of(message.card_id)][-1] == "card.close"

    async def test_held_back_go_before_a_close_from_above(self, stage: Stage) -> None:
        """Rulings E10, E13: by an interrupt or the watchdog."""
        await stage.turn.artifact("report.md", "text")
        message = await stage.turn.message().__aenter__()
        await message.text("See report.m")

        close_open_below(stage.builder, stage.turn_card, CloseStatus.CANCELLED, None)

        log = await stage.log()
        assert log.text(message.card_id) == "See report.m"
        assert log.closing(message.card_id) == {"status": "cancelled"}

    async def test_are_what_was_said(self, stage: Stage) -> None:
        """The next turns are shown the words as the log has them."""
        await stage.turn.artifact("report.md", "text")
        async with stage.turn.message() as message:
            await message.text("See report")
            await message.text(".md")
            await message.text("")

        log = await stage.log()
        assert stage.context.said_text == "See [report.md](artifact://art_1)"
        assert stage.context.said_text == log.text(message.card_id)

    async def test_of_the_user_stay_what_was_said(self, stage: Stage) -> None:
        await stage.turn.artifact("report.md", "text")
        async with stage.turn.message(role="user") as message:
            await message.text("Change report.md!")

        log = await stage.log()
        assert log.text(message.card_id) == "Change report.md!"
        assert stage.context.heard_texts == ["Change report.md!"]

    async def test_in_thinking_and_tool_input_stay(self, stage: Stage) -> None:
        await stage.turn.artifact("report.md", "text")
        async with stage.turn.message() as message:
            await message.tool_input('{"path":"report.md"}')
            async with stage.turn.thinking() as thinking:
                await thinking.text("report.md is next")

        log = await stage.log()
        assert log.text(message.card_id) == '{"path":"report.md"}'
        assert log.text(thinking.card_id) == "report.md is next"

    async def test_held_back_are_a_sign_of_life(self, stage: Stage) -> None:
        """Ruling E13: a message whose words wait is not silent."""
        await stage.turn.artifact("report.md", "text")
        async with stage.turn.message() as message:
            stage.clock.now_ms += 1000
            await message.text("report.m")

            assert message.card.last_event_ms == stage.clock.now_ms
