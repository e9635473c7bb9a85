"""A process becomes one of the workers, whenever the database first answers.

Spec: Ruling E14; design.md 1, 4.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from django.db import OperationalError

from cards import ownership
from cards.clock import Entropy
from cards.database import WriteBatches, run_in_database
from cards.live.membership import Membership
from cards.models import Worker
from tests.integration.cards.house import House, error_of


class DatabaseAway:
    """Refuses the leases of this process for as long as it is away."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._renew = ownership.renew_lease
        self.is_away = True
        monkeypatch.setattr("cards.live.membership.renew_lease", self)

    def __call__(self, *args: object, **options: object) -> None:
        if self.is_away:
            raise OperationalError("the plug is pulled")
        self._renew(*args, **options)  # type: ignore[arg-type]


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> DatabaseAway:
    return DatabaseAway(monkeypatch)


@pytest_asyncio.fixture
async def member(transactional_db: None, tmp_path: Path) -> AsyncIterator[Membership]:
    member = Membership(
        WriteBatches(), lock_dir=tmp_path / "locks", lease_s=15, entropy=Entropy()
    )
    yield member
    await member.leave()


def lock_files(member: Membership) -> list[str]:
    return [path.name for path in member.me.lock_dir.iterdir()]


class TestJoin:
    async def test_succeeds_once_the_database_is_there(
        self, away: DatabaseAway, member: Membership
    ) -> None:
        """A worker may be started before its database, and needs no restart."""
        for _ in range(3):
            with pytest.raises(OperationalError):
                await member.join()
        away.is_away = False
        await member.join()

        workers = await run_in_database(lambda: list(Worker.objects.all()))
        assert [worker.worker_id for worker in workers] == [member.me.worker_id]
        assert lock_files(member) == [member.me.worker_id]

    async def test_leaves_no_lock_behind_that_nobody_holds(
        self, away: DatabaseAway, member: Membership
    ) -> None:
        with pytest.raises(OperationalError):
            await member.join()

        await member.leave()

        assert lock_files(member) == []

    async def test_lets_messages_be_accepted_afterwards(
        self, away: DatabaseAway, transactional_db: None
    ) -> None:
        house = House()
        client = await house.connect()
        await client.say("hi", "c1")
        assert error_of(client.last)["code"] == "DATABASE_UNAVAILABLE"

        away.is_away = False
        await client.say("hi", "c1")
        closed = await client.until_closed("turn_c1")
        await house.close()

        assert closed["payload"]["status"] == "ok"
