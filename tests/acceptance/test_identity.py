"""Tokens, cookies and origins against a real daphne.

Spec: Ruling E27; cases FR-123, FR-129.
"""

import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.acceptance.client import CardClient
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
    return closed.manage("issue_token", "ann").stdout.strip().rpartition("token=")[2]


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
        for secret in (token, bad):
            for name in ("token", "access_token"):
                assert refused(f"{url}?{name}={secret}") == 403
                with pytest.raises(urllib.error.HTTPError) as answer:
                    urllib.request.urlopen(f"{closed.url}/v1/sessions?{name}={secret}")
                assert answer.value.code == 400
                assert secret not in answer.value.read().decode()
        with CardClient(url, bearer(token)):
            pass

        assert token not in closed.log
        assert "SECRET" not in closed.log

    def test_refuses_a_page_of_another_site(
        self, closed: CardwireServer, token: str
    ) -> None:
        """Case FR-123: whatever it carries."""
        evil = bearer(token) | {"Origin": "https://evil.example"}
        assert refused(closed.socket_url, additional_headers=evil) == 403
        own = bearer(token) | {"Origin": closed.url}
        with CardClient(closed.socket_url, own) as client:
            assert client.session_id


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
