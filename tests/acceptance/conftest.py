"""Servers for the acceptance tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services import CardwireServer, postgres_database

SCRIPTED = {"CARDWIRE_ENGINE": "tests.acceptance.engines.ScriptedEngine"}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def scripted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CardwireServer]:
    """A server that plays scenarios, on each database, shared by a module."""
    data_dir: Path = tmp_path_factory.mktemp("server")
    if request.param == "sqlite":
        yield from _serve(CardwireServer(data_dir, **SCRIPTED))
        return
    with postgres_database() as url:
        redis_url = request.getfixturevalue("redis_url")
        yield from _serve(
            CardwireServer(data_dir, DATABASE_URL=url, REDIS_URL=redis_url, **SCRIPTED)
        )


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[CardwireServer]:
    """A server that plays scenarios, for one test to mistreat."""
    yield from _serve(CardwireServer(tmp_path, **SCRIPTED))


def _serve(server: CardwireServer) -> Iterator[CardwireServer]:
    try:
        server.start()
        yield server
    finally:
        server.close()
