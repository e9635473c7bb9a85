"""`manage.py cleanup_orphans`, on sessions whose worker is gone.

Spec: Ruling E14; cases FR-49, FR-53.
"""

import asyncio
from io import StringIO
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from cards.database import run_in_database
from cards.engine import Turn
from cards.models import Session, Worker
from cards.models import Turn as TurnRow
from cards.queries import fold_cards
from tests.integration.artifacts.shelving import use_storage
from tests.integration.cards.house import House, running_house

#: What the line says of the apps above.
NO_FILES = "files=0 versions=0 missing=0 scanned=0"


@pytest.fixture(autouse=True)
def _storage(settings: LazySettings, tmp_path: Path) -> None:
    """Another database than that of the test before has another storage."""
    use_storage(settings, location=str(tmp_path))


async def command(*arguments: str) -> str:
    def call() -> str:
        out = StringIO()
        call_command("cleanup_orphans", *arguments, stdout=out)
        return out.getvalue()

    # In a thread of its own: the command runs an event loop.
    return await run_in_database(call)


async def busy(house: House, *session_ids: str) -> None:
    """Have turns run that wait in a tool of a message, and one more in the queue."""
    for session_id in session_ids:
        is_inside = asyncio.Event()

        async def wait(turn: Turn, is_inside: asyncio.Event = is_inside) -> None:
            async with turn.message(), turn.tool("Bash"):
                await turn.system("topic", "title", "why", "fix")
                await turn.flush()
                is_inside.set()
                await asyncio.Event().wait()

        house.engine.plays["wait"] = wait
        client = await house.connect(session_id)
        await client.say("wait", "c1")
        await is_inside.wait()
        await client.say("hi", "c2")


class TestCleanupOrphans:
    async def test_counts_closes_and_finds_nothing_the_second_time(
        self, transactional_db: None
    ) -> None:
        async with running_house(lease_s=0) as gone, running_house() as alive:
            await busy(gone, "sess_1", "sess_2")
            await busy(alive, "sess_3")
            line = f"cleanup_orphans: sessions=2 turns=2 cards=6 deleted=0 {NO_FILES}\n"

            assert await command("--dry-run") == line
            assert await run_in_database(Worker.objects.count) == 2
            assert await command() == line
            nothing = (
                f"cleanup_orphans: sessions=0 turns=0 cards=0 deleted=0 {NO_FILES}\n"
            )
            assert await command() == nothing

            for session_id, status in (("sess_1", "failed"), ("sess_3", "open")):
                row = await run_in_database(Session.objects.get, session_id=session_id)
                cards = (await run_in_database(fold_cards, row.pk)).cards()
                tracked = [card for card in cards if card.card_kind != "system"]
                assert {card.status for card in tracked} == {status}
                assert [c.status for c in cards if c.card_kind == "system"] == ["open"]
            states = await run_in_database(
                lambda: list(
                    TurnRow.objects.order_by("session_id", "turn_no").values_list(
                        "state", flat=True
                    )
                )
            )
            assert states == ["ended", "queued"] * 2 + ["running", "queued"]
            assert await run_in_database(Worker.objects.count) == 1

    async def test_tells_that_the_database_is_away(
        self, transactional_db: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from django.db import OperationalError

        def fail(*arguments: object) -> None:
            raise OperationalError("the database is away")

        monkeypatch.setattr("cards.live.orphans.gone_workers", fail)
        with pytest.raises(CommandError, match="the database is away"):
            await command()
