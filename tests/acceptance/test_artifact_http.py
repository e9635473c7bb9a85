"""Files up and down through a real server: little memory, nobody held up, no leftovers.

Spec: issue "Artifacts" 4.
"""

import hashlib
import http.client
import json
import os
import resource
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.acceptance.client import CardClient, error_of, inner_kind, is_end_of_turn
from tests.acceptance.large_body import body_of
from tests.acceptance.test_large_bodies import (
    MEGABYTE,
    PATIENCE_S,
    PeakMemory,
    connect,
    head,
    read_response,
    spooled_bodies,
)
from tests.services import CardwireServer, until

#: Of the file whose way is looked at; the benchmark takes five of 200 MB.
LARGE_BYTES = 100_000_000

DOWNLOADS = 3

#: What a file may have on this server.
MAX_BYTES = 200 * MEGABYTE

PIECE = MEGABYTE

FORM = {"Content-Type": "multipart/form-data; boundary=frame"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CardwireServer]:
    """A server that all tests of the module share."""
    server = CardwireServer(
        tmp_path_factory.mktemp("server"),
        CARDWIRE_MAX_UPLOAD_BYTES=str(MAX_BYTES),
        CARDWIRE_ENGINE="tests.acceptance.engines.ScriptedEngine",
    )
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def client(server: CardwireServer) -> Iterator[CardClient]:
    """A client in a session that has a row."""
    with CardClient(server.socket_url) as client:
        client.send({"type": "session.create", "session_id": client.session_id})
        client.receive()
        yield client


def form_of(session_id: str, content: bytes, name: str = "a.bin") -> bytes:
    return (
        b'--frame\r\nContent-Disposition: form-data; name="session_id"\r\n\r\n'
        + session_id.encode()
        + b'\r\n--frame\r\nContent-Disposition: form-data; name="file"; filename="'
        + name.encode()
        + b'"\r\n\r\n'
        + content
        + b"\r\n--frame--\r\n"
    )


def ask(
    server: CardwireServer,
    method: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] = MappingProxyType({}),
    *,
    is_chunked: bool = False,
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Return status, headers and body of an answer."""
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)) as each:
        sent = (FORM if method == "POST" else {}) | dict(headers)
        each.request(method, path, body, sent, encode_chunked=is_chunked)
        response = each.getresponse()
        return response.status, response.headers, response.read()


def bring(
    server: CardwireServer, client: CardClient, content: bytes
) -> tuple[int, dict[str, Any]]:
    status, _, body = ask(
        server, "POST", "/v1/artifacts", form_of(client.session_id, content)
    )
    return status, json.loads(body)


def content_path(artifact: dict[str, Any]) -> str:
    return f"/v1/artifacts/{artifact['artifact_id']}/content"


def stored_files(server: CardwireServer) -> set[str]:
    """Return the names of all files, those that come in as well."""
    found = (
        path
        for folder in ("artifacts", "incoming")
        for path in (server.data_dir / folder).rglob("*")
    )
    return {path.name for path in found if path.is_file()}


def open_files(server: CardwireServer) -> int:
    """Return how many files of sessions the server has open."""
    count = 0
    for link in Path(f"/proc/{server.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            target = os.readlink(link)
            count += f"{server.data_dir}/artifacts/" in target
            count += f"{server.data_dir}/incoming/" in target
    return count


class TestLargeFile:
    def test_goes_up_and_down_within_bounded_memory(
        self, server: CardwireServer, client: CardClient
    ) -> None:
        """Case: issue "Artifacts", must reach; others are answered meanwhile."""
        content = body_of(LARGE_BYTES)
        form = form_of(client.session_id, content)
        answers: list[tuple[int, bytes]] = []

        def go_up() -> None:
            pieces = (form[at : at + PIECE] for at in range(0, len(form), PIECE))
            status, _, body = ask(
                server,
                "POST",
                "/v1/artifacts",
                pieces,
                {"Content-Length": str(len(form))},
            )
            answers.append((status, body))

        rise = self.rise_meanwhile(server, client, [threading.Thread(target=go_up)])

        (status, body) = answers.pop()
        told = json.loads(body)
        assert (status, told["size_bytes"]) == (201, LARGE_BYTES)
        assert told["sha256"] == hashlib.sha256(content).hexdigest()
        assert rise < 32 * MEGABYTE

        def go_down() -> None:
            digest = hashlib.sha256()
            with closing(HTTPConnection("127.0.0.1", server.port)) as each:
                each.request("GET", content_path(told))
                response = each.getresponse()
                while piece := response.read(PIECE):
                    digest.update(piece)
            answers.append((response.status, digest.hexdigest().encode()))

        downloads = [threading.Thread(target=go_down) for _ in range(DOWNLOADS)]
        rise = self.rise_meanwhile(server, client, downloads)

        assert answers == [(200, told["sha256"].encode())] * DOWNLOADS
        assert rise < 32 * MEGABYTE
        until(lambda: open_files(server) == 0, "the files to be closed")
        assert spooled_bodies(server) == 0

    @staticmethod
    def rise_meanwhile(
        server: CardwireServer, client: CardClient, work: list[threading.Thread]
    ) -> int:
        """Return by how much the server grows while a client is answered all along."""
        memory = PeakMemory(server)
        for each in work:
            each.start()
        while any(each.is_alive() for each in work):
            assert client.nothing_else() == []
        return memory.rise()


class TestUpload:
    def test_of_no_stated_length_is_taken(
        self, server: CardwireServer, client: CardClient
    ) -> None:
        form = form_of(client.session_id, b"words")

        status, headers, body = ask(
            server, "POST", "/v1/artifacts", iter([form]), is_chunked=True
        )

        assert (status, json.loads(body)["size_bytes"]) == (201, 5)
        assert headers["Location"].startswith("/v1/artifacts/art_")

    def test_that_breaks_off_leaves_nothing(
        self, server: CardwireServer, client: CardClient
    ) -> None:
        before = stored_files(server)
        form = form_of(client.session_id, bytes(3 * MEGABYTE))
        request = head(
            "POST",
            "/v1/artifacts",
            f"Content-Length: {len(form)}",
            *(f"{name}: {value}" for name, value in FORM.items()),
        )
        with connect(server) as gone:
            gone.sendall(request + form[: 2 * MEGABYTE])
            until(lambda: spooled_bodies(server) == 1, "the body to be spooled")

        until(lambda: spooled_bodies(server) == 0, "the body to be given back")
        assert stored_files(server) == before

    def test_over_the_cap_leaves_nothing(
        self, server: CardwireServer, client: CardClient
    ) -> None:
        """By a byte: the form around it is within what the server takes at all."""
        before = stored_files(server)

        status, told = bring(server, client, bytes(MAX_BYTES + 1))

        assert (status, told["error"]["code"]) == (413, "ARTIFACT_TOO_LARGE")
        assert stored_files(server) == before

    def test_on_a_full_disk_leaves_nothing(
        self, server: CardwireServer, client: CardClient
    ) -> None:
        """A bound on the size of files stands for a disk without room."""
        before = stored_files(server)
        limit = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (8 * MEGABYTE, limit[1]))
        try:
            status, _ = bring(server, client, bytes(9 * MEGABYTE))
        finally:
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, limit)

        assert status == 507
        assert stored_files(server) == before
        assert spooled_bodies(server) == 0
        assert bring(server, client, b"words")[0] == 201


class TestDownload:
    def test_goes_on_where_it_was_cut(
        self, server: CardwireServer, client: CardClient
    ) -> None:
        content = body_of(5_000_000)
        _, told = bring(server, client, content)
        with connect(server) as gone, gone.makefile("rb") as stream:
            gone.sendall(head("GET", content_path(told)))
            while stream.readline().strip():
                pass
            first = stream.read(1_234_567)

        status, headers, rest = ask(
            server,
            "GET",
            content_path(told),
            headers={
                "Range": f"bytes={len(first)}-",
                "If-Range": f'"{told["sha256"]}"',
            },
        )

        assert status == 206
        assert headers["Content-Range"] == f"bytes {len(first)}-4999999/5000000"
        assert first + rest == content

    def test_ends_with_its_client(
        self, server: CardwireServer, client: CardClient
    ) -> None:
        """The file does not stay open for one that is gone."""
        _, told = bring(server, client, body_of(LARGE_BYTES))
        with connect(server, buffer_bytes=4096) as gone:
            gone.sendall(head("GET", content_path(told)))
            assert gone.recv(1000, socket.MSG_WAITALL)
            assert open_files(server) == 1

        until(lambda: open_files(server) == 0, "the file to be closed")

    def test_comes_one_behind_the_other(
        self, server: CardwireServer, client: CardClient
    ) -> None:
        """On one connection, with HEAD, what is known and parts among them."""
        _, told = bring(server, client, content := body_of(200_000))
        path, known = content_path(told), f'If-None-Match: "{told["sha256"]}"'
        requests = [
            ("GET", ()),
            ("HEAD", ()),
            ("GET", (known,)),
            ("GET", ("Range: bytes=5-9",)),
            ("GET", ("Range: bytes=200000-",)),
            ("GET", ()),
        ]
        with connect(server) as pipe, pipe.makefile("rb") as stream:
            for method, headers in requests:
                pipe.sendall(head(method, path, *headers))
            answers = [read_response(stream, method) for method, _ in requests]

        assert [status for status, _ in answers] == [200, 200, 304, 206, 416, 200]
        assert [body for _, body in answers[:4]] == [content, b"", b"", content[5:10]]
        assert answers[-1] == (200, content)


class TestDeletedSession:
    def test_goes_with_its_files_and_its_clients_hear_of_it(
        self, server: CardwireServer, client: CardClient
    ) -> None:
        """Spec: interfaces.md, REST; Ruling E5."""
        before = stored_files(server)
        _, told = bring(server, client, b"words")
        assert len(stored_files(server)) == len(before) + 1

        status, _, body = ask(server, "DELETE", f"/v1/sessions/{client.session_id}")

        assert (status, body) == (204, b"")
        *_, error, answer = client.until(lambda f: inner_kind(f) == "resume_failed")
        assert error_of(error)["code"] == "SESSION_DELETED"
        assert answer["payload"]["inner"]["reason"] == "session_not_found"
        assert stored_files(server) == before
        assert ask(server, "GET", content_path(told))[0] == 404
        client.say("hello")
        assert error_of(client.receive())["code"] == "SESSION_NOT_FOUND"

    def test_stops_the_turn_that_runs(self, server: CardwireServer) -> None:
        with CardClient(server.socket_url) as client:
            client.say("wait")
            client.until(lambda frame: frame["type"] == "card.add")

            status, _, _ = ask(server, "DELETE", f"/v1/sessions/{client.session_id}")

            assert status == 204
            frames = client.until(lambda f: inner_kind(f) == "resume_failed")
            assert not any(map(is_end_of_turn, frames))
            assert client.nothing_else() == []


class TestStranger:
    @pytest.fixture(scope="class")
    @staticmethod
    def closed_server(
        tmp_path_factory: pytest.TempPathFactory,
    ) -> Iterator[CardwireServer]:
        """A server that wants to know everybody."""
        data_dir = tmp_path_factory.mktemp("closed")
        closed = CardwireServer(data_dir, CARDWIRE_ALLOW_ANONYMOUS="0")
        try:
            closed.start()
            yield closed
        finally:
            closed.close()

    def test_has_no_large_file_taken(self, closed_server: CardwireServer) -> None:
        """Whoever is not known gets nothing onto the disk, and hears why."""
        make_ann = "User.objects.create(username='ann')"
        closed_server.manage("shell", "-c", make_ann)
        issued = closed_server.manage("issue_token", "ann").stdout
        token = {"Authorization": f"Bearer {issued.strip().rpartition('token=')[2]}"}
        form = form_of("sess_1", bytes(20 * MEGABYTE))
        with CardClient(closed_server.socket_url, token) as ann:
            ann.send({"type": "session.create", "session_id": "sess_1"})
            ann.receive()

            unknown = [
                ask(closed_server, "POST", path, form, headers)[0]
                for path in ("/v1/artifacts", "/sign-in/", "/nowhere")
                for headers in ({}, {"Authorization": "Bearer x", "Cookie": "a=b"})
            ]
            known = ask(closed_server, "POST", "/v1/artifacts", form, token)[0]

        assert unknown == [401] * 6
        assert known == 201
        assert len(stored_files(closed_server)) == 1
        assert spooled_bodies(closed_server) == 0

    def test_is_not_even_asked_for_it(self, closed_server: CardwireServer) -> None:
        with connect(closed_server) as client:
            length = f"Content-Length: {20 * MEGABYTE}"
            asked = head("POST", "/v1/artifacts", length, "Expect: 100-continue")
            client.sendall(asked)

            assert client.recv(12) == b"HTTP/1.1 401"
            assert spooled_bodies(closed_server) == 0
