"""Files that go with user messages, on the real database and storage.

Spec: EMIT 9; Rulings E8, E9, E22, E28; issue "Artifacts" 5.
"""

import asyncio
import base64
import os
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from django.conf import LazySettings
from django.db import DatabaseError, transaction

from artifacts.models import Artifact, ArtifactVersion
from cards import operations
from cards.database import run_in_database
from cards.engine import Engine, EngineError, FileBlock, TextBlock, Turn
from cards.live.user_files import UserFiles
from cards.local_paths import LocalPaths
from cards.models import Session
from cards.models import Turn as TurnRow
from cards.ports import ArtifactRefused, NewArtifact, StagedContent
from cards.protocol.client_messages import UserMessage
from cards.protocol.user_blocks import ContentBlock, Source
from tests.integration.artifacts.shelving import use_storage
from tests.integration.cards.house import (
    MAX_FILE_BYTES,
    Client,
    Frame,
    House,
    running_house,
    until_at_rest,
)
from tests.integration.prompts.asking import answer, request_of, until_asked

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)

HI = {"type": "text", "text": "hi"}


@pytest.fixture(name="files_dir", autouse=True)
def _files_dir(tmp_path: Path, settings: LazySettings) -> Path:
    folder = tmp_path / "artifacts"
    use_storage(settings, location=str(folder))
    settings.CARDWIRE_INCOMING_DIR = tmp_path / "incoming"
    return folder


@pytest.fixture(name="local_dir")
def _local_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "local"
    folder.mkdir()
    return folder


@pytest_asyncio.fixture(name="house")
async def _house(transactional_db: None, local_dir: Path) -> AsyncIterator[House]:
    async with running_house(local_paths=[local_dir]) as house:
        yield house


@pytest_asyncio.fixture(name="client")
async def _client(house: House) -> Client:
    return await house.connect()


def inline(content: bytes, block_type: str = "file", **fields: str) -> Frame:
    source = {"type": "base64", "data": base64.b64encode(content).decode()}
    return {"type": block_type, "source": source} | fields


def from_path(path: object, block_type: str = "file") -> Frame:
    return {"type": block_type, "source": {"type": "path", "path": str(path)}}


def reference(artifact_id: str, block_type: str = "file", **source: object) -> Frame:
    known = {"type": "artifact", "artifact_id": artifact_id}
    return {"type": block_type, "source": known | source}


async def send(client: Client, *content: Frame, event_id: str | None = None) -> None:
    frame = {"type": "user.message", "content": list(content)}
    await client.send(frame | ({"event_id": event_id} if event_id else {}))


async def refused(client: Client, *content: Frame) -> Frame:
    """Send a message, and return the one error that it gets."""
    count = len(client.frames)
    await send(client, *content)
    (frame,) = client.frames[count:]
    error: Frame = frame["payload"]["inner"]["error"]
    return error


def stored_files(folder: Path) -> list[bytes]:
    return sorted(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def rows() -> list[tuple[str, str, str, int]]:
    """Return name, who brought it, MIME type and size of each version, by age."""
    versions = ArtifactVersion.objects.select_related("artifact").order_by("pk")
    return [
        (row.artifact.name, row.artifact.source, row.mime_type, row.size_bytes)
        for row in versions
    ]


async def nothing_stored(files_dir: Path, incoming: Path) -> bool:
    """Tell whether nothing is left of a message."""
    count = await run_in_database(lambda: TurnRow.objects.count() + len(rows()))
    return not (count or stored_files(files_dir) or stored_files(incoming))


class Hearing:
    """A play that reads the whole message."""

    def __init__(self, house: House) -> None:
        self.input: Any = None
        self.read: list[bytes] = []
        self.history: Sequence[Any] = ()
        house.engine.plays["hi"] = self

    async def __call__(self, turn: Turn) -> None:
        self.input = turn.input
        self.history = turn.history
        self.read = [
            await block.read()
            for block in turn.input.blocks
            if isinstance(block, FileBlock)
        ]


def input_of(client: Client, turn: str) -> Frame:
    (added,) = [
        frame
        for frame in client.logged
        if frame["type"] == "card.add" and frame["envelope"]["card_id"] == turn
    ]
    words: Frame = added["payload"]["input"]
    return words


class TestInlineFile:
    async def test_becomes_an_artifact_that_the_engine_reads(
        self, house: House, client: Client
    ) -> None:
        """Case HC-52: text and a picture as base64. Spec: Ruling E28."""
        hearing = Hearing(house)

        await send(client, HI, inline(PNG, "image", name="plan.png"), event_id="c1")
        closed = await client.until_closed("turn_c1")

        assert closed["payload"]["status"] == "ok"
        assert hearing.read == [PNG]
        assert hearing.input.text == "hi\n\n[image: plan.png]"
        words, picture = hearing.input.blocks
        assert isinstance(words, TextBlock)
        assert words.text == "hi"
        assert (picture.type, picture.name) == ("image", "plan.png")
        assert (picture.mime_type, picture.size_bytes) == ("image/png", len(PNG))
        assert picture.artifact.version == 1
        expected = [("plan.png", "user", "image/png", len(PNG))]
        assert await run_in_database(rows) == expected

    async def test_is_logged_and_stored_by_its_artifact(self, client: Client) -> None:
        """Spec: Rulings E2, E28: no inline data anywhere."""
        await send(client, HI, inline(PNG, "image", name="plan.png"), event_id="c1")
        await client.until_closed("turn_c1")

        logged = input_of(client, "turn_c1")
        artifact = await run_in_database(Artifact.objects.get)
        source = {
            "type": "artifact",
            "artifact_id": artifact.artifact_id,
            "version": 1,
            "name": "plan.png",
            "mime_type": "image/png",
            "size_bytes": len(PNG),
            "thumbnail": f"/v1/artifacts/{artifact.artifact_id}/thumbnail?version=1",
        }
        assert logged == {
            "event_id": "c1",
            "text": "hi",
            "content": [HI, {"type": "image", "source": source}],
        }
        row = await run_in_database(TurnRow.objects.get)
        assert base64.b64encode(PNG).decode()[:20] not in str(row.message)
        # The words alone are the title; the name of a file says little beside them.
        session = await run_in_database(Session.objects.get)
        assert session.title == "hi"

    async def test_needs_no_words(self, house: House, client: Client) -> None:
        async def play(turn: Turn) -> None:
            await turn.todo(turn.input.text)

        house.engine.plays["[pdf:"] = play

        await send(client, inline(b"%PDF-1.7\n", "pdf"), event_id="c1")
        closed = await client.until_closed("turn_c1")

        assert closed["payload"]["status"] == "ok"
        assert input_of(client, "turn_c1")["text"] == ""
        session = await run_in_database(Session.objects.get)
        assert session.title == "[pdf: document-1.pdf]"

    async def test_is_called_as_may_be_shown(self, client: Client) -> None:
        """Cases FR-107, FR-113."""
        await send(
            client, HI, inline(b"a", name="../../x/\u202ea\0.txt"), event_id="c1"
        )
        await client.until_closed("turn_c1")

        source = input_of(client, "turn_c1")["content"][1]["source"]
        assert source["name"] == "a\ufffd.txt"

    async def test_is_what_its_bytes_are(self, client: Client) -> None:
        """Case FR-109: a lying claim is only a hint."""
        block = inline(b"<script>alert(1)</script>", "image", name="a.png")
        block["source"]["media_type"] = "image/png"
        await send(client, HI, block, event_id="c1")
        await client.until_closed("turn_c1")

        assert input_of(client, "turn_c1")["content"][1]["source"]["mime_type"] == (
            "text/html"
        )

    async def test_twice_in_one_message_is_two_artifacts(self, client: Client) -> None:
        await send(client, HI, inline(b"a"), inline(b"a"), event_id="c1")
        await client.until_closed("turn_c1")

        _, *files = input_of(client, "turn_c1")["content"]
        assert len({block["source"]["artifact_id"] for block in files}) == 2
        assert await run_in_database(Artifact.objects.count) == 2

    @pytest.mark.parametrize("data", ["QQ", "data:image/png;base64,QQ==", "é", "Q Q="])
    async def test_that_is_no_base64_is_refused(
        self, house: House, client: Client, files_dir: Path, tmp_path: Path, data: str
    ) -> None:
        bad = {"type": "image", "source": {"type": "base64", "data": data}}

        error = await refused(client, HI, inline(b"fine"), bad)

        assert (error["type"], error["code"]) == ("invalid_input", "INVALID_BASE64")
        assert error["details"]["field"] == "content[2].source.data"
        assert await nothing_stored(files_dir, tmp_path / "incoming")


class TestReferredFile:
    async def bring(self, client: Client, content: bytes = b"a") -> str:
        await send(client, HI, inline(content, name="a.txt"), event_id="bring")
        await client.until_closed("turn_bring")
        source = input_of(client, "turn_bring")["content"][1]["source"]
        artifact_id: str = source["artifact_id"]
        return artifact_id

    async def test_is_read_by_the_same_interface(
        self, house: House, client: Client
    ) -> None:
        artifact_id = await self.bring(client)
        hearing = Hearing(house)

        await send(client, HI, reference(artifact_id), event_id="c1")
        await client.until_closed("turn_c1")

        assert hearing.read == [b"a"]
        source = input_of(client, "turn_c1")["content"][1]["source"]
        assert (source["artifact_id"], source["name"]) == (artifact_id, "a.txt")
        assert await run_in_database(Artifact.objects.count) == 1

    async def test_is_the_newest_version_or_the_named_one(
        self, house: House, client: Client
    ) -> None:
        ids: list[str] = []

        async def make(turn: Turn) -> None:
            for text in ("one", "two"):
                ids.append((await turn.artifact("r.md", text)).artifact_id)

        house.engine.plays["make"] = make
        await client.say("make", "c1")
        await client.until_closed("turn_c1")
        hearing = Hearing(house)

        blocks = [reference(ids[0]), reference(ids[0], version=1)]
        await send(client, HI, *blocks, event_id="c2")
        await client.until_closed("turn_c2")

        assert hearing.read == [b"two", b"one"]

    @pytest.mark.parametrize(
        "source",
        [
            {"artifact_id": "art_0123456789abcdef"},
            {"artifact_id": "../secret"},
            {"artifact_id": "a\0b"},
            {"artifact_id": "x" * 10_000},
            {"version": 2},
        ],
        ids=["unknown", "path", "nul", "long", "version"],
    )
    async def test_that_is_not_there_is_refused(
        self, client: Client, source: Frame
    ) -> None:
        known = {"artifact_id": await self.bring(client)}

        error = await refused(client, HI, reference(**(known | source)))

        assert (error["type"], error["code"]) == ("invalid_input", "UNKNOWN_ARTIFACT")
        assert error["details"]["field"] == "content[1].source.artifact_id"

    @pytest.mark.parametrize("session_id", ["sess_2", None])
    async def test_of_another_session_is_unknown(
        self, house: House, client: Client, session_id: str | None
    ) -> None:
        """Ids of others are like those of nobody. Spec: Ruling E27."""
        artifact_id = await self.bring(client)
        other = await house.connect(session_id)
        unknown = await refused(other, HI, reference("art_0000000000000000"))

        error = await refused(other, HI, reference(artifact_id))

        assert error == unknown
        assert error["code"] == "UNKNOWN_ARTIFACT"

    async def test_may_have_come_to_another_worker(
        self, house: House, client: Client
    ) -> None:
        """The session has a row that this worker has not heard of yet."""
        async with running_house() as another:
            late = await another.connect()
            artifact_id = await self.bring(client)
            await until_at_rest(house)

            await send(late, HI, reference(artifact_id), event_id="c1")
            await late.until_closed("turn_c1")

        assert late.errors() == []


class TestFileOfTheServer:
    async def test_is_copied_where_it_may_be_read(
        self, house: House, client: Client, local_dir: Path
    ) -> None:
        """Case HC-52: a picture by its path, without a media type. Spec: EMIT 9."""
        hearing = Hearing(house)
        path = local_dir / "x.png"
        path.write_bytes(PNG)

        await send(client, HI, from_path(path, "image"), event_id="c1")
        await client.until_closed("turn_c1")

        assert hearing.read == [PNG]
        assert hearing.input.text == "hi\n\n[image: x.png]"
        assert path.read_bytes() == PNG
        assert str(local_dir) not in str(client.frames)

    async def test_elsewhere_is_refused_whether_there_or_not(
        self, client: Client, local_dir: Path, files_dir: Path, tmp_path: Path
    ) -> None:
        """Case FR-105; sample w06: nothing of it comes back by any route."""
        (local_dir / "out").symlink_to("/etc/passwd")
        paths = ["/etc/passwd", "/etc/none", f"{local_dir}/../x", f"{local_dir}/out"]

        errors = [
            await refused(client, HI, inline(b"fine"), from_path(path))
            for path in (*paths, "x", "~/x", "/proc/self/environ")
        ]

        assert {error["code"] for error in errors} == {"PATH_NOT_ALLOWED"}
        assert {error["type"] for error in errors} == {"invalid_input"}
        fields = {error["details"]["field"] for error in errors}
        assert fields == {"content[2].source.path"}
        assert len({error["message"] for error in errors[:4]}) == 1
        assert await nothing_stored(files_dir, tmp_path / "incoming")

    async def test_that_is_no_file_holds_nobody_up(
        self, client: Client, local_dir: Path
    ) -> None:
        os.mkfifo(local_dir / "pipe")

        for path in (local_dir / "pipe", local_dir / "none"):
            error = await refused(client, HI, from_path(path))

            assert error["code"] == "PATH_NOT_READABLE"

    async def test_that_is_too_large_is_refused(
        self, client: Client, local_dir: Path, files_dir: Path, tmp_path: Path
    ) -> None:
        with (local_dir / "large").open("wb") as file:
            file.truncate(MAX_FILE_BYTES + 1)

        error = await refused(client, HI, from_path(local_dir / "large"))

        assert (error["type"], error["code"]) == ("invalid_input", "PAYLOAD_TOO_LARGE")
        assert error["details"]["field"] == "content[1].source.path"
        assert await nothing_stored(files_dir, tmp_path / "incoming")

    async def test_may_be_empty(
        self, house: House, client: Client, local_dir: Path
    ) -> None:
        hearing = Hearing(house)
        (local_dir / "empty").touch()

        await send(client, HI, from_path(local_dir / "empty"), event_id="c1")
        await client.until_closed("turn_c1")

        assert hearing.read == [b""]


class TestSameMessage:
    """Spec: Ruling E8."""

    async def test_twice_brings_its_files_once(
        self, client: Client, files_dir: Path
    ) -> None:
        for _ in range(2):
            await send(client, HI, inline(b"a"), event_id="c1")
        await client.until_closed("turn_c1")

        again = [f for f in client.frames if f["payload"].get("kind") == "updated"]
        assert [f["payload"]["inner"]["turn_card_id"] for f in again] == ["turn_c1"]
        assert await run_in_database(ArtifactVersion.objects.count) == 1
        assert stored_files(files_dir) == [b"a"]

    async def test_is_the_same_although_its_file_is_another_by_now(
        self, client: Client, local_dir: Path
    ) -> None:
        path = local_dir / "a.txt"
        path.write_bytes(b"a")
        await send(client, HI, from_path(path), event_id="c1")
        await client.until_closed("turn_c1")
        path.unlink()

        await send(client, HI, from_path(path), event_id="c1")

        assert client.errors() == []
        assert await run_in_database(rows) == [("a.txt", "user", "text/plain", 1)]

    async def test_from_two_workers_at_once_brings_its_files_once(
        self, house: House, client: Client, files_dir: Path
    ) -> None:
        async with running_house() as another:
            other = await another.connect()
            await asyncio.gather(
                *(
                    send(each, HI, inline(b"a"), event_id="c1")
                    for each in (client, other)
                )
            )
            for worker in (house, another):
                await until_at_rest(worker)
            for each in (client, other):
                # Nobody rings here: each looks when it is over.
                await each.resume(0)
                await each.until_closed("turn_c1")

        assert client.errors() == other.errors() == []
        assert await run_in_database(TurnRow.objects.count) == 1
        assert await run_in_database(ArtifactVersion.objects.count) == 1
        assert stored_files(files_dir) == [b"a"]

    @pytest.mark.parametrize(
        "content",
        [
            [HI, inline(b"b")],
            [HI, inline(b"a", "image")],
            [HI, inline(b"a", name="n")],
            [HI],
            [HI, inline(b"a"), HI],
        ],
        ids=["bytes", "type", "name", "words", "more"],
    )
    async def test_with_something_else_is_refused(
        self, client: Client, files_dir: Path, content: list[Frame]
    ) -> None:
        await send(client, HI, inline(b"a"), event_id="c1")
        await client.until_closed("turn_c1")

        await send(client, *content, event_id="c1")

        assert [error["code"] for error in client.errors()] == ["EVENT_ID_REUSED"]
        assert stored_files(files_dir) == [b"a"]

    async def test_with_files_where_there_were_words_is_refused(
        self, client: Client, files_dir: Path
    ) -> None:
        await send(client, HI, event_id="c1")
        await client.until_closed("turn_c1")

        await send(client, HI, inline(b"a"), event_id="c1")

        assert [error["code"] for error in client.errors()] == ["EVENT_ID_REUSED"]
        assert stored_files(files_dir) == []


class TestRefusal:
    async def test_of_a_full_storage_stores_nothing(
        self,
        house: House,
        client: Client,
        files_dir: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """One clear error, no half file, no row; the next one works."""
        stage = house.shelf.stage

        def full(chunks: Any, **hints: Any) -> StagedContent:
            if b"".join(chunks) == b"second":
                raise ArtifactRefused("STORAGE_FULL", "it is full", is_transient=True)
            return stage([b"first"], **hints)

        monkeypatch.setattr(house.shelf, "stage", full)
        error = await refused(client, HI, inline(b"first"), inline(b"second"))

        assert (error["type"], error["code"]) == (
            "dependency_fail",
            "ARTIFACT_NOT_STORED",
        )
        assert error["retryable"] is True
        assert error["details"] == {
            "field": "content[2].source.data",
            "reason": "STORAGE_FULL",
        }
        assert await nothing_stored(files_dir, tmp_path / "incoming")
        monkeypatch.undo()
        await send(client, HI, inline(b"second"), event_id="c1")
        await client.until_closed("turn_c1")

    async def test_of_a_full_queue_stores_no_file(
        self, transactional_db: None, files_dir: Path, tmp_path: Path
    ) -> None:
        """Spec: Ruling E9."""
        begun, goes_on = asyncio.Event(), asyncio.Event()

        async def wait(turn: Turn) -> None:
            begun.set()
            await goes_on.wait()

        async with running_house(queue_limit=0) as house:
            house.engine.plays["wait"] = wait
            client = await house.connect()
            await client.say("wait", "c1")
            await begun.wait()

            error = await refused(client, HI, inline(b"a"))

            assert error["code"] == "QUEUE_FULL"
            assert stored_files(files_dir) == stored_files(tmp_path / "incoming") == []
            goes_on.set()
            await client.until_closed("turn_c1")

    async def test_of_the_row_takes_the_turn_with_it(
        self,
        house: House,
        client: Client,
        files_dir: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Neither without the other."""
        keep = house.shelf.keep

        def fail(new: NewArtifact, now: datetime) -> None:
            keep(new, now)
            raise DatabaseError("no room")

        monkeypatch.setattr(house.shelf, "keep", fail)
        error = await refused(client, HI, inline(b"a"))

        assert error["code"] == "DATABASE_UNAVAILABLE"
        assert await run_in_database(Session.objects.count) == 0
        assert await nothing_stored(files_dir, tmp_path / "incoming")

    async def test_of_the_turn_takes_the_rows_with_it(
        self, client: Client, files_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A commit that fails, or is not confirmed, leaves bytes alone, and no row.

        They are left to `cleanup_orphans`: the rows might be there all the same.
        """
        create = operations._create_turn

        def fail(*arguments: Any) -> None:
            with transaction.atomic():
                create(*arguments)
            raise DatabaseError("the connection is gone")

        monkeypatch.setattr(operations, "_create_turn", fail)
        error = await refused(client, HI, inline(b"a"))

        assert error["code"] == "DATABASE_UNAVAILABLE"
        assert await run_in_database(rows) == []
        assert stored_files(files_dir) == [b"a"]

    async def test_of_the_database_stages_nothing(
        self, client: Client, files_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whoever tries again and again must not fill the disk."""
        await send(client, HI, event_id="c1")
        await client.until_closed("turn_c1")

        def away(session_pk: int, event_id: str) -> bool:
            raise DatabaseError("away")

        monkeypatch.setattr("cards.live.user_files.is_accepted", away)
        error = await refused(client, HI, inline(b"a"))

        assert error["code"] == "DATABASE_UNAVAILABLE"
        assert stored_files(files_dir) == []


class TestCancelledMessage:
    async def test_leaves_bytes_that_another_thread_may_be_about_to_keep(
        self, house: House, files_dir: Path
    ) -> None:
        """As a process that ends; what nobody keeps is for `cleanup_orphans`."""
        message = UserMessage(
            content=ContentBlock(type="file", source=Source(type="base64", data="YQ=="))
        )
        files = UserFiles(house.shelf, LocalPaths([]))

        with pytest.raises(asyncio.CancelledError):
            async with files.received(
                message, session_id="sess_1", session_pk=None, event_id="c1"
            ):
                raise asyncio.CancelledError

        assert stored_files(files_dir) == [b"a"]
        assert await run_in_database(rows) == []


class TestQueuedMessage:
    async def test_keeps_its_files_for_the_next_worker(
        self, transactional_db: None
    ) -> None:
        """Queue and restart: what waits is run elsewhere, files and all."""
        begun = asyncio.Event()

        async def wait(turn: Turn) -> None:
            begun.set()
            await asyncio.Event().wait()

        async with running_house(lease_s=0) as lost, running_house() as heir:
            lost.engine.plays["wait"] = wait
            hearing = Hearing(heir)
            client = await lost.connect()
            await client.say("wait", "c1")
            await begun.wait()
            await send(client, HI, inline(b"a", name="a.txt"), event_id="c2")

            after = await heir.connect()
            await after.until_closed("turn_c2")

            assert hearing.read == [b"a"]

    async def test_is_shown_by_the_names_of_its_files(
        self, house: House, client: Client
    ) -> None:
        """Spec: Ruling E9."""
        begun, goes_on = asyncio.Event(), asyncio.Event()

        async def wait(turn: Turn) -> None:
            begun.set()
            await goes_on.wait()

        house.engine.plays["wait"] = wait
        await client.say("wait", "c1")
        await begun.wait()
        await send(client, HI, inline(b"a", name="a.txt"), event_id="c2")
        goes_on.set()
        await client.until_closed("turn_c2")

        inners = [f["payload"].get("inner", {}) for f in client.logged]
        queues = [inner["queue"] for inner in inners if "queue" in inner]
        assert queues[0] == [{"event_id": "c2", "text": "hi\n\n[file: a.txt]"}]


class TestContinuation:
    async def test_has_the_files_of_the_turn_that_asked(
        self, transactional_db: None
    ) -> None:
        """Its worker is gone when the answer comes. Spec: Ruling E15."""
        read: list[tuple[str, bytes]] = []

        async def ask(turn: Turn) -> None:
            await turn.ask("which?")

        class Continuing(Engine):
            async def run(self, turn: Turn) -> None:
                assert turn.input.continuation is not None
                assert "[file" not in turn.input.text
                for block in turn.input.blocks:
                    if isinstance(block, FileBlock):
                        read.append((block.name, await block.read()))

        async with (
            running_house(lease_s=0) as lost,
            running_house(engine=Continuing()) as heir,
        ):
            lost.engine.plays["hi"] = ask
            client = await lost.connect()
            await send(client, HI, inline(b"a", name="a.txt"), event_id="c1")
            request_id = request_of(await until_asked(client))
            after = await heir.connect()
            await answer(after, request_id, "approved", custom_text="this")
            await after.until_closed(f"turn_{request_id}")

        assert read == [("a.txt", b"a")]
        added = [f for f in after.logged if f["type"] == "card.add"]
        assert added[-1]["payload"]["input"]["content"][1:] == []


class TestHistory:
    async def test_names_files_live_and_from_the_log(
        self, house: House, client: Client
    ) -> None:
        """Spec: engine-api.md, Turn.history."""
        hearing = Hearing(house)
        await send(client, HI, inline(b"a", name="a.txt"), event_id="c1")
        await client.until_closed("turn_c1")
        await send(client, HI, event_id="c2")
        await client.until_closed("turn_c2")
        live = hearing.history
        await until_at_rest(house)
        async with running_house() as another:
            hearing = Hearing(another)
            late = await another.connect()
            await send(late, HI, event_id="c3")
            await late.until_closed("turn_c3")

        said = [tuple(entry) for entry in hearing.history]
        assert said == [
            ("user", "hi\n\n[file: a.txt]", 1),
            ("user", "hi", 2),
        ]
        assert [tuple(entry) for entry in live] == said[:1]


class TestFileThatIsGone:
    async def test_fails_the_turn_that_reads_it(
        self, house: House, client: Client
    ) -> None:
        """It was deleted between its message and its turn."""
        caught: list[EngineError] = []

        async def read(turn: Turn) -> None:
            await run_in_database(Artifact.objects.all().delete)
            (block,) = (b for b in turn.input.blocks if isinstance(b, FileBlock))
            try:
                await block.read()
            except EngineError as error:
                caught.append(error)
                raise

        house.engine.plays["hi"] = read
        await send(client, HI, inline(b"a"), event_id="c1")
        closed = await client.until_closed("turn_c1")

        assert closed["payload"]["error"]["code"] == "FILE_GONE"
        assert [error.error.retryable for error in caught] == [False]


class TestWordsThatInterrupt:
    async def test_bring_no_files(self, client: Client) -> None:
        """Spec: Ruling E23; a remark is words alone."""
        count = len(client.frames)
        await client.send(
            {"type": "user.inject", "text": "x", "content": [inline(b"a")]}
        )

        (frame,) = client.frames[count:]
        assert frame["payload"]["inner"]["error"]["code"] == "UNSUPPORTED_FIELD"
