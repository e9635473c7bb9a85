"""A hundred answers race for each prompt: one counts, and has one effect.

`make race` does it for 1,000 prompts each, with one worker on SQLite and with two on
PostgreSQL and Redis; the test suite for a hundred.

Spec: Ruling E15; issue "Prompts", must reach.
"""

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.acceptance.client import CardClient, Frame, error_of, inner_kind
from tests.services import REDIS_URL, CardwireServer, postgres_database

SCRIPTED = {"CARDWIRE_ENGINE": "tests.acceptance.engines.ScriptedEngine"}

#: Answers that race for each prompt, from four connections.
CONNECTIONS = 4
ANSWERS = 25


def is_prompt(frame: Frame) -> bool:
    return bool(frame["type"] == "prompt.user")


def respond(client: CardClient, request_id: str, words: str) -> None:
    client.send(
        {
            "type": "prompt.user_response",
            "request_id": request_id,
            "decision": "approved",
            "payload": {"custom_text": words},
        }
    )


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


@contextmanager
def one_worker() -> Iterator[list[CardwireServer]]:
    """Give a worker on SQLite."""
    with TemporaryDirectory() as data_dir:
        server = CardwireServer(Path(data_dir), **SCRIPTED)
        try:
            server.start()
            yield [server]
        finally:
            server.close()


@contextmanager
def two_workers(redis_url: str = REDIS_URL) -> Iterator[list[CardwireServer]]:
    """Give two workers on PostgreSQL and Redis, on disks of their own."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres_database())
        servers = []
        for _ in range(2):
            server = CardwireServer(
                Path(stack.enter_context(TemporaryDirectory())),
                DATABASE_URL=url,
                REDIS_URL=redis_url,
                CARDWIRE_SECRET_KEY="both-workers-have-the-same-one",
                **SCRIPTED,
            )
            stack.callback(server.close)
            server.start()
            servers.append(server)
        yield servers


def main() -> None:
    """Race, and say that it was clean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, default=1000)
    prompts = parser.parse_args().prompts
    for name, workers in (("sqlite", one_worker), ("two-workers", two_workers)):
        with workers() as servers:
            began = time.monotonic()
            race(servers, prompts)
            seconds = time.monotonic() - began
        result = f"prompts={prompts} answers={prompts * 100} accepted={prompts}"
        print(f"race: on={name} {result} seconds={seconds:.0f}")  # noqa: T201 - a command


if __name__ == "__main__":
    main()
