"""Answers that nobody can go on with: they end, and nothing waits for ever.

They come from rows that were changed by hand or by another release.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from cards.database import run_in_database
from cards.engine import ClientToolResult, Turn
from prompts.models import PendingWait
from tests.integration.cards.house import (
    Client,
    House,
    running_house,
    until_at_rest,
)
from tests.integration.prompts.asking import replies_of, states, until_asked


@pytest_asyncio.fixture(name="house")
async def _house(transactional_db: None) -> AsyncIterator[House]:
    async with running_house() as house:
        yield house


async def store(**changes: Any) -> None:
    """Settle all waits behind the back of the book."""
    await run_in_database(
        PendingWait.objects.update, **({"state": "settled"} | changes)
    )


async def look(house: House) -> None:
    (await house.live()).look_for_settlements()


UNUSABLE = [
    {"decision": "perhaps"},
    {"decision": "denied", "rejection": "no such step", "frame": b"{"},
    {"decision": "denied", "rejection": "no such step", "frame": b'{"payload":1}'},
]


@pytest.mark.parametrize("changes", UNUSABLE, ids=["decision", "frame", "payload"])
class TestAnswerThatNobodyCanGoOnWith:
    async def test_fails_the_turn_that_waits(
        self, house: House, changes: dict[str, Any]
    ) -> None:
        async def ask(turn: Turn) -> None:
            await turn.ask("Red or blue?")

        house.engine.plays["ask"] = ask
        client = await house.connect()
        await client.say("ask", "c1")
        await until_asked(client)

        await store(**changes)
        await look(house)
        closed = await client.until_closed("turn_c1")
        await client.say("hi", "c2")
        after = await client.until_closed("turn_c2")
        await until_at_rest(house)

        assert closed["payload"]["error"]["type"] == "internal"
        assert [reply["decision"] for reply in replies_of(client)] == ["cancelled"]
        assert after["payload"]["status"] == "ok"
        assert await states() == []

    async def test_begins_no_turn(
        self, transactional_db: None, changes: dict[str, Any]
    ) -> None:
        """Whoever takes the session over finds it, settles it, and is at rest."""

        async def ask(turn: Turn) -> None:
            await turn.ask("Red or blue?")

        async with running_house(lease_s=0) as gone, running_house() as heir:
            gone.engine.plays["ask"] = ask
            before = await gone.connect()
            await before.say("ask", "c1")
            await until_asked(before)
            await store(**changes)

            client: Client = await heir.connect()
            await client.transport.until(lambda: replies_of(client))
            await until_at_rest(heir)

            assert [reply["decision"] for reply in replies_of(client)] == ["cancelled"]
            assert client.closes() == [("turn", "failed")]
            assert await states() == []


async def test_a_result_that_nobody_can_use_ends_its_tool(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    results: list[ClientToolResult] = []

    async def call(turn: Turn) -> None:
        results.append(await turn.client_tool("Browser", {}))

    house.engine.plays["call"] = call
    client = await house.connect()
    await client.say("call", "c1")
    await client.transport.until(
        lambda: [f for f in client.logged if f["type"] == "card.add"][1:]
    )

    await store(decision="perhaps", answer={"output": "42", "metadata": 7})
    await look(house)
    closed = await client.until_closed("turn_c1")
    await until_at_rest(house)

    assert results == []
    assert closed["payload"]["error"]["type"] == "internal"
    assert client.closes() == [("tool", "failed"), ("turn", "failed")]
    assert await states() == []
