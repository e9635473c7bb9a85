"""Files that engines make, on the real database and storage.

Spec: EMIT 10, 13; Rulings E10, E14, E21.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from django.core.files.storage import storages
from django.db import DatabaseError

from artifacts.models import Artifact as ArtifactRow
from artifacts.models import ArtifactVersion
from cards.clock import utc_now
from cards.database import run_in_database
from cards.engine import Artifact, EngineError, Turn
from cards.file_threads import FILE_THREADS
from cards.live.artifact_desk import MAX_SOURCES
from cards.models import Session
from cards.ports import ArtifactRefused, NewArtifact
from tests.integration.cards.house import (
    MAX_FILE_BYTES,
    Client,
    Frame,
    House,
    running_house,
    until_at_rest,
)


@pytest_asyncio.fixture(name="house")
async def _house(transactional_db: None) -> AsyncIterator[House]:
    async with running_house() as house:
        yield house


@pytest_asyncio.fixture(name="client")
async def _client(house: House) -> Client:
    return await house.connect()


@pytest.fixture(autouse=True)
def _emptied_storage() -> Iterator[None]:
    yield
    for name in stored_names():
        storages["artifacts"].delete(name)


def stored_names() -> list[str]:
    """Return what the storage holds."""
    storage = storages["artifacts"]
    if not storage.exists(""):
        return []
    folders, _ = storage.listdir("")
    return [
        f"{folder}/{name}" for folder in folders for name in storage.listdir(folder)[1]
    ]


def versions() -> list[tuple[str, int, bytes]]:
    """Return name, number and bytes of each version, by age."""
    rows = ArtifactVersion.objects.select_related("artifact").order_by("pk")
    return [(row.artifact.name, row.version, content_of(row)) for row in rows]


def content_of(row: ArtifactVersion) -> bytes:
    with storages["artifacts"].open(row.storage_name) as file:
        content: bytes = file.read()
    return content


def artifact_cards(client: Client) -> list[Frame]:
    return [
        frame
        for frame in client.frames
        if frame["type"] == "card.add" and frame["envelope"]["card_kind"] == "artifact"
    ]


class Gate:
    """A file whose reading waits, in its thread, until it may go on."""

    def __init__(self) -> None:
        self.is_read = threading.Event()
        self.may_go_on = threading.Event()

    def read(self, size: int) -> bytes:
        if self.may_go_on.is_set():
            return b""
        self.is_read.set()
        assert self.may_go_on.wait(30)
        return b"late"


class TestKeep:
    async def test_stores_rows_and_bytes_and_shows_a_card(
        self, house: House, client: Client
    ) -> None:
        """HC-48."""
        made: list[Artifact] = []

        async def play(turn: Turn) -> None:
            made.append(await turn.artifact("report.md", "# Done"))
            made.append(await turn.artifact("report.md", "# Done again"))
            made.append(await turn.artifact("other.md", b"# Other"))

        house.engine.plays["make"] = play
        await client.say("make", "c1")
        await client.until_closed("turn_c1")

        assert await run_in_database(versions) == [
            ("report.md", 1, b"# Done"),
            ("report.md", 2, b"# Done again"),
            ("other.md", 1, b"# Other"),
        ]
        assert [(each.name, each.version) for each in made] == [
            ("report.md", 1),
            ("report.md", 2),
            ("other.md", 1),
        ]
        assert made[0].artifact_id == made[1].artifact_id != made[2].artifact_id
        cards = artifact_cards(client)
        assert [card["payload"]["artifact_id"] for card in cards] == [
            each.artifact_id for each in made
        ]
        assert cards[0]["envelope"]["card_id"] == made[0].artifact_id
        assert client.closes() == [("turn", "ok")]

    async def test_makes_names_safe(self, house: House, client: Client) -> None:
        async def play(turn: Turn) -> None:
            await turn.artifact("../../etc/passwd\x00\u202e", "x")

        house.engine.plays["make"] = play
        await client.say("make", "c1")
        await client.until_closed("turn_c1")

        (row,) = await run_in_database(lambda: list(ArtifactRow.objects.all()))
        assert "/" not in row.name
        assert artifact_cards(client)[0]["payload"]["name"] == row.name

    async def test_shows_versions_of_parallel_tasks_in_their_order(
        self, house: House, client: Client
    ) -> None:
        async def play(turn: Turn) -> None:
            await asyncio.gather(
                *(turn.artifact("a.txt", f"{number}") for number in range(12))
            )

        house.engine.plays["make"] = play
        await client.say("make", "c1")
        await client.until_closed("turn_c1")

        shown = [card["payload"]["version"] for card in artifact_cards(client)]
        assert shown == list(range(1, 13))
        assert len(await run_in_database(versions)) == 12

    async def test_goes_on_from_what_earlier_turns_and_owners_kept(
        self, house: House, client: Client
    ) -> None:
        async def play(turn: Turn) -> None:
            await turn.artifact("a.txt", turn.input.event_id)

        house.engine.plays["make"] = play
        await client.say("make", "c1")
        await client.until_closed("turn_c1")
        async with running_house() as other:
            other.engine.plays["make"] = play
            later = await other.connect()
            await later.say("make", "c2")
            await later.until_closed("turn_c2")

        assert await run_in_database(versions) == [
            ("a.txt", 1, b"c1"),
            ("a.txt", 2, b"c2"),
        ]


class TestRefusal:
    async def test_of_too_large_a_file_leaves_nothing(
        self, house: House, client: Client
    ) -> None:
        async def play(turn: Turn) -> None:
            await turn.artifact("a.bin", b"x" * (MAX_FILE_BYTES + 1))

        house.engine.plays["make"] = play
        await client.say("make", "c1")
        closed = await client.until_closed("turn_c1")

        error = closed["payload"]["error"]
        assert error["type"] == "invalid_input"
        assert error["code"] == "ARTIFACT_TOO_LARGE"
        assert not error["retryable"]
        assert artifact_cards(client) == []
        assert stored_names() == []

    async def test_by_a_full_storage_can_be_tried_again(
        self, house: House, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*args: object, **kwargs: object) -> None:
            raise ArtifactRefused("STORAGE_FULL", "it is full", is_transient=True)

        async def play(turn: Turn) -> None:
            await turn.artifact("a.bin", b"x")

        house.engine.plays["make"] = play
        monkeypatch.setattr(house.shelf, "stage", refuse)
        await client.say("make", "c1")
        closed = await client.until_closed("turn_c1")

        error = closed["payload"]["error"]
        assert error["type"] == "dependency_fail"
        assert error["code"] == "ARTIFACT_NOT_STORED"
        assert error["retryable"]
        assert artifact_cards(client) == []

    async def test_by_the_database_shows_nothing(
        self, house: House, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its bytes stay: the commit may have been done although it failed."""
        errors: list[EngineError] = []

        def fail(*args: object) -> None:
            raise DatabaseError("it is away")

        async def play(turn: Turn) -> None:
            try:
                await turn.artifact("a.bin", b"x")
            except EngineError as error:
                errors.append(error)

        house.engine.plays["make"] = play
        monkeypatch.setattr(house.shelf, "keep", fail)
        await client.say("make", "c1")
        await client.until_closed("turn_c1")

        assert [each.error.code for each in errors] == ["ARTIFACT_NOT_STORED"]
        assert artifact_cards(client) == []
        assert len(stored_names()) == 1


class TestInterrupt:
    async def test_while_bytes_are_read_leaves_nothing(
        self, house: House, client: Client
    ) -> None:
        """Ruling E10."""
        gate: Any = Gate()

        async def play(turn: Turn) -> None:
            await turn.artifact("a.bin", gate)

        house.engine.plays["make"] = play
        await client.say("make", "c1")
        await run_in_database(gate.is_read.wait, 30)
        await client.interrupt()
        await client.until_closed("turn_c1")
        gate.may_go_on.set()
        await until_at_rest(house)

        assert client.closes() == [("turn", "cancelled")]
        assert await run_in_database(versions) == []
        assert stored_names() == []
        assert artifact_cards(client) == []

    async def test_shows_what_was_stored_meanwhile(
        self, house: House, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A file that is kept is seen: its card comes before its turn is closed."""
        is_keeping, may_go_on = threading.Event(), threading.Event()
        keep = house.shelf.keep

        def keep_slowly(*args: Any) -> object:
            is_keeping.set()
            assert may_go_on.wait(30)
            return keep(*args)

        async def play(turn: Turn) -> None:
            try:
                await turn.artifact("a.txt", "text")
            finally:
                may_go_on.set()
                # As an engine does that cleans up.
                await asyncio.shield(turn.artifact("b.txt", "text"))

        house.engine.plays["make"] = play
        monkeypatch.setattr(house.shelf, "keep", keep_slowly)
        await client.say("make", "c1")
        await run_in_database(is_keeping.wait, 30)
        await client.interrupt()
        await client.until_closed("turn_c1")

        names = [card["payload"]["name"] for card in artifact_cards(client)]
        assert names == ["a.txt", "b.txt"]
        assert client.closes() == [("turn", "cancelled")]


class TestSource:
    """What an engine gives to be read may be slow, or never end."""

    async def test_that_never_ends_holds_nothing_up_behind_a_stop(
        self, house: House, client: Client
    ) -> None:
        """Ruling E10: not even the session's way back to where nobody owns it."""
        gate: Any = Gate()

        async def play(turn: Turn) -> None:
            await turn.artifact("a.bin", gate)

        house.engine.plays["make"] = play
        await client.say("make", "c1")
        await run_in_database(gate.is_read.wait, 30)
        await client.interrupt()
        await client.until_closed("turn_c1")
        await until_at_rest(house)
        await client.say("hi", "c2")
        await client.until_closed("turn_c2")
        gate.may_go_on.set()

        assert client.closes()[0] == ("turn", "cancelled")
        assert client.closes()[-1] == ("turn", "ok")
        assert await run_in_database(versions) == []

    async def test_of_a_task_that_outlives_its_turn_holds_nothing_up(
        self, house: House, client: Client
    ) -> None:
        gate: Any = Gate()
        tasks: list[asyncio.Task[Artifact]] = []

        async def play(turn: Turn) -> None:
            tasks.append(asyncio.create_task(turn.artifact("a.bin", gate)))
            await run_in_database(gate.is_read.wait, 30)

        house.engine.plays["make"] = play
        await client.say("make", "c1")
        await client.until_closed("turn_c1")
        await until_at_rest(house)
        gate.may_go_on.set()

        assert client.closes() == [("turn", "ok")]
        with pytest.raises(EngineError, match="the turn has ended"):
            await tasks[0]
        assert await run_in_database(versions) == []

    async def test_takes_no_thread_from_other_files(
        self, house: House, client: Client
    ) -> None:
        gates: list[Any] = [Gate() for _ in range(FILE_THREADS)]

        async def wait(turn: Turn) -> None:
            await asyncio.gather(*(turn.artifact("a.bin", gate) for gate in gates))

        async def make(turn: Turn) -> None:
            await turn.artifact("b.txt", "text")

        house.engine.plays |= {"wait": wait, "make": make}
        other = await house.connect("other")
        await client.say("wait", "c1")
        for gate in gates:
            await run_in_database(gate.is_read.wait, 30)
        await other.say("make", "c2")
        await other.until_closed("turn_c2")

        assert await run_in_database(versions) == [("b.txt", 1, b"text")]
        for gate in gates:
            gate.may_go_on.set()
        await client.until_closed("turn_c1")
        assert len(await run_in_database(versions)) == 1 + len(gates)

    async def test_is_not_read_beside_too_many_others(
        self, house: House, client: Client
    ) -> None:
        gates: list[Any] = [Gate() for _ in range(MAX_SOURCES + 1)]

        async def wait(turn: Turn) -> None:
            await asyncio.gather(*(turn.artifact("a.bin", gate) for gate in gates))

        house.engine.plays["wait"] = wait
        await client.say("wait", "c1")
        for gate in gates[:-1]:
            await run_in_database(gate.is_read.wait, 30)
        assert not gates[-1].is_read.is_set()
        for gate in gates:
            gate.may_go_on.set()
        await client.until_closed("turn_c1")

        assert len(await run_in_database(versions)) == len(gates)


class TestReplacedOwner:
    async def test_keeps_nothing(self, transactional_db: None) -> None:
        """Ruling E14: a worker that was taken for lost stores nothing any more."""
        gate: Any = Gate()

        async def play(turn: Turn) -> None:
            await turn.flush()
            await turn.artifact("a.bin", gate)

        async with running_house(lease_s=0) as gone, running_house() as heir:
            gone.engine.plays["make"] = play
            await (await gone.connect()).say("make", "c1")
            await run_in_database(gate.is_read.wait, 30)
            after = await heir.connect()
            await after.until_closed("turn_c1")
            gate.may_go_on.set()
            await until_at_rest(gone)

            assert await run_in_database(versions) == []
            assert stored_names() == []


class TestMentions:
    """Ruling E21; HC-48."""

    async def test_of_files_of_earlier_turns_and_owners(
        self, house: House, client: Client
    ) -> None:
        async def make(turn: Turn) -> None:
            await turn.artifact("report.md", "text")

        async def tell(turn: Turn) -> None:
            async with turn.message() as message:
                await message.text("See rep")
                await message.text("ort.md.")

        house.engine.plays |= {"make": make, "tell": tell}
        await client.say("make", "c1")
        await client.until_closed("turn_c1")
        await client.say("tell", "c2")
        await client.until_closed("turn_c2")
        async with running_house() as other:
            other.engine.plays["tell"] = tell
            later = await other.connect()
            await later.say("tell", "c3")
            await later.until_closed("turn_c3")

        (card,) = artifact_cards(client)
        link = f"See [report.md](artifact://{card['payload']['artifact_id']})."
        assert texts_of(client, "turn_c2") == [link]
        assert texts_of(later, "turn_c3") == [link]

    async def test_of_what_was_uploaded_while_the_session_was_held(
        self, house: House, client: Client
    ) -> None:
        """Of equal names the one that came last is meant."""

        def upload() -> str:
            content = house.shelf.stage([b"text"], name="plan.md")
            session = Session.objects.get()
            artifact_id = f"art_{ArtifactRow.objects.count():016}"
            house.shelf.keep(
                NewArtifact(
                    artifact_id=artifact_id,
                    session_pk=session.pk,
                    name="plan.md",
                    content=content,
                    is_version=False,
                    source="user",
                ),
                utc_now(),
            )
            return artifact_id

        async def tell(turn: Turn) -> None:
            async with turn.message() as message:
                await message.text("See plan.md.")

        house.engine.plays["tell"] = tell
        await client.say("tell", "c1")
        await client.until_closed("turn_c1")
        for card in ("c2", "c3"):
            artifact_id = await run_in_database(upload)
            await client.say("tell", card)
            await client.until_closed(f"turn_{card}")

            assert texts_of(client, f"turn_{card}") == [
                f"See [plan.md](artifact://{artifact_id})."
            ]
        assert texts_of(client, "turn_c1") == ["See plan.md."]

    async def test_are_in_the_history_as_they_are_in_the_log(
        self, house: House, client: Client
    ) -> None:
        """A later owner reads the same words back."""
        seen: list[str] = []

        async def make(turn: Turn) -> None:
            await turn.artifact("report.md", "text")
            async with turn.message() as message:
                await message.text("See report.md")

        async def look(turn: Turn) -> None:
            seen.extend(each.text for each in turn.history if each.role == "assistant")

        house.engine.plays |= {"make": make, "look": look}
        await client.say("make", "c1")
        await client.until_closed("turn_c1")
        await client.say("look", "c2")
        await client.until_closed("turn_c2")
        async with running_house() as other:
            other.engine.plays["look"] = look
            later = await other.connect()
            await later.say("look", "c3")
            await later.until_closed("turn_c3")

        assert seen[0].startswith("See [report.md](artifact://art_")
        assert seen == [seen[0]] * 2


def texts_of(client: Client, turn_card_id: str) -> list[str]:
    """Return the text of each message of a turn."""
    messages = [
        frame["envelope"]["card_id"]
        for frame in client.frames
        if frame["type"] == "card.add"
        and frame["envelope"]["card_kind"] == "message"
        and frame["envelope"]["parent_card_id"] == turn_card_id
    ]
    return [
        "".join(
            frame["payload"]["chunk"]
            for frame in client.frames
            if frame["type"] == "card.append"
            and frame["envelope"]["card_id"] == message
        )
        for message in messages
    ]
