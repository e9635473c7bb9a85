"""Prompts that outlive the turn, the worker or the connection that asked them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from channels.layers import InMemoryChannelLayer

from cards.database import run_in_database
from cards.engine import Continuation, Plan, PlanStep, Turn
from cards.models import Session
from cards.models import Turn as TurnRow
from tests.integration.cards.house import (
    Client,
    House,
    Play,
    running_house,
    until_at_rest,
)
from tests.integration.prompts.asking import (
    answer,
    play_everywhere,
    prompts_of,
    replies_of,
    request_of,
    say,
    states,
    text_of,
    turns_of,
    until_asked,
)

Ask = Callable[[Turn], Awaitable[object]]


@pytest_asyncio.fixture(params=["rung", "looking"])
async def houses(
    request: pytest.FixtureRequest, transactional_db: None
) -> AsyncIterator[tuple[House, House]]:
    """Two living workers, which hear of each other by rings or by looking alone."""
    layer = InMemoryChannelLayer() if request.param == "rung" else None
    async with running_house(layer=layer) as first, running_house(layer=layer) as other:
        first.hub.start()
        other.hub.start()
        yield first, other


@pytest_asyncio.fixture
async def lost(transactional_db: None) -> AsyncIterator[tuple[House, House]]:
    """A worker that the other one takes for lost, although it still breathes."""
    async with running_house(lease_s=0) as lost, running_house() as heir:
        yield lost, heir


def ask_and_say(ask: Ask, continued: list[Continuation]) -> Play:
    """Return a play that asks, or goes on with an answer when it is given one."""

    async def play(turn: Turn) -> None:
        if turn.input.continuation is not None:
            continued.append(turn.input.continuation)
            # The turn that was lost belongs to what was said.
            assert turn.history[0][:2] == ("user", "ask")
            await say("continued")(turn)
            return
        await ask(turn)
        await say("answered")(turn)

    return play


class TestTwoWorkers:
    async def test_answer_reaches_who_waits(self, houses: tuple[House, House]) -> None:
        """Spec: Rulings E15, E26; case HC-55."""

        async def play(turn: Turn) -> None:
            await say((await turn.ask("which?")).text)(turn)

        play_everywhere(houses, "ask", play)
        asking = await houses[0].connect()
        await asking.say("ask", "c1")
        request_id = request_of(await until_asked(asking))
        other = await houses[1].connect()
        assert other.transport.raw[1] in asking.transport.raw

        await answer(other, request_id, "approved", custom_text="this")
        await asking.until_closed("turn_c1")
        await other.until_closed("turn_c1")

        assert text_of(asking) == "this"
        assert [reply["decision"] for reply in replies_of(other)] == ["approved"]
        assert await states() == []

    async def test_one_of_many_answers_counts(
        self, houses: tuple[House, House]
    ) -> None:
        """Spec: Ruling E15."""
        heard: list[str] = []

        async def play(turn: Turn) -> None:
            heard.append((await turn.ask("which?")).text)

        play_everywhere(houses, "ask", play)
        asking = await houses[0].connect()
        await asking.say("ask", "c1")
        request_id = request_of(await until_asked(asking))
        clients = [await houses[number % 2].connect() for number in range(4)]

        for number, client in enumerate(clients * 5):
            await answer(client, request_id, "approved", custom_text=str(number))
        await asking.until_closed("turn_c1")

        errors = [error["code"] for client in clients for error in client.errors()]
        assert errors == ["UNKNOWN_REQUEST_ID"] * 19
        assert heard == ["0"]


class TestReconnection:
    async def test_shows_open_prompts_right_after_opened(
        self, lost: tuple[House, House]
    ) -> None:
        """Spec: EMIT 2.4.2; Rulings E1, E3; cases HC-02, FR-19."""
        house, _ = lost

        async def play(turn: Turn) -> None:
            await turn.ask("first?")
            await turn.ask("second?")

        house.engine.plays["ask"] = play
        client = await house.connect()
        await client.say("ask", "c1")
        await answer(client, request_of(await until_asked(client)), "denied")
        await until_asked(client, 2)
        (frame,) = [raw for raw in client.transport.raw if b"second?" in raw]

        again = await house.connect()
        await again.send({"type": "session.create", "session_id": "sess_1"})

        assert [each["type"] for each in again.frames] == [
            "session.event",
            "prompt.user",
        ] * 2
        assert [again.transport.raw[1], again.transport.raw[3]] == [frame] * 2

    async def test_during_a_stream_does_not_wait_for_its_end(
        self, lost: tuple[House, House]
    ) -> None:
        house, _ = lost

        async def play(turn: Turn) -> None:
            async with turn.message() as message:
                while not is_over.is_set():
                    await message.text("x")
                    await turn.flush()

        is_over = asyncio.Event()
        house.engine.plays["stream"] = play
        client = await house.connect()
        await client.say("stream", "c1")
        await client.transport.until(lambda: client.seqs[-1:] > [100])

        again = await house.connect()
        await again.send({"type": "session.create", "session_id": "sess_1"})
        is_over.set()
        await again.until_closed("turn_c1")

        opened = again.frames[0]["payload"]["inner"]["last_seq"]
        assert again.seqs == list(range(opened + 1, again.seqs[-1] + 1))

    async def test_closing_the_socket_is_no_answer(
        self, lost: tuple[House, House]
    ) -> None:
        """Spec: case FR-15."""
        house, _ = lost

        async def play(turn: Turn) -> None:
            await say((await turn.permission("Bash", "ls")).approved)(turn)

        house.engine.plays["ask"] = play
        client = await house.connect()
        await client.say("ask", "c1")
        request_id = request_of(await until_asked(client))
        client.connection.end()

        again = await house.connect()

        assert [request_of(prompt) for prompt in prompts_of(again)] == [request_id]
        assert replies_of(again) == []
        await answer(again, request_id, "approved")
        await again.until_closed("turn_c1")
        assert text_of(again) == "True"


ASKS: dict[str, tuple[Ask, str, dict[str, Any], list[str]]] = {
    "question": (
        lambda turn: turn.ask("Pick a color", options=["red", "blue"]),
        "approved",
        {"selected_options": ["red"], "custom_text": "dark"},
        ['"Pick a color"', "red; dark"],
    ),
    "declined": (
        lambda turn: turn.ask("Pick a color"),
        "denied",
        {},
        ['"Pick a color"', "do not want to answer"],
    ),
    "permission": (
        lambda turn: turn.permission("Bash", {"command": "rm x"}),
        "approved",
        {"scope": "session", "message": "carefully"},
        ["Bash", "rm x", "for the rest of this session", "carefully"],
    ),
    "refusal": (
        lambda turn: turn.permission("Bash", {"command": "rm x"}),
        "denied",
        {"message": "too risky"},
        ["do not allow", "too risky"],
    ),
    "plan": (
        lambda turn: turn.review_plan(Plan("a report", [PlanStep("s1", "look")])),
        "approved",
        {
            "updated_steps": [
                {"id": "s1", "description": "look"},
                {"id": "s2", "description": "write", "depends_on": ["s1"]},
            ]
        },
        ["a report", "edited", "1. s1: look", "2. s2: write (after s1)"],
    ),
    "declined plan": (
        lambda turn: turn.review_plan(Plan("a report", [PlanStep("s1", "look")])),
        "denied",
        {"reason": "too long"},
        ["a report", "decline", "too long"],
    ),
    "decision": (
        lambda turn: turn.decide_step(
            scope="step", step_id="s2", reason="rate limit", attempts=3
        ),
        "retry",
        {"note": "slowly"},
        ["Step s2", "3 attempts", "rate limit", "Try it again", "slowly"],
    ),
}


class TestLostWorker:
    @pytest.mark.parametrize("name", ASKS)
    async def test_answer_begins_one_turn(
        self, lost: tuple[House, House], name: str
    ) -> None:
        """Spec: EMIT 2.4.2; Ruling E15; cases HC-22, HC-23."""
        house, heir = lost
        ask, decision, payload, words = ASKS[name]
        continued: list[Continuation] = []
        play_everywhere(lost, "ask", ask_and_say(ask, continued))
        client = await house.connect()
        await client.send(
            {
                "type": "user.message",
                "text": "ask",
                "event_id": "c1",
                "coordinator_mode": "plan",
            }
        )
        prompt = await until_asked(client)
        request_id = request_of(prompt)
        raw = client.transport.raw[-1]

        again = await heir.connect()
        await again.until_closed("turn_c1")
        assert again.transport.raw[1] == raw
        heir.engine.plays[words_of(ask, prompt)] = ask_and_say(ask, continued)
        await answer(again, request_id, decision, **payload)
        await again.until_closed(f"turn_{request_id}")
        await answer(again, request_id, decision, **payload)

        (turn,) = [
            turn
            for turn in turns_of(again)
            if turn["envelope"]["card_id"] == f"turn_{request_id}"
        ]
        text = turn["payload"]["input"]["text"]
        assert all(word in text for word in words), text
        (told,) = continued
        assert (told.request_id, told.decision) == (request_id, decision)
        assert told.kind == prompt["payload"]["kind"]
        assert told.prompt == prompt["payload"]["inner"]
        assert payload.items() <= dict(told.payload).items()
        assert text_of(again) == "continued"
        assert [reply["request_id"] for reply in replies_of(again)] == [request_id]
        assert [error["code"] for error in again.errors()] == [
            "WORKER_LOST",
            "UNKNOWN_REQUEST_ID",
        ]
        assert await states() == []
        stored = await run_in_database(TurnRow.objects.latest, "turn_no")
        assert stored.message["coordinator_mode"] == "plan"

    async def test_answer_is_not_lost_to_a_message_of_that_name(
        self, lost: tuple[House, House]
    ) -> None:
        """A client may call its messages as it likes, even as we call an answer's turn.

        Spec: Rulings E8, E15.
        """
        house, heir = lost
        continued: list[Continuation] = []
        ask = ASKS["question"][0]
        play_everywhere(lost, "ask", ask_and_say(ask, continued))
        play_everywhere(lost, "hello", say("hi"))
        client = await house.connect()
        await client.say("ask", "c1")
        prompt = await until_asked(client)
        request_id = request_of(prompt)
        again = await heir.connect()
        await again.until_closed("turn_c1")
        for name in (f"answer_{request_id}", f"answer_{request_id}_", request_id):
            await again.say("hello", name)
            await again.until_closed(f"turn_{name}")
        heir.engine.plays[words_of(ask, prompt)] = ask_and_say(ask, continued)

        await answer(again, request_id, "approved", custom_text="green")
        await again.transport.until(lambda: "continued" in text_of(again))
        await until_at_rest(heir)

        (told,) = continued
        assert told.payload["custom_text"] == "green"
        assert await states() == []

    async def test_edit_that_cannot_be_carried_out_is_asked_about_again(
        self, lost: tuple[House, House]
    ) -> None:
        """Spec: Ruling E19."""
        house, heir = lost
        ask = ASKS["plan"][0]
        house.engine.plays["ask"] = ask_and_say(ask, [])
        client = await house.connect()
        await client.say("ask", "c1")
        first = await until_asked(client)
        again = await heir.connect()
        await again.until_closed("turn_c1")

        twice = [{"id": "s1", "description": "look"}] * 2
        await answer(again, request_of(first), "approved", updated_steps=twice)
        second = await until_asked(again, 2)

        assert "earlier step" in second["payload"]["inner"]["rejection_reason"]
        assert await states() == ["pending"]
        await until_at_rest(heir)
        assert (await run_in_database(Session.objects.get)).owner == ""

    async def test_answer_that_nothing_can_go_on_with_is_settled(
        self, lost: tuple[House, House], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Spec: case FR-25."""

        def fail(settlement: object) -> str:
            raise ValueError("no words for it")

        house, heir = lost
        house.engine.plays["ask"] = ask_and_say(ASKS["question"][0], [])
        client = await house.connect()
        await client.say("ask", "c1")
        request_id = request_of(await until_asked(client))
        again = await heir.connect()
        await again.until_closed("turn_c1")
        monkeypatch.setattr(heir.book, "continuation_text", fail)

        await answer(again, request_id, "approved", custom_text="this")
        await again.transport.until(lambda: replies_of(again))
        await until_at_rest(heir)

        assert [reply["decision"] for reply in replies_of(again)] == ["approved"]
        for _ in range(2):
            assert prompts_of(await heir.connect()) == []
        await again.say("hi", "c2")
        await again.until_closed("turn_c2")
        assert len(turns_of(again)) == 1

    async def test_client_tool_is_over(self, lost: tuple[House, House]) -> None:
        """Spec: Rulings E14, E24."""
        house, heir = lost

        async def play(turn: Turn) -> None:
            await turn.client_tool("camera")

        house.engine.plays["ask"] = play
        client = await house.connect()
        await client.say("ask", "c1")
        await client.transport.until(
            lambda: any(f["payload"].get("target") for f in client.frames)
        )
        card_id = client.last["envelope"]["card_id"]
        again = await heir.connect()
        await again.until_closed("turn_c1")

        await again.send(
            {"type": "tool.result", "tool_use_id": card_id, "status": "ok"}
        )

        assert [close["payload"]["status"] for close in again.closes_of(card_id)] == [
            "failed"
        ]
        assert again.errors()[-1]["code"] == "UNKNOWN_TOOL_USE_ID"


def words_of(ask: Ask, prompt: dict[str, Any]) -> str:
    """Return the first word of the turn that goes on with an answer to a prompt."""
    return {
        "question": "Your",
        "permission": "You",
        "plan_review": "You",
        "step_decision": "Step",
    }[prompt["payload"]["kind"]]


class TestStop:
    async def test_of_a_server_leaves_prompts_open(
        self, lost: tuple[House, House]
    ) -> None:
        """Spec: Ruling E15; cases HC-59, HC-61."""
        house, heir = lost
        continued: list[Continuation] = []
        play = ask_and_say(ASKS["question"][0], continued)
        play_everywhere(lost, "ask", play)
        heir.engine.plays["Your"] = play
        client = await house.connect()
        await client.say("ask", "c1")
        request_id = request_of(await until_asked(client))

        await house.hub.stop(grace_s=0)

        assert client.closes() == [("turn", "cancelled")]
        assert replies_of(client) == []
        again = await heir.connect()
        assert [request_of(prompt) for prompt in prompts_of(again)] == [request_id]
        await answer(again, request_id, "approved", custom_text="now")
        await again.until_closed(f"turn_{request_id}")
        assert [each.payload["custom_text"] for each in continued] == ["now"]


class TestMeanwhile:
    async def test_other_turns_run(self, lost: tuple[House, House]) -> None:
        """Spec: Ruling E15."""
        house, heir = lost
        continued: list[Continuation] = []
        play = ask_and_say(ASKS["question"][0], continued)
        play_everywhere(lost, "ask", play)
        heir.engine.plays["Your"] = play
        client: Client = await house.connect()
        await client.say("ask", "c1")
        request_id = request_of(await until_asked(client))
        again = await heir.connect()
        await again.until_closed("turn_c1")

        await again.say("ask", "c2")
        second = request_of(await until_asked(again, 2))
        await answer(again, request_id, "approved", custom_text="for the first")
        await again.transport.until(lambda: replies_of(again))
        assert await states() == ["pending"]
        await answer(again, second, "approved", custom_text="for the second")
        await again.until_closed(f"turn_{request_id}")

        assert [each.payload["custom_text"] for each in continued] == ["for the first"]
        assert text_of(again) == "answeredcontinued"
        assert [turn["payload"]["turn_no"] for turn in turns_of(again)] == [2, 3]
