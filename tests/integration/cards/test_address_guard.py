"""Secrets in addresses, with the real pages behind the guard.

Spec: Ruling E27; case FR-129.
"""

import asyncio
import logging
from typing import Any
from urllib.parse import quote

import pytest
from django.core.asgi import get_asgi_application

from cards.address_guard import AddressGuard, address_for_logs, has_secret

TOKEN = "cwt_0123456789abcdefghijKLMNOPQRSTUVWXYZ-_0123456"

SECRET_QUERIES = {
    "token": f"token={TOKEN}",
    "access-token": f"access-token={TOKEN}",
    "bad-by-name": "access_token=SECRET",
    "upper-case-name": "TOKEN=SECRET",
    "empty": "a=1&auth=",
    "encoded-name": "a=1&%74oken=SECRET",
    "twice-encoded-name": "%2574oken=SECRET",
    "name-with-spaces": "+token%20=SECRET",
    "api-key": "api_key=SECRET",
    "cookie": "sessionid=SECRET",
    "any-name": f"session_id=s&other={TOKEN}",
    "short": "x=cwt_bad",
    "with-its-scheme": f"x=Bearer%20{TOKEN}",
    "as-a-name": TOKEN,
    "as-a-name-with-a-value": f"{TOKEN}=1",
    "session": f"session_id={TOKEN}",
    "encoded": "x=" + "".join(f"%{ord(letter):02X}" for letter in TOKEN),
    "twice-encoded": "x=%2563wt_" + TOKEN[4:],
    "where-to-go-next": "next=" + quote(f"/?access_token={TOKEN}", safe=""),
    "bad-where-to-go-next": "next=" + quote("/?token=SECRET", safe=""),
    "encoded-too-often": "x=%2525252525252525252525",
    "behind-a-semicolon": "a=1;token=SECRET",
}
FREE_QUERIES = {
    "none": "",
    "session": "session_id=sess_token",
    "page": "after_seq=1&limit=2",
    "cursor": "cursor=a:b",
    "next": "next=/%3Fsession%3Dsess_1",
    "search": "q=token",
    "per-cent": "q=100%25",
    "once-more": "next=%252F",
    "not-utf-8": "q=%ff%fe",
}
PATHS = ["/", "/sign-in/", "/admin/", "/admin/login/", "/v1/sessions", "/v1/none", "/x"]


def scope(kind: str, path: str, query: str) -> dict[str, Any]:
    return {
        "type": kind,
        "method": "GET",
        "path": path,
        "query_string": query.encode(),
        "headers": [(b"host", b"localhost")],
        "subprotocols": [],
    }


async def sent_by(application: Any, scope: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what an application sends to a client that says nothing more."""
    said = {"http": "http.request", "websocket": "websocket.connect"}
    waiting = [{"type": said.get(scope["type"], "lifespan.startup")}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.Event().wait()
        return waiting.pop()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await application(scope, receive, send)
    return sent


async def get(path: str, query: str) -> tuple[int, dict[bytes, bytes], bytes]:
    guard = AddressGuard(get_asgi_application())
    start, body = await sent_by(guard, scope("http", path, query))
    return start["status"], dict(start["headers"]), body["body"]


class TestHasSecret:
    @pytest.mark.parametrize("query", SECRET_QUERIES.values(), ids=SECRET_QUERIES)
    def test_finds_it_in_a_query(self, query: str) -> None:
        assert has_secret(path="/", query=query)

    @pytest.mark.parametrize("query", FREE_QUERIES.values(), ids=FREE_QUERIES)
    def test_lets_others_through(self, query: str) -> None:
        assert not has_secret(path="/", query=query)

    def test_finds_a_whole_token_in_a_path(self) -> None:
        for path in (f"/v1/sessions/{TOKEN}", f"/{quote(TOKEN)}", f"/%63{TOKEN[1:]}"):
            assert has_secret(path=path, query="")

    def test_lets_a_session_have_its_name(self) -> None:
        """Session ids are the clients' to choose. Spec: Ruling E1."""
        for session_id in ("cwt_1", "sess_cwt_token", "token"):
            assert not has_secret(path=f"/v1/sessions/{session_id}", query="")


class TestAddressForLogs:
    def test_is_the_path_alone(self) -> None:
        assert address_for_logs("/v1/ws?session_id=s") == "/v1/ws"
        assert address_for_logs("/") == "/"
        assert address_for_logs(f"/?x={TOKEN}") == "/"

    def test_is_nothing_of_a_path_with_a_secret(self) -> None:
        assert address_for_logs(f"/v1/sessions/{TOKEN}?a=1") == "(secret)"


class TestRequest:
    @pytest.mark.parametrize("query", SECRET_QUERIES.values(), ids=SECRET_QUERIES)
    async def test_with_a_secret_is_refused_without_a_word_of_it(
        self, query: str, caplog: pytest.LogCaptureFixture, transactional_db: None
    ) -> None:
        """Neither pages nor routes see it, nor a redirect to the sign-in page."""
        caplog.set_level(logging.DEBUG)
        for path in PATHS:
            status, headers, body = await get(path, query)

            assert status == 400
            assert b"Location" not in headers
            assert b"location" not in headers
            assert b"does not belong into an address" in body
            said = f"{headers}{body!r}"
            assert not any(word in said for word in (TOKEN[4:], "SECRET", "%25"))
        assert not any(word in caplog.text for word in (TOKEN[4:], "SECRET", "%25"))

    async def test_is_refused_in_the_form_of_its_neighbours(self) -> None:
        _, page, _ = await get("/", "token=x")
        _, route, body = await get("/v1/sessions", "token=x")

        assert page[b"content-type"] == b"text/plain; charset=utf-8"
        assert page[b"cache-control"] == b"no-store"
        assert page[b"referrer-policy"] == b"no-referrer"
        assert route[b"content-type"] == b"application/json; charset=utf-8"
        assert body.startswith(b'{"detail":"')

    async def test_without_one_is_answered(self, transactional_db: None) -> None:
        status, _, _ = await get("/sign-in/", "next=/%3Fsession%3Dsess_1")

        assert status == 200


class Behind:
    """What is behind the guard; remembers what reached it."""

    def __init__(self) -> None:
        self.reached: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.reached.append(scope["type"])


class TestHandshake:
    @pytest.mark.parametrize("query", SECRET_QUERIES.values(), ids=SECRET_QUERIES)
    async def test_with_a_secret_is_refused(self, query: str) -> None:
        behind = Behind()

        sent = await sent_by(AddressGuard(behind), scope("websocket", "/v1/ws", query))

        assert sent == [{"type": "websocket.close", "code": 1008}]
        assert behind.reached == []

    async def test_without_one_goes_on(self) -> None:
        behind = Behind()

        for kind in ("websocket", "lifespan"):
            asked = scope(kind, "/v1/ws", "session_id=sess_1")
            assert await sent_by(AddressGuard(behind), asked) == []

        assert behind.reached == ["websocket", "lifespan"]
