"""Small writes that share a transaction."""

import asyncio
from collections.abc import Coroutine

import pytest
from django.db import Error as DatabaseError
from django.db import connection

from cards.database import WriteBatches, run_in_database
from cards.models import Session
from tests.integration.cards.conftest import make_session


def lose_the_connection() -> None:
    """Query the database over a connection that has just broken."""
    raw = connection.connection
    assert raw is not None
    raw.close()
    Session.objects.exists()


def fail() -> None:
    raise LookupError


class TestWriteBatches:
    async def test_takes_back_only_what_failed(self, transactional_db: None) -> None:
        writes = WriteBatches()

        first, second, third = await asyncio.gather(
            writes.run(None, make_session, "sess_1"),
            writes.run(None, fail),
            writes.run(None, make_session, "sess_2"),
            return_exceptions=True,
        )

        assert isinstance(second, LookupError)
        assert await names() == ["sess_1", "sess_2"]
        assert isinstance(first, Session)
        assert isinstance(third, Session)

    @pytest.mark.parametrize("place", [1, 2, 3])
    async def test_calls_nothing_durable_that_a_lost_connection_took_back(
        self, transactional_db: None, place: int
    ) -> None:
        """A write that breaks the transaction breaks it for its neighbours too.

        Spec: Rulings E3, E15.
        """
        writes = WriteBatches()
        made: list[Coroutine[None, None, object]] = [
            writes.run(None, make_session, f"sess_{number}") for number in range(3)
        ]
        # The first one has a transaction of its own, while the others gather.
        made.insert(place, writes.run(None, lose_the_connection))

        done = await asyncio.gather(*made, return_exceptions=True)

        stored = [each.session_id for each in done if isinstance(each, Session)]
        assert stored == ["sess_0"]
        assert await names() == stored
        assert all(isinstance(each, DatabaseError) for each in done[1:])

    async def test_goes_on_after_a_lost_connection(
        self, transactional_db: None
    ) -> None:
        writes = WriteBatches()
        with pytest.raises(DatabaseError):
            await writes.run(None, lose_the_connection)

        await writes.run(None, make_session, "sess_1")

        assert await names() == ["sess_1"]


async def names() -> list[str]:
    return await run_in_database(
        lambda: list(
            Session.objects.order_by("pk").values_list("session_id", flat=True)
        )
    )
