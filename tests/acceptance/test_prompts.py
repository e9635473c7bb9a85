"""Questions survive everything and are answered once, on real servers.

Spec: EMIT 2.4.2; Rulings E15, E16, E26.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.client import CardClient, Frame, error_of, text_of
from tests.acceptance.racing import (
    SCRIPTED,
    is_prompt,
    race,
    respond,
    two_workers,
)
from tests.services import CardwireServer, postgres_database


@pytest.fixture(params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CardwireServer]:
    """A server of its own database, for one test to kill."""
    if request.param == "sqlite":
        server = CardwireServer(tmp_path, **SCRIPTED)
        server.start()
        yield server
        server.close()
        return
    with postgres_database() as url:
        server = CardwireServer(tmp_path, DATABASE_URL=url, **SCRIPTED)
        server.start()
        yield server
        server.close()


def is_reply(frame: Frame) -> bool:
    return bool(frame["type"] == "prompt.reply")


def test_prompt_outlives_the_server(server: CardwireServer) -> None:
    """Spec: EMIT 2.4.2; cases HC-22, HC-23."""
    with CardClient(f"{server.socket_url}?session_id=s1") as client:
        client.say("ask Pick a color", "c1")
        prompt = client.until(is_prompt)[-1]
        first = client.raw[-1]
    request_id = prompt["payload"]["request_id"]

    server.kill()
    server.start_again()

    with CardClient(server.socket_url) as client:
        client.send({"type": "session.create", "session_id": "s1"})
        opened = client.receive()
        assert opened["payload"]["inner"]["capabilities"]["recovery"] is True
        assert client.receive() == prompt
        assert client.raw[-1] == first

        respond(client, request_id, "dark")
        frames = client.until(
            lambda frame: (
                frame["type"] == "card.close"
                and frame["envelope"]["card_id"] == f"turn_{request_id}"
            )
        )
        respond(client, request_id, "light")
        error = error_of(client.receive())

        replies = [frame["payload"] for frame in frames if is_reply(frame)]
        assert replies == [{"request_id": request_id, "decision": "approved"}]
        assert text_of(frames).startswith("question: Your question was")
        assert "My answer: dark" in text_of(frames)
        assert (error["code"], error["retryable"]) == ("UNKNOWN_REQUEST_ID", False)
        assert client.nothing_else() == []
    with CardClient(f"{server.socket_url}?session_id=s1") as client:
        assert client.nothing_else() == []


def test_one_answer_of_a_hundred_counts(server: CardwireServer) -> None:
    """Spec: Ruling E15."""
    race([server], 100)


def test_one_answer_of_a_hundred_counts_among_workers(redis_url: str) -> None:
    """Spec: Rulings E15, E26."""
    with two_workers(redis_url) as servers:
        race(servers, 100)
