"""Frames that break a rule: one error each, and the next good frame works."""

import json
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.acceptance.client import CardClient, error_of, inner_kind
from tests.services import CardwireServer

DEEP = "[" * 20_000

#: Raw frame, and what the error's details name. Spec: Ruling E22.
BAD_FRAMES: dict[str, tuple[str, str | None]] = {
    "cut off": ('{"type":"ping"', None),
    "an array": ("[]", None),
    "a string": ('"ping"', None),
    "null": ("null", None),
    "a number": ("42", None),
    "no type": ("{}", "type"),
    "type null": ('{"type":null}', "type"),
    "a server's type": ('{"type":"card.add","payload":{}}', "type"),
    "unknown type": ('{"type":"no.such.type"}', "type"),
    "other case": ('{"type":"PING"}', "type"),
    "two values": ('{"type":"ping"}{"type":"ping"}', None),
    "no content": ('{"type":"user.message"}', "content"),
    "bare string content": ('{"type":"user.message","content":"hi"}', "content"),
    "no blocks": ('{"type":"user.message","content":[]}', "content"),
    "text without text": (
        '{"type":"user.message","content":[{"type":"text"}]}',
        "content[0].text",
    ),
    "blank text": (
        '{"type":"user.message","content":[{"type":"text","text":"  "}]}',
        "content",
    ),
    "unknown block": (
        '{"type":"user.message","content":[{"type":"hologram","x":1}]}',
        "content[0].type",
    ),
    "image without source": (
        '{"type":"user.message","content":[{"type":"image"}]}',
        "content[0].source",
    ),
    "image from a path": (
        '{"type":"user.message","content":[{"type":"text","text":"look"},'
        '{"type":"image","source":{"type":"path","path":"/etc/hostname"}}]}',
        "content[1].source.path",
    ),
    "image from the network": (
        '{"type":"user.message","content":[{"type":"image",'
        '"source":{"type":"url","url":"http://localhost:9/"}}]}',
        "content[0].source.type",
    ),
    "half a surrogate": (
        '{"type":"user.message","content":[{"type":"text","text":"\\ud83d"}]}',
        "content[0].text",
    ),
    "NaN": ('{"type":"user.message","x":NaN}', None),
    "too large a number": ('{"type":"user.message","x":1e999}', None),
    "a key twice": ('{"type":"user.message","x":1,"x":2}', "x"),
    "single quotes": ("{'type':'ping'}", None),
    "trailing comma": ('{"type":"ping",}', None),
    "byte order mark": ('\ufeff{"type":"ping"}', None),
    "too deep": (f'{{"type":"user.message","x":{DEEP}', None),
    "a mode that is none": (
        '{"type":"user.message","text":"hi","coordinator_mode":"chaos"}',
        "coordinator_mode",
    ),
    "event_id too long": (
        json.dumps({"type": "user.message", "text": "hi", "event_id": "x" * 129}),
        "event_id",
    ),
    "resume of nothing": ('{"type":"session.resume"}', "trace_id"),
    "negative last_seq": (
        '{"type":"session.resume","trace_id":"tr_1","last_seq":-1}',
        "last_seq",
    ),
    "last_seq as text": (
        '{"type":"session.resume","trace_id":"tr_1","last_seq":"3"}',
        "last_seq",
    ),
    "broken last_seq": (
        '{"type":"session.resume","trace_id":"tr_1","last_seq":2.5}',
        "last_seq",
    ),
    "null last_seq": (
        '{"type":"session.resume","trace_id":"tr_1","last_seq":null}',
        "last_seq",
    ),
    "huge last_seq": (
        f'{{"type":"session.resume","trace_id":"tr_1","last_seq":{10**40}}}',
        "last_seq",
    ),
    "answer to nothing": (
        '{"type":"prompt.user_response","request_id":"req_0","decision":"approved"}',
        "request_id",
    ),
    "result of nothing": (
        '{"type":"tool.result","tool_use_id":"t","status":"success"}',
        "tool_use_id",
    ),
    "interrupt of another trace": (
        '{"type":"session.interrupt","trace_id":"tr_other"}',
        "trace_id",
    ),
}


class TestBadFrame:
    @pytest.mark.parametrize("name", BAD_FRAMES)
    def test_gets_exactly_one_error(self, scripted: CardwireServer, name: str) -> None:
        """Spec: EMIT 16; Ruling E22; samples w01, w02, w04, w06."""
        raw, field = BAD_FRAMES[name]
        with CardClient(scripted.socket_url) as client:
            client.send(raw)
            error = error_of(client.receive())
            rest = client.nothing_else()
            client.say("hi")
            frames = client.until_turn_ends()

        assert error["type"] == "invalid_input"
        assert error["message"]
        assert error["user_message"]
        assert error["retryable"] is False
        assert error.get("details", {}).get("field") == field
        assert rest == []
        assert frames[0]["envelope"]["seq"] == 1, "nothing was logged before"
        assert frames[-1]["payload"]["status"] == "ok"

    @pytest.mark.parametrize("content", [b'{"type":"ping"}', b"\xff\x00", b"x"])
    def test_in_binary_is_refused(
        self, scripted: CardwireServer, content: bytes
    ) -> None:
        """Spec: Ruling E22; case FR-81."""
        with CardClient(scripted.socket_url) as client:
            client.socket.send(content)

            assert error_of(client.receive())["code"] == "BINARY_FRAME"
            assert client.nothing_else() == []


class TestGoodFrame:
    @pytest.mark.parametrize(
        "raw",
        [
            ' \t{"type":"ping"} ',
            '{"type":"\\u0070ing"}',
            '{"type":"ping","n":123456789012345678901234567890}',
            '{"type":"ping","trace_id":7,"content":"anything"}',
        ],
    )
    def test_ping_gets_a_pong(self, scripted: CardwireServer, raw: str) -> None:
        """Spec: EMIT 2.3; Ruling E25."""
        with CardClient(scripted.socket_url) as client:
            client.send(raw)

            assert client.receive() == {"type": "pong"}

    def test_with_nul_is_stored_with_a_mark(self, scripted: CardwireServer) -> None:
        """Spec: Ruling E22; case FR-61."""
        with CardClient(scripted.socket_url) as client:
            client.say("hi a\0b")
            frames = client.until_turn_ends()

        assert frames[0]["payload"]["input"]["text"] == "hi a\ufffdb"

    def test_with_unknown_fields_works(self, scripted: CardwireServer) -> None:
        """Spec: Ruling E22; case FR-79."""
        with CardClient(scripted.socket_url) as client:
            client.send({"type": "user.message", "text": "hi", "mood": [1, {"a": 2}]})

            assert client.until_turn_ends()[-1]["payload"]["status"] == "ok"

    def test_of_many_megabytes_works(self, scripted: CardwireServer) -> None:
        """Daphne alone would drop the connection above 1 MiB."""
        with CardClient(scripted.socket_url) as client:
            client.say("hi " + "x" * (8 * 1024 * 1024))

            assert client.until_turn_ends()[-1]["payload"]["status"] == "ok"


class TestOversizedFrame:
    @pytest.mark.parametrize("character", ["x", "数"])
    def test_closes_with_1009(self, scripted: CardwireServer, character: str) -> None:
        """Spec: Ruling E22; case FR-183."""
        size = 16 * 1024 * 1024 // len(character.encode())
        with CardClient(scripted.socket_url) as client:
            client.say(character * size)
            with pytest.raises(ConnectionClosed) as closed:
                client.nothing_else()

        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


class TestForeignOrigin:
    def handshake(self, server: CardwireServer, **headers: str) -> Any:
        with connect(server.socket_url, additional_headers=headers) as socket:
            return json.loads(socket.recv(timeout=10))

    @pytest.mark.parametrize("origin", ["https://evil.example", "null", "file://"])
    def test_is_refused(self, scripted: CardwireServer, origin: str) -> None:
        """Spec: Ruling E27; case FR-123."""
        with pytest.raises(InvalidStatus) as refused:
            self.handshake(scripted, Origin=origin)

        assert refused.value.response.status_code == 403

    def test_own_origin_is_welcome(self, scripted: CardwireServer) -> None:
        assert inner_kind(self.handshake(scripted, Origin=scripted.url)) == "opened"


class TestOtherAddress:
    @pytest.mark.parametrize("path", ["/v1/ws/", "/", "/v1/wss"])
    def test_is_refused_without_a_word_in_the_log(
        self, scripted: CardwireServer, path: str
    ) -> None:
        url = scripted.socket_url.removesuffix("/v1/ws") + path
        with pytest.raises(InvalidStatus) as refusal:
            connect(url)

        assert refusal.value.response.status_code == 403
        assert "Traceback" not in scripted.log
