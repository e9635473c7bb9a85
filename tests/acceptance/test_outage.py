"""A database that goes away under a running turn, and comes back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from tests.acceptance.client import CardClient, error_of, inner_kind, seqs_of
from tests.acceptance.conftest import SCRIPTED
from tests.services import POSTGRES_URL, CardwireServer, postgres_database


@contextmanager
def away(url: str) -> Iterator[None]:
    """Keep everybody out of a database."""
    name = urlsplit(url).path.removeprefix("/")
    database = sql.Identifier(name)
    with psycopg.connect(POSTGRES_URL, autocommit=True) as admin:
        admin.execute(
            sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(database)
        )
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            [name],
        )
        try:
            yield
        finally:
            admin.execute(
                sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(database)
            )


@pytest.mark.postgres
class TestOutage:
    def test_fails_turns_clearly_and_heals_without_a_restart(
        self, tmp_path: Path
    ) -> None:
        """Issue: emitters wait, then turns fail; when it is back, all works again."""
        with postgres_database() as url:
            server = CardwireServer(tmp_path, DATABASE_URL=url, **SCRIPTED)
            try:
                server.start()
                with CardClient(server.socket_url) as client:
                    self.check(client, url)
            finally:
                server.close()

    def check(self, client: CardClient, url: str) -> None:
        client.say("paced 100000", event_id="c1")
        frames = client.until(lambda frame: "20 " in str(frame["payload"]))
        with away(url):
            frames += client.until(lambda frame: inner_kind(frame) == "error")
            told = error_of(frames[-1])
            client.say("hi", event_id="c2")
            refused = error_of(client.until(lambda f: inner_kind(f) == "error")[-1])
        frames += client.until_turn_ends()
        client.say("hi", event_id="c2")
        frames += client.until_turn_ends()

        assert (told["code"], told["retryable"]) == ("LOG_UNAVAILABLE", True)
        assert refused["code"] == "DATABASE_UNAVAILABLE"
        assert refused["retryable"] is True
        closes = {
            frame["envelope"]["card_id"]: frame["payload"]["status"]
            for frame in frames
            if frame["type"] == "card.close"
        }
        assert closes["turn_c1"] == "failed"
        assert closes["turn_c2"] == "ok"
        seqs = seqs_of(frames, client.trace_id)
        assert seqs == list(range(1, len(seqs) + 1))
