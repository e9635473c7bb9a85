"""Files that go with messages, on a real server.

Spec: EMIT 9; Rulings E9, E22, E28; issue "Artifacts" 5.
"""

import base64
import hashlib
import json
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.client import CardClient, Frame, error_of
from tests.services import CardwireServer

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)
MIB = 2**20


@pytest.fixture(name="reading", scope="module")
def _reading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CardwireServer]:
    engine = {"CARDWIRE_ENGINE": "tests.acceptance.reading_engine.ReadingEngine"}
    server = CardwireServer(tmp_path_factory.mktemp("server"), **engine)
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(name="client")
def _client(reading: CardwireServer) -> Iterator[CardClient]:
    with CardClient(f"{reading.socket_url}?session_id=s_{uuid.uuid4().hex}") as client:
        yield client


def send(client: CardClient, *content: Frame, event_id: str = "c1") -> None:
    client.send({"type": "user.message", "event_id": event_id, "content": content})


def block(block_type: str, source_type: str, **source: Any) -> Frame:
    return {"type": block_type, "source": {"type": source_type} | source}


def inline(content: bytes, block_type: str = "file") -> Frame:
    return block(block_type, "base64", data=base64.b64encode(content).decode())


def told(frames: list[Frame]) -> list[str]:
    """Return what the engine said of each file."""
    said: dict[str, str] = {}
    for frame in frames:
        if frame["type"] == "card.append":
            card_id = frame["envelope"]["card_id"]
            said[card_id] = said.get(card_id, "") + frame["payload"]["chunk"]
    return list(said.values())


def hashed(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def refusal_of(client: CardClient, frame: object) -> Frame:
    """Send a frame; return the one error that is all that comes of it."""
    client.send(frame)
    error = error_of(client.receive())
    assert client.nothing_else() == []
    return error


def upload(server: CardwireServer, session_id: str, name: str, content: bytes) -> Frame:
    mark = uuid.uuid4().hex
    parts = [
        f'--{mark}\r\nContent-Disposition: form-data; name="session_id"\r\n\r\n'
        f"{session_id}\r\n",
        f'--{mark}\r\nContent-Disposition: form-data; name="file";'
        f' filename="{name}"\r\n\r\n',
    ]
    body = "".join(parts).encode() + content + f"\r\n--{mark}--\r\n".encode()
    request = urllib.request.Request(
        f"{server.url}/v1/artifacts",
        data=body,
        headers={"Content-Type": f"multipart/form-data; boundary={mark}"},
    )
    with urllib.request.urlopen(request) as response:
        assert response.status == 201
        uploaded: Frame = json.load(response)
    return uploaded


class TestFile:
    def test_that_was_uploaded_reaches_the_engine(
        self, reading: CardwireServer, client: CardClient
    ) -> None:
        client.send({"type": "session.create", "session_id": client.session_id})
        client.receive()
        content = b"x" * (3 * MIB)
        uploaded = upload(reading, client.session_id, "large.bin", content)

        send(client, block("file", "artifact", artifact_id=uploaded["artifact_id"]))
        frames = client.until_turn_ends()

        assert told(frames)[0].endswith(hashed(content))
        assert client.opened["payload"]["inner"]["capabilities"]["artifacts"] is True

    def test_within_the_message_reaches_the_engine_and_not_the_log(
        self, client: CardClient
    ) -> None:
        """Case HC-52; as much as fits. Spec: Ruling E22."""
        content = bytes(range(256)) * (30 * 1024)

        send(client, inline(content), inline(PNG, "image"))
        frames = client.until_turn_ends()

        assert [words.split()[-1] for words in told(frames)] == [
            hashed(content),
            hashed(PNG),
        ]
        assert max(len(text) for text in client.raw) < 2000
        words = frames[0]["payload"]["input"]["content"]
        assert [each["source"]["type"] for each in words] == ["artifact"] * 2

    def test_by_its_path_reaches_the_engine(
        self, client: CardClient, tmp_path: Path
    ) -> None:
        """Case HC-52: as in the source, in development. Spec: EMIT 9."""
        (tmp_path / "x.png").write_bytes(PNG)

        send(client, block("image", "path", path=str(tmp_path / "x.png")))

        assert told(client.until_turn_ends()) == [f"`x.png` image/png {hashed(PNG)}"]

    def test_of_the_workspace_may_be_named(
        self, reading: CardwireServer, client: CardClient
    ) -> None:
        workspace = reading.data_dir / "workspace"
        workspace.mkdir(exist_ok=True)
        (workspace / "a.txt").write_bytes(b"a")

        send(client, block("file", "path", path=str(workspace / "a.txt")))

        assert told(client.until_turn_ends()) == [f"`a.txt` text/plain {hashed(b'a')}"]


class TestRefusedMessage:
    """One error that names the field, no turn, and the socket lives."""

    @pytest.mark.parametrize(
        ("content", "code", "field"),
        [
            (
                [block("image", "path", path="/etc/hostname")],
                "PATH_NOT_ALLOWED",
                "path",
            ),
            ([block("image", "url", url="http://localhost:9/")], None, "type"),
            ([block("file", "artifact", artifact_id="art_0")], None, "artifact_id"),
            ([block("file", "base64", data="?")], "INVALID_BASE64", "data"),
            ([inline(b"x" * (10 * MIB + 1))], "PAYLOAD_TOO_LARGE", "data"),
            ([block("image", "base64", data="A" * (10 * MIB + 1))], None, "data"),
        ],
        ids=["path", "url", "artifact", "base64", "large", "long"],
    )
    def test_has_no_effect(
        self, client: CardClient, content: list[Frame], code: str | None, field: str
    ) -> None:
        """Case HC-52; samples w06. Spec: Ruling E22."""
        text = {"type": "text", "text": "look"}
        error = refusal_of(
            client, {"type": "user.message", "content": [text, *content]}
        )

        assert error["type"] == "invalid_input"
        assert code in {None, error["code"]}
        assert error["details"]["field"] == f"content[1].source.{field}"

    def test_learns_nothing_of_the_servers_secrets(
        self, reading: CardwireServer, client: CardClient
    ) -> None:
        """Case FR-105; the data dir lies in the temp directory here."""
        for name in (
            "secret_key",
            "cardwire.sqlite3",
            "none",
            "workspace/../secret_key",
        ):
            path = f"{reading.data_dir}/{name}"
            content = [block("file", "path", path=path)]

            error = refusal_of(client, {"type": "user.message", "content": content})

            assert error["code"] == "PATH_NOT_ALLOWED"


class TestRestart:
    def test_leaves_a_queued_message_its_files(
        self, reading: CardwireServer, client: CardClient
    ) -> None:
        """Killed while it waits, the message is run by the next server."""
        client.send({"type": "user.message", "event_id": "c1", "text": "wait"})
        client.until(lambda frame: frame["type"] == "card.add")
        send(client, inline(b"a"), event_id="c2")
        client.until(lambda frame: "queue" in frame["payload"].get("inner", {}))
        reading.kill()
        reading.start_again()

        url = f"{reading.socket_url}?session_id={client.session_id}"
        with CardClient(url) as again:
            again.resume(0)
            frames = again.until(
                lambda frame: (
                    frame["type"] == "card.close"
                    and frame["envelope"]["card_id"] == "turn_c2"
                )
            )

        assert told(frames) == [f"`file-1.bin` text/plain {hashed(b'a')}"]
