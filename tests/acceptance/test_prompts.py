"""Questions survive everything and are answered once, on real servers.

Spec: EMIT 2.4.2; Rulings E15, E16, E26.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.client import CardClient, Frame, error_of, inner_kind, text_of
from tests.services import CardwireServer, postgres_database

SCRIPTED = {"CARDWIRE_ENGINE": "tests.acceptance.engines.ScriptedEngine"}

#: Answers that race for each prompt, from four connections.
CONNECTIONS = 4
ANSWERS = 25


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


def is_prompt(frame: Frame) -> bool:
    return bool(frame["type"] == "prompt.user")


def is_reply(frame: Frame) -> bool:
    return bool(frame["type"] == "prompt.reply")


def respond(client: CardClient, request_id: str, words: str) -> None:
    client.send(
        {
            "type": "prompt.user_response",
            "request_id": request_id,
            "decision": "approved",
            "payload": {"custom_text": words},
        }
    )


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


class Racer:
    """A connection that answers as often as it can."""

    def __init__(self, client: CardClient) -> None:
        self.client = client
        self._request_ids: list[str] = []

    def receive(self) -> Frame:
        frame = self.client.receive()
        if is_prompt(frame):
            self._request_ids.append(frame["payload"]["request_id"])
        return frame

    def request(self, number: int) -> str:
        """Return the id of a prompt once it is there, counted from 0."""
        while len(self._request_ids) <= number:
            self.receive()
        return self._request_ids[number]

    def refused(self, request_id: str) -> int:
        """Return how many answers to a prompt were refused."""
        # Frames are handled in their order: this one is answered behind the others.
        respond(self.client, "req_last", "")
        refused: list[str] = []
        while "req_last" not in refused:
            frame = self.receive()
            if inner_kind(frame) == "error":
                error = error_of(frame)
                assert error["code"] == "UNKNOWN_REQUEST_ID"
                refused.append(error["details"]["request_id"])
        assert set(refused) <= {request_id, "req_last"}
        return len(refused) - 1


def race(servers: list[CardwireServer], prompts: int) -> None:
    """Have four connections answer each prompt, all at once."""
    urls = [server.socket_url for server in servers] * CONNECTIONS
    racers = [Racer(CardClient(f"{url}?session_id=s1")) for url in urls[:CONNECTIONS]]
    try:
        racers[0].client.say(f"race {prompts}", "c1")
        winners = [str(_race_for_one(racers, number)) for number in range(prompts)]
        racers[0].client.nothing_else()
        frames = list(map(json.loads, racers[0].client.raw))
        effects = [
            frame["payload"]["inner"]["output"]
            for frame in frames
            if frame.get("envelope", {}).get("card_kind") == "tool"
            and frame["type"] == "card.close"
        ]
    finally:
        for racer in racers:
            racer.client.close()
    assert effects == winners


def _race_for_one(racers: list[Racer], number: int) -> int:
    """Return which connection's answer counted."""
    (request_id,) = {racer.request(number) for racer in racers}
    for _ in range(ANSWERS):
        for name, racer in enumerate(racers):
            respond(racer.client, request_id, str(name))
    refused = [racer.refused(request_id) for racer in racers]
    assert sorted(refused) == [ANSWERS - 1, *[ANSWERS] * (CONNECTIONS - 1)]
    return refused.index(ANSWERS - 1)


def test_one_answer_of_a_hundred_counts(server: CardwireServer) -> None:
    """Spec: Ruling E15."""
    race([server], 100)


def test_one_answer_of_a_hundred_counts_among_workers(
    tmp_path_factory: pytest.TempPathFactory, redis_url: str
) -> None:
    """Spec: Rulings E15, E26."""
    with postgres_database() as url:
        servers = [
            CardwireServer(
                tmp_path_factory.mktemp("worker"),
                DATABASE_URL=url,
                REDIS_URL=redis_url,
                CARDWIRE_SECRET_KEY="both-workers-have-the-same-one",
                **SCRIPTED,
            )
            for _ in range(2)
        ]
        try:
            for server in servers:
                server.start()
            race(servers, 100)
        finally:
            for server in servers:
                server.close()
