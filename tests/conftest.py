"""Fixtures for all tests."""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

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


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Let reports pass to the process that gathers them, whatever a test printed.

    What engines raise may hold halves of surrogate pairs, which have no encoding.
    """
    return _encodable((yield))


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, list | tuple):
        return type(value)(map(_encodable, value))
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    return value
