"""The built-in engine behind real sessions: what it asks, and how it goes on.

Spec: EMIT 7; Rulings E15, E18.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from cards.engines.workspace import WorkspaceEngine
from tests.integration.cards.house import Client, Frame, House, running_house
from tests.integration.prompts.asking import (
    answer,
    prompts_of,
    replies_of,
    request_of,
    states,
    turns_of,
    until_asked,
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "workspace"
    monkeypatch.setattr("cards.engines.workspace.engine.workspace_root", lambda: root)
    return root


@pytest_asyncio.fixture
async def house(root: Path, transactional_db: None) -> AsyncIterator[House]:
    async with running_house(engine=WorkspaceEngine()) as house:
        yield house


@pytest_asyncio.fixture
async def lost(
    root: Path, transactional_db: None
) -> AsyncIterator[tuple[House, House]]:
    """A worker that the other one takes for lost; each has an engine of its own."""
    async with (
        running_house(engine=WorkspaceEngine(), lease_s=0) as lost,
        running_house(engine=WorkspaceEngine()) as heir,
    ):
        yield lost, heir


def tools_of(client: Client) -> list[Frame]:
    return [
        frame
        for frame in client.frames
        if frame["type"] == "card.add" and frame["envelope"]["card_kind"] == "tool"
    ]


def text_of(client: Client) -> str:
    """Return all that was said; the input of tools is not."""
    return "".join(
        frame["payload"]["chunk"]
        for frame in client.frames
        if frame["type"] == "card.append" and frame["payload"]["channel"] == "text"
    )


def phases_of(client: Client) -> list[str]:
    return [
        frame["payload"]["phase"]
        for frame in client.frames
        if frame["type"] == "card.set" and "phase" in frame["payload"]
    ]


async def asked_and_lost(houses: tuple[House, House], text: str) -> tuple[Client, str]:
    """Return a client of the heir and what the lost worker asked."""
    house, heir = houses
    client = await house.connect()
    await client.say(text, "c1")
    request_id = request_of(await until_asked(client))
    again = await heir.connect()
    await again.until_closed("turn_c1")
    return again, request_id


class TestPermission:
    async def test_is_waited_for_in_the_tool(self, house: House, root: Path) -> None:
        """Spec: EMIT 7.1, 14; Ruling E15."""
        client = await house.connect()
        await client.say("overwrite README.md with new", "c1")
        prompt = await until_asked(client)
        (tool,) = tools_of(client)
        before = (root / "README.md").read_text()

        inner = prompt["payload"]["inner"]
        assert inner["tool_name"] == "Write"
        assert inner["tool_input"] == '{"file_path":"README.md","content":"new"}'
        assert "This replaces" in inner["message"]
        assert "# Your workspace" in inner["message"]
        assert phases_of(client) == ["permission_wait"]
        assert before != "new\n"
        await answer(client, request_of(prompt), "approved")
        await client.until_closed("turn_c1")

        assert phases_of(client) == ["permission_wait", "executing"]
        (close,) = client.closes_of(tool["envelope"]["card_id"])
        assert close["payload"]["status"] == "ok"
        assert (root / "README.md").read_text() == "new\n"

    async def test_is_asked_for_each_time(self, house: House) -> None:
        client = await house.connect()
        for number in (1, 2):
            await client.say("run ls", f"c{number}")
            prompt = await until_asked(client, number)
            await answer(client, request_of(prompt), "approved", scope="once")
            await client.until_closed(f"turn_c{number}")

        assert len(prompts_of(client)) == 2

    @pytest.mark.parametrize(
        ("first", "covered", "other"),
        [
            ("run ls", "run ls", "run ls -a"),
            (
                "write README.md: one",
                "write ./README.md: two",
                "write notes/ideas.md: x",
            ),
        ],
    )
    async def test_is_remembered_for_the_session(
        self, house: House, first: str, covered: str, other: str
    ) -> None:
        """Spec: Ruling E18."""
        client = await house.connect()
        await client.say(first, "c1")
        prompt = await until_asked(client)
        await answer(client, request_of(prompt), "approved", scope="session")
        await client.say(covered, "c2")
        await client.until_closed("turn_c2")

        assert len(prompts_of(client)) == 1
        assert [status for _, status in client.closes()] == ["ok"] * 8
        await client.say(other, "c3")
        await until_asked(client, 2)

    async def test_that_is_denied_fails_the_tool_only(
        self, house: House, root: Path
    ) -> None:
        client = await house.connect()
        await client.say("write README.md: new", "c1")
        prompt = await until_asked(client)
        await answer(client, request_of(prompt), "denied", message="not now")
        close = await client.until_closed("turn_c1")

        assert close["payload"]["status"] == "ok"
        assert ("tool", "failed") in client.closes()
        (tool,) = tools_of(client)
        (failed,) = client.closes_of(tool["envelope"]["card_id"])
        error = failed["payload"]["error"]
        assert (error["type"], error["code"]) == ("permission_denied", "user_denied")
        assert "`Write`" in error["message"]
        assert text_of(client).endswith("You said: not now")
        assert (root / "README.md").read_text() != "new\n"

    async def test_is_withdrawn_by_an_interrupt(self, house: House) -> None:
        """Spec: Ruling E10."""
        client = await house.connect()
        await client.say("run ls", "c1")
        await until_asked(client)

        await client.interrupt(trace_id=client.trace_id)
        close = await client.until_closed("turn_c1")

        assert close["payload"]["status"] == "cancelled"
        assert [reply["decision"] for reply in replies_of(client)] == ["cancelled"]
        assert await states() == []


class TestLatePermission:
    async def test_does_the_call_once(
        self, lost: tuple[House, House], root: Path
    ) -> None:
        """Spec: Ruling E15; case FR-21."""
        client, request_id = await asked_and_lost(lost, "write README.md: late")

        for _ in range(2):
            await answer(client, request_id, "approved")
        await client.until_closed(f"turn_{request_id}")

        assert (root / "README.md").read_text() == "late\n"
        assert client.errors()[-1]["code"] == "UNKNOWN_REQUEST_ID"
        # A card of its own; that of the lost turn came before this client did.
        (tool,) = tools_of(client)
        (close,) = client.closes_of(tool["envelope"]["card_id"])
        assert close["payload"]["status"] == "ok"
        assert len(prompts_of(client)) == 1
        assert await states() == []

    async def test_of_a_file_that_was_changed_does_nothing(
        self, lost: tuple[House, House], root: Path
    ) -> None:
        client, request_id = await asked_and_lost(lost, "write README.md: late")
        (root / "README.md").write_text("somebody else's\n")

        await answer(client, request_id, "approved")
        close = await client.until_closed(f"turn_{request_id}")

        assert close["payload"]["status"] == "ok"
        assert (root / "README.md").read_text() == "somebody else's\n"
        assert "Say it once more" in text_of(client)

    async def test_for_the_session_covers_it_from_then_on(
        self, lost: tuple[House, House], root: Path
    ) -> None:
        """Spec: Rulings E15, E18."""
        client, request_id = await asked_and_lost(lost, "write README.md: late")
        (root / "README.md").write_text("somebody else's\n")

        await answer(client, request_id, "approved", scope="session")
        await client.until_closed(f"turn_{request_id}")
        assert (root / "README.md").read_text() == "late\n"
        await client.say("write README.md: later", "c2")
        await client.until_closed("turn_c2")

        assert (root / "README.md").read_text() == "later\n"
        assert len(prompts_of(client)) == 1

    async def test_runs_the_program(self, lost: tuple[House, House]) -> None:
        client, request_id = await asked_and_lost(lost, "run wc -l data/sales.csv")

        await answer(client, request_id, "approved")
        await client.until_closed(f"turn_{request_id}")

        (close,) = client.closes_of(tools_of(client)[-1]["envelope"]["card_id"])
        assert close["payload"]["inner"]["output"] == "8 data/sales.csv\n"

    async def test_that_is_denied_does_nothing(
        self, lost: tuple[House, House], root: Path
    ) -> None:
        client, request_id = await asked_and_lost(lost, "write README.md: late")

        await answer(client, request_id, "denied", message="too late")
        close = await client.until_closed(f"turn_{request_id}")

        assert close["payload"]["status"] == "ok"
        assert text_of(client).endswith("You said: too late")
        assert (root / "README.md").read_text() != "late\n"


class TestQuestion:
    async def test_is_asked_once_in_a_session(self, house: House) -> None:
        client = await house.connect()
        await client.say("read plan.md", "c1")
        prompt = await until_asked(client)
        assert [each["label"] for each in prompt["payload"]["inner"]["options"]] == [
            "docs/plan.md",
            "notes/plan.md",
        ]
        await answer(
            client, request_of(prompt), "approved", selected_options=["notes/plan.md"]
        )
        await client.say("count plan.md", "c2")
        await client.until_closed("turn_c2")

        assert len(prompts_of(client)) == 1
        assert "`notes/plan.md` has 1 file" in text_of(client)

    async def test_that_is_answered_late_resumes_the_command(
        self, lost: tuple[House, House]
    ) -> None:
        """Other words of the user came between; they are not mistaken for it."""
        client, request_id = await asked_and_lost(lost, "search larch in plan.md")
        await client.say("list notes", "c2")
        await client.until_closed("turn_c2")

        await answer(client, request_id, "approved", selected_options=["docs/plan.md"])
        await client.until_closed(f"turn_{request_id}")

        tool = tools_of(client)[-1]["payload"]
        assert (tool["name"], tool["input"]) == (
            "Search",
            {"pattern": "larch", "path": "docs/plan.md"},
        )
        assert len(turns_of(client)) == 2
        assert await states() == []

    async def test_that_is_declined_late_does_nothing(
        self, lost: tuple[House, House]
    ) -> None:
        client, request_id = await asked_and_lost(lost, "read plan.md")

        await answer(client, request_id, "denied")
        await client.until_closed(f"turn_{request_id}")

        assert text_of(client).endswith("nothing was done.")
        assert tools_of(client) == []
