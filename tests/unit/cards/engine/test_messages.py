"""Streamed text."""

from typing import Any

import pytest

from tests.unit.cards.engine.stage import Stage


class TestMessage:
    async def test_streams_text(self, stage: Stage) -> None:
        """Spec: EMIT 6.3, 14.1."""
        async with stage.turn.message() as message:
            await message.text("Hello")
            await message.text(" World!")

        log = await stage.log()
        assert log.only("message")["payload"] == {"role": "assistant"}
        assert [f["payload"] for f in log.of(message.card_id, "card.append")] == [
            {"channel": "text", "chunk": "Hello"},
            {"channel": "text", "chunk": " World!"},
        ]
        assert log.inner(message.card_id) == {"stop_reason": "end_turn"}

    async def test_streams_tool_input_per_index(self, stage: Stage) -> None:
        """Spec: EMIT 6.3, 14.2."""
        async with stage.turn.message() as message:
            await message.tool_input('{"a":')
            await message.tool_input("[]", index=1)

        log = await stage.log()
        assert [f["payload"] for f in log.of(message.card_id, "card.append")] == [
            {"channel": "tool_input", "partial_json": '{"a":'},
            {"channel": "tool_input", "index": 1, "partial_json": "[]"},
        ]
        assert log.inner(message.card_id) == {"stop_reason": "tool_use"}

    async def test_sends_nothing_for_empty_text(self, stage: Stage) -> None:
        async with stage.turn.message() as message:
            await message.text("")
            await message.tool_input("")

        assert (await stage.log()).of(message.card_id, "card.append") == []

    async def test_ends_for_the_reason_given(self, stage: Stage) -> None:
        async with stage.turn.message() as message:
            message.stop_reason = "max_tokens"

        assert (await stage.log()).inner(message.card_id) == {
            "stop_reason": "max_tokens"
        }

    @pytest.mark.parametrize(
        ("chunk", "shown"),
        [
            ("a\ud83d", "a\ufffd"),
            ("a\0b", "a\ufffdb"),
            ("\ud83d\ude00", "😀"),
            ("实验😀", "实验😀"),
            (" \n", " \n"),
        ],
    )
    async def test_streams_text_that_is_clean(
        self, stage: Stage, chunk: str, shown: str
    ) -> None:
        """Spec: Ruling E22; cases FR-59, FR-61."""
        async with stage.turn.message() as message:
            await message.text(chunk)

        assert (await stage.log()).text(message.card_id) == shown
        assert stage.context.said_text == shown

    async def test_names_its_model_and_role(self) -> None:
        async with Stage(model="m1") as stage:
            async with stage.turn.message():
                pass
            async with stage.turn.message(role="user", model="m2"):
                pass

            payloads = [f["payload"] for f in (await stage.log()).added("message")]
        assert payloads == [
            {"role": "assistant", "model": "m1"},
            {"role": "user", "model": "m2"},
        ]

    async def test_refuses_another_role(self, stage: Stage) -> None:
        role: Any = "system"

        with pytest.raises(ValueError, match="allowed: assistant, user"):
            stage.turn.message(role=role)


class TestSaidText:
    """What the next turns know of this one."""

    async def test_is_that_of_the_assistants_messages(self, stage: Stage) -> None:
        for words in ["one", "", "two"]:
            async with stage.turn.message() as message:
                await message.text(words)

        assert stage.context.said_text == "one\n\ntwo"

    async def test_keeps_parallel_messages_apart(self, stage: Stage) -> None:
        async with stage.turn.message() as one, stage.turn.message() as two:
            await one.text("a")
            await two.text("b")
            await one.text("c")

        assert stage.context.said_text == "ac\n\nb"

    async def test_leaves_out_what_others_said(self, stage: Stage) -> None:
        async with stage.turn.message(role="user") as words:
            await words.text("the user")
        async with stage.turn.agent("worker") as agent, agent.message() as report:
            await report.text("the agent")

        assert stage.context.said_text == ""

    async def test_leaves_out_what_was_not_sent(self, stage: Stage) -> None:
        async with stage.turn.message() as message:
            await message.text("in time")
        await message.text("late")

        assert stage.context.said_text == "in time"


class TestThinking:
    async def test_streams_thoughts_and_tells_their_length(self, stage: Stage) -> None:
        """Spec: EMIT 6.3, 10."""
        async with stage.turn.thinking() as thinking:
            await thinking.text("hm")
            await thinking.text("")
            await thinking.text("m")

        log = await stage.log()
        assert log.text(thinking.card_id) == "hmm"
        assert log.inner(thinking.card_id) == {"length": 3}
        assert log.frames[2]["payload"]["channel"] == "thinking"

    async def test_of_nothing_has_no_length(self, stage: Stage) -> None:
        async with stage.turn.thinking() as thinking:
            pass

        assert (await stage.log()).inner(thinking.card_id) == {}
