"""Tokens, cookies, origins and limits against a real daphne.

Spec: Ruling E27; cases FR-123, FR-129, HC-62.
"""

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.acceptance.client import CardClient, error_of
from tests.services import CardwireServer, until


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CardwireServer]:
    """A server without guests, that looks at tokens every half second."""
    data_dir: Path = tmp_path_factory.mktemp("closed")
    server = CardwireServer(
        data_dir,
        CARDWIRE_ENGINE="tests.acceptance.engines.ScriptedEngine",
        CARDWIRE_ALLOW_ANONYMOUS="0",
        CARDWIRE_CREDENTIAL_CHECK_S="0.5",
        DJANGO_SUPERUSER_PASSWORD="pw-of-ann",
    )
    try:
        server.start()
        server.manage(
            "createsuperuser", "--noinput", "--username=ann", "--email=a@b.example"
        )
        yield server
    finally:
        server.close()


@pytest.fixture
def token(closed: CardwireServer) -> str:
    return token_on(closed)


def token_on(server: CardwireServer) -> str:
    return server.manage("issue_token", "ann").stdout.strip().rpartition("token=")[2]


@pytest.fixture
def cookie(closed: CardwireServer) -> str:
    """The cookie of a browser in which ann is signed in."""
    made = closed.manage(
        "shell",
        "-c",
        "from django.contrib.auth.models import User;"
        "from django.test import Client;"
        "client = Client();"
        "client.force_login(User.objects.get(username='ann'));"
        "print('key=' + client.cookies['sessionid'].value)",
    )
    return "sessionid=" + made.stdout.strip().rpartition("key=")[2]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def refused(url: str, **options: Any) -> int:
    with pytest.raises(InvalidStatus) as refusal:
        connect(url, **options)
    return refusal.value.response.status_code


class TestHandshake:
    def test_takes_a_token_in_the_header(
        self, closed: CardwireServer, token: str
    ) -> None:
        with CardClient(closed.socket_url, bearer(token)) as client:
            client.say("hi")
            assert client.until_turn_ends()[-1]["payload"]["status"] == "ok"

    def test_takes_a_token_as_subprotocol(
        self, closed: CardwireServer, token: str
    ) -> None:
        offered: Any = ["bearer", token]
        with connect(closed.socket_url, subprotocols=offered) as socket:
            assert socket.subprotocol == "bearer"
            assert '"opened"' in str(socket.recv())

    def test_refuses_all_others_and_logs_no_secret(
        self, closed: CardwireServer, token: str
    ) -> None:
        """Case FR-129: good and bad secrets, in every way."""
        bad = "cwt_bad-SECRET"
        url = closed.socket_url
        assert refused(url) == 403
        assert refused(url, additional_headers=bearer(bad)) == 403
        assert refused(url, subprotocols=["bearer", bad]) == 403
        assert refused(url, additional_headers={"Cookie": "sessionid=SECRET"}) == 403
        with CardClient(url, bearer(token)):
            pass

        assert token not in closed.log
        assert "SECRET" not in closed.log

    def test_refuses_secrets_in_any_address_and_keeps_them_nowhere(
        self, closed: CardwireServer, token: str, cookie: str
    ) -> None:
        """Case FR-129: of pages, routes and sockets, also for who is signed in."""
        encoded = "".join(f"%{ord(letter):02x}" for letter in token)
        queries = [f"token={token}", "access_token=SECRET", f"x=Bearer%20{token}"]
        queries += [
            token,
            f"x={encoded}",
            f"next=%2F%3Ftoken%3D{encoded}",
            "jwt=SECRET",
        ]
        paths = ["/", "/sign-in/", "/admin/", "/admin/login/", "/v1/sessions", "/none"]
        addresses = [f"{path}?{query}" for path in paths for query in queries]
        for address in [*addresses, f"/v1/sessions/{token}", f"/{encoded}"]:
            request = urllib.request.Request(
                closed.url + address, headers={"Cookie": cookie}
            )
            with pytest.raises(urllib.error.HTTPError) as refusal:
                urllib.request.urlopen(request)
            said = str(refusal.value.headers) + refusal.value.read().decode()
            assert refusal.value.code == 400, address
            assert "does not belong into an address" in said
            assert not any(secret in said for secret in (token, encoded, "SECRET"))
        sockets = [f"{closed.socket_url}?{query}" for query in queries]
        for socket_url in [*sockets, f"{closed.socket_url}/{token}"]:
            assert refused(socket_url, additional_headers={"Cookie": cookie}) == 403
        with CardClient(closed.socket_url, bearer(token)):
            pass

        # All of them are in the access log.
        assert '"GET /sign-in/" 400' in closed.log
        assert '"GET (secret)" 400' in closed.log
        assert '"WSREJECT (secret)"' in closed.log
        for secret in (token, encoded, "SECRET", token[4:]):
            assert secret not in closed.log

    def test_refuses_a_page_of_another_site(
        self, closed: CardwireServer, token: str, cookie: str
    ) -> None:
        """Case FR-123: whatever it carries."""
        for good in (bearer(token), {"Cookie": cookie}):
            evil = good | {"Origin": "https://evil.example"}
            assert refused(closed.socket_url, additional_headers=evil) == 403
            with CardClient(closed.socket_url, good | {"Origin": closed.url}) as client:
                assert client.session_id

    def test_refuses_garbage_again_and_again(
        self, closed: CardwireServer, token: str, cookie: str
    ) -> None:
        """Quickly, without a word of it in the log, and nobody else notices."""
        with CardClient(closed.socket_url, bearer(token)) as client:
            for number in range(100):
                garbage = f"GARBAGE{number}" * (1 + number)
                for headers in (bearer(garbage), {"Cookie": f"sessionid={garbage}"}):
                    assert refused(closed.socket_url, additional_headers=headers) == 403
            assert client.nothing_else() == []
        with_cookie = bearer("GARBAGE") | {"Cookie": cookie}
        assert refused(closed.socket_url, additional_headers=with_cookie) == 403

        assert "GARBAGE" not in closed.log
        assert "Traceback" not in closed.log


class TestRevokedToken:
    def test_ends_its_sockets(self, closed: CardwireServer, token: str) -> None:
        other = closed.manage("issue_token", "ann").stdout.strip().split("token=")[1]
        with (
            CardClient(closed.socket_url, bearer(token)) as client,
            CardClient(closed.socket_url, bearer(other)) as stays,
        ):
            closed.manage(
                "shell",
                "-c",
                "from cards.access_tokens import find_token;"
                f"find_token({token!r}).delete()",
            )
            with pytest.raises(ConnectionClosed) as end:
                client.until(lambda frame: False)

            assert end.value.rcvd is not None
            assert end.value.rcvd.code == 1008
            assert stays.nothing_else() == []
        until(
            lambda: refused(closed.socket_url, additional_headers=bearer(token)) == 403,
            "the token to be refused",
        )


class TestSignOut:
    def test_ends_the_sockets_of_the_browser(
        self, closed: CardwireServer, cookie: str
    ) -> None:
        with CardClient(closed.socket_url, {"Cookie": cookie}) as client:
            closed.manage(
                "shell",
                "-c",
                "from cards.browser_sessions import SessionStore;"
                f"SessionStore({cookie.partition('=')[2]!r}).flush()",
            )
            with pytest.raises(ConnectionClosed) as end:
                client.until(lambda frame: False)

        assert end.value.rcvd is not None
        assert end.value.rcvd.code == 1008
        assert refused(closed.socket_url, additional_headers={"Cookie": cookie}) == 403


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CardwireServer]:
    """A server that allows a user two connections and three messages a minute."""
    data_dir: Path = tmp_path_factory.mktemp("narrow")
    server = CardwireServer(
        data_dir,
        CARDWIRE_ENGINE="tests.acceptance.engines.ScriptedEngine",
        CARDWIRE_MAX_CONNECTIONS="2",
        CARDWIRE_MESSAGES_PER_MINUTE="3",
        DJANGO_SUPERUSER_PASSWORD="pw-of-ann",
    )
    try:
        server.start()
        server.manage(
            "createsuperuser", "--noinput", "--username=ann", "--email=a@b.example"
        )
        yield server
    finally:
        server.close()


class TestLimits:
    def test_one_connection_too_many_is_told_and_closed(
        self, narrow: CardwireServer
    ) -> None:
        headers, url = bearer(token_on(narrow)), narrow.socket_url
        with CardClient(url, headers) as first:
            with CardClient(url, headers) as second:
                with CardClient(url, headers) as third:
                    error = error_of(third.opened)
                    with pytest.raises(ConnectionClosed) as end:
                        third.receive()
                assert first.nothing_else() == second.nothing_else() == []
            until(lambda: has_room(url, headers), "room for another connection")

        assert (error["type"], error["code"]) == ("overloaded", "TOO_MANY_CONNECTIONS")
        assert error["retryable"] is True
        assert error["user_message"]
        assert end.value.rcvd is not None
        assert end.value.rcvd.code == 1013

    def test_one_message_too_many_is_told_and_has_no_effect(
        self, narrow: CardwireServer
    ) -> None:
        """Case HC-62: and whatever else the client says is heard."""
        with CardClient(narrow.socket_url) as client:
            for number in range(3):
                client.say("hi", f"m{number}")
                last = client.until_turn_ends()[-1]
            client.say("hi", "one-too-many")
            error = error_of(client.receive())
            answers = [
                {"type": "prompt.user_response", "request_id": "r", "decision": "ok"},
                {"type": "tool.result", "tool_use_id": "t", "status": "success"},
            ]
            for answer in answers * 10:
                client.send(answer)
                assert error_of(client.receive())["code"].startswith("UNKNOWN_")
            client.send({"type": "session.interrupt"})
            idle = client.receive()
            kept = client.replay(0)

        assert (error["type"], error["code"]) == ("rate_limit", "RATE_LIMITED")
        assert error["details"]["event_id"] == "one-too-many"
        assert 0 < error["retry_after_ms"] <= 60_000
        assert idle["payload"]["inner"] == {"state": "idle"}
        assert kept[-1] == last

    def test_pings_are_never_too_many(self, narrow: CardwireServer) -> None:
        pings = 10_000
        with CardClient(narrow.socket_url) as client:

            def send_all() -> None:
                for _ in range(pings):
                    client.send({"type": "ping"})

            sender = threading.Thread(target=send_all)
            sender.start()
            answers = [client.receive() for _ in range(pings)]
            sender.join()
            rest = client.nothing_else()

        assert answers == [{"type": "pong"}] * pings
        assert rest == []


def has_room(url: str, headers: dict[str, str]) -> bool:
    with CardClient(url, headers) as client:
        return bool(client.opened["payload"]["kind"] == "opened")
