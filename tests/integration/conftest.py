"""What every test with a database needs."""

import threading
from collections.abc import Iterator

import pytest
from django.db import connections

from cards import database


@pytest.fixture(scope="session", autouse=True)
def _database_threads(django_db_setup: None) -> Iterator[None]:
    """Close the connections of the database threads before the database is dropped."""
    yield
    everybody = threading.Barrier(database.READERS)

    def close() -> None:
        everybody.wait()
        connections.close_all()

    database.writer.submit(connections.close_all).result()
    for done in [database.readers.submit(close) for _ in range(database.READERS)]:
        done.result()
