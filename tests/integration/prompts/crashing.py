"""A worker that kills itself at one point on the way of a prompt.

Run as a process of its own, with the database of the tests:
`python -m tests.integration.prompts.crashing ROLE POINT LEDGER`. The role `ask` begins
a turn that asks, and answers it; the role `answer` finds such a turn lost, and
answers. The exit status is -9 if the point was reached.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from inspect import getattr_static
from pathlib import Path
from typing import Any

import django

django.setup()

from cards.engine import Turn  # noqa: E402
from cards.live import prompt_desk  # noqa: E402
from cards.live.prompt_desk import PromptDesk  # noqa: E402
from cards.live.runtime import SessionRuntime  # noqa: E402
from cards.log.store import PostgresStore, SqliteStore  # noqa: E402
from prompts.book import StoredPromptBook  # noqa: E402
from tests.integration.cards.house import House  # noqa: E402
from tests.integration.prompts.asking import (  # noqa: E402
    answer,
    prompts_of,
    request_of,
    until_asked,
)

#: Seconds after which the point counts as not reached.
PATIENCE_S = 20


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(owner: Any, name: str) -> None:
    setattr(owner, name, die)


def after(owner: Any, name: str) -> None:
    method = getattr(owner, name)

    def call(*args: Any, **kwargs: Any) -> None:
        method(*args, **kwargs)
        die()

    is_static = isinstance(getattr_static(owner, name), staticmethod)
    setattr(owner, name, staticmethod(call) if is_static else call)


def around_log(frame_type: bytes, *, is_before: bool) -> None:
    """Die when a frame of a type is about to be stored, or has been."""
    for store in (SqliteStore, PostgresStore):
        _around_write(store, frame_type, is_before=is_before)


def _around_write(store: Any, frame_type: bytes, *, is_before: bool) -> None:
    write = store.write

    def call(self: Any, entries: Any) -> None:
        is_meant = any(frame_type in entry.data for entry in entries)
        if is_meant and is_before:
            die()
        write(self, entries)
        if is_meant:
            die()

    store.write = call


POINTS: dict[str, Callable[[], None]] = {
    "before the row": lambda: before(StoredPromptBook, "open_wait"),
    "after the row": lambda: before(PromptDesk, "_enter"),
    "before the frame": lambda: around_log(b'"prompt.user"', is_before=True),
    "after the frame": lambda: around_log(b'"prompt.user"', is_before=False),
    "before the claim": lambda: before(StoredPromptBook, "claim_answer"),
    "within the claim": lambda: after(StoredPromptBook, "claim_answer"),
    "after the claim": lambda: before(SessionRuntime, "look_for_settlements"),
    "before the reply": lambda: around_log(b'"prompt.reply"', is_before=True),
    "after the reply": lambda: around_log(b'"prompt.reply"', is_before=False),
    "before the continuation": lambda: before(prompt_desk, "continue_session"),
    "within the continuation": lambda: after(prompt_desk, "continue_session"),
    "after the continuation": lambda: before(PromptDesk, "_reply"),
    "after the delivery": lambda: None,
}


def play_of(ledger: Path, *, dies: bool) -> Callable[[Turn], Any]:
    """Return a play whose effect is a line in a file."""

    async def play(turn: Turn) -> None:
        told = turn.input.continuation
        if told is None:
            given = await turn.ask("which?")
            words = given.text
        else:
            words = str(told.payload["custom_text"])
        with ledger.open("a") as file:
            file.write(f"{words}\n")
        if dies:
            die()
        async with turn.message() as message:
            await message.text(words)

    return play


async def main(role: str, point: str, ledger: Path) -> None:
    POINTS[point]()
    house = House(lease_s=0)
    play = play_of(ledger, dies=point == "after the delivery")
    house.engine.plays |= {"ask": play, "Your": play}
    client = await house.connect()
    if role == "ask":
        await client.say("ask", "c1")
        prompt = await until_asked(client)
    else:
        await client.until_closed("turn_c1")
        (prompt,) = prompts_of(client)
    await answer(client, request_of(prompt), "approved", custom_text="this")
    await asyncio.sleep(PATIENCE_S)


if __name__ == "__main__":
    asyncio.run(
        asyncio.wait_for(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])), PATIENCE_S)
    )
