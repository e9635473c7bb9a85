"""Fixtures for all tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services import CardwireServer, postgres_database, redis_server


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    with postgres_database() as url:
        yield url


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with redis_server() as url:
        yield url


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CardwireServer]:
    """A server with the built-in engine on SQLite: what `make run` starts."""
    running = CardwireServer(tmp_path)
    try:
        running.start()
        yield running
    finally:
        running.close()
