"""A crash at each boundary on a prompt's way: nothing lost, doubled or stuck.

Spec: Ruling E15; design.md 5; issue "Prompts", must reach.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from django.db import connection

from tests.integration.cards.house import (
    Client,
    Frame,
    House,
    running_house,
    until_at_rest,
)
from tests.integration.prompts.asking import (
    answer,
    prompts_of,
    replies_of,
    request_of,
    states,
    turns_of,
)
from tests.integration.prompts.crashing import play_of
from tests.services import PROJECT

#: What is left by a worker that dies, while its turn waits for the answer.
NEVER_ASKED = ["before the row", "after the row", "before the frame"]
STILL_OPEN = ["after the frame", "before the claim", "within the claim"]
ANSWERED = ["after the claim", "before the reply"]
DELIVERED = ["after the reply", "after the delivery"]

#: The same, while it goes on with an answer to a turn that was lost before.
CONTINUED_OPEN = ["before the claim", "within the claim"]
CONTINUED = [
    "after the claim",
    "before the continuation",
    "within the continuation",
    "after the continuation",
    "before the reply",
    "after the reply",
]


@pytest_asyncio.fixture(name="heir")
async def _heir(transactional_db: None, ledger: Path) -> AsyncIterator[House]:
    async with running_house() as house:
        play = play_of(ledger, dies=False)
        house.engine.plays |= {"ask": play, "Your": play}
        yield house


@pytest.fixture(name="ledger")
def _ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger"
    path.touch()
    return path


def crash(role: str, point: str, ledger: Path) -> None:
    """Have a worker begin, and die at a point."""
    database = connection.settings_dict
    url = f"sqlite:///{database['NAME']}"
    if connection.vendor == "postgresql":
        host, port = database["HOST"], database["PORT"]
        url = f"postgres://{database['USER']}@{host}:{port}/{database['NAME']}"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.integration.prompts.crashing"),
            *(role, point, str(ledger)),
        ],
        cwd=PROJECT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "DATABASE_URL": url,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9, done.stderr[-4000:]


async def whole_story(heir: House) -> Client:
    """Return a client that has seen the whole log, once all is done that goes on."""
    await heir.connect()
    await heir.hub.find_the_lost()
    await until_at_rest(heir)
    # A fresh one, which has seen nothing live.
    client = await heir.connect()
    newest = (await client.resume(0))["to_seq"]
    await client.transport.until(lambda: len(set(client.seqs)) == newest)
    return client


async def settle_all(client: Client) -> list[str]:
    """Answer whatever is open; return what was asked, each once."""
    replied = {reply["request_id"] for reply in replies_of(client)}
    asked = {request_of(prompt) for prompt in prompts_of(client)}
    for request_id in asked - replied:
        await answer(client, request_id, "approved", custom_text="this")
    return sorted(asked)


async def assert_ends_well(heir: House, ledger: Path, *, effects: int) -> None:
    """See that each prompt has one reply and one effect, and that life goes on."""
    asked = await settle_all(await whole_story(heir))
    again = await whole_story(heir)
    for request_id in asked:
        await answer(again, request_id, "approved", custom_text="that")

    assert [reply["request_id"] for reply in replies_of(again)] == asked
    assert await asyncio.to_thread(ledger.read_text) == "this\n" * effects
    assert await states() in ([], ["opening"])
    codes = [error["code"] for error in again.errors()]
    assert codes.count("UNKNOWN_REQUEST_ID") == len(asked)
    statuses = [close["payload"]["status"] for close in turn_closes(again)]
    assert len(statuses) == len(turns_of(again))
    await again.say("hi", "c9")
    await again.until_closed("turn_c9")


def turn_closes(client: Client) -> list[Frame]:
    return [
        frame
        for frame in client.frames
        if frame["type"] == "card.close" and frame["envelope"]["card_kind"] == "turn"
    ]


@pytest.mark.parametrize("point", NEVER_ASKED)
async def test_before_anybody_was_asked(heir: House, ledger: Path, point: str) -> None:
    crash("ask", point, ledger)

    client = await whole_story(heir)

    assert prompts_of(client) == []
    assert [close["payload"]["error"]["code"] for close in turn_closes(client)] == [
        "WORKER_LOST"
    ]
    await assert_ends_well(heir, ledger, effects=0)


@pytest.mark.parametrize("point", STILL_OPEN)
async def test_while_the_prompt_is_open(heir: House, ledger: Path, point: str) -> None:
    crash("ask", point, ledger)

    client = await whole_story(heir)

    assert len({request_of(prompt) for prompt in prompts_of(client)}) == 1
    assert replies_of(client) == []
    await assert_ends_well(heir, ledger, effects=1)


@pytest.mark.parametrize("point", ANSWERED)
async def test_between_claim_and_delivery(
    heir: House, ledger: Path, point: str
) -> None:
    crash("ask", point, ledger)

    client = await whole_story(heir)

    assert [reply["decision"] for reply in replies_of(client)] == ["approved"]
    await assert_ends_well(heir, ledger, effects=1)


@pytest.mark.parametrize("point", DELIVERED)
async def test_after_the_reply(heir: House, ledger: Path, point: str) -> None:
    crash("ask", point, ledger)

    # The turn had its answer, and went down with its worker.
    effects = int(point == "after the delivery")
    await assert_ends_well(heir, ledger, effects=effects)


@pytest.mark.parametrize("point", CONTINUED_OPEN + CONTINUED)
async def test_on_the_way_to_a_continuation(
    heir: House, ledger: Path, point: str
) -> None:
    crash("ask", "after the frame", ledger)
    crash("answer", point, ledger)

    client = await whole_story(heir)

    assert len(replies_of(client)) == int(point in CONTINUED)
    await assert_ends_well(heir, ledger, effects=1)


async def test_within_a_continuation(heir: House, ledger: Path) -> None:
    crash("ask", "after the frame", ledger)
    crash("answer", "after the delivery", ledger)

    await assert_ends_well(heir, ledger, effects=1)
