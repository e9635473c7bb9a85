"""What the tests of prompts share: asking, answering, and looking at both."""

from typing import Any

from cards.database import run_in_database
from cards.engine import Turn
from prompts.models import PendingWait
from tests.integration.cards.house import Client, Frame, House, Play


def prompts_of(client: Client) -> list[Frame]:
    return [frame for frame in client.frames if frame["type"] == "prompt.user"]


def replies_of(client: Client) -> list[dict[str, Any]]:
    return [
        frame["payload"] for frame in client.frames if frame["type"] == "prompt.reply"
    ]


async def until_asked(client: Client, count: int = 1) -> Frame:
    """Wait until so many prompts came and return the last one."""
    await client.transport.until(lambda: len(prompts_of(client)) >= count)
    return prompts_of(client)[count - 1]


async def answer(
    client: Client, request_id: str, decision: str, **payload: Any
) -> None:
    await client.send(
        {
            "type": "prompt.user_response",
            "request_id": request_id,
            "decision": decision,
            "payload": payload,
        }
    )


def request_of(prompt: Frame) -> str:
    return str(prompt["payload"]["request_id"])


async def states() -> list[str]:
    """Return the states of all waits."""
    return await run_in_database(
        lambda: list(PendingWait.objects.values_list("state", flat=True))
    )


def say(text: Any) -> Play:
    async def play(turn: Turn) -> None:
        async with turn.message() as message:
            await message.text(str(text))

    return play


def text_of(client: Client) -> str:
    return "".join(
        frame["payload"]["chunk"]
        for frame in client.frames
        if frame["type"] == "card.append"
    )


def turns_of(client: Client) -> list[Frame]:
    """Return the card.add of each turn."""
    return [
        frame
        for frame in client.frames
        if frame["type"] == "card.add" and frame["envelope"]["card_kind"] == "turn"
    ]


def play_everywhere(houses: tuple[House, House], name: str, play: Play) -> None:
    for house in houses:
        house.engine.plays[name] = play
