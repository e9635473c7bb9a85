"""Deleting a session: everything goes, nothing goes on, and whoever follows is told.

Spec: interfaces.md, REST; Rulings E5, E27.
"""

import asyncio
from collections.abc import AsyncIterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from channels.layers import InMemoryChannelLayer
from django.apps import apps
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import DatabaseError
from django.test import Client as Browser

from artifacts.models import Artifact
from cards import deletion
from cards.access_tokens import issue_token
from cards.clock import utc_now
from cards.database import run_in_database
from cards.deletion import delete_session
from cards.engine import Turn
from cards.models import Event, Injection, LogBase, Session
from cards.models import Turn as TurnRow
from cards.principals import NOBODY, user_principal
from cards.signals import session_deleted
from prompts.models import PermissionGrant
from tests.integration.artifacts.files import PNG, files_in_storage, keep
from tests.integration.artifacts.shelving import use_storage
from tests.integration.cards.admin_pages import chunk, prune, store
from tests.integration.cards.conftest import make_session
from tests.integration.cards.house import (
    PATIENCE_S,
    Client,
    House,
    error_of,
    kind_of,
    running_house,
)
from tests.integration.cards.test_runtime import Waiting
from tests.integration.prompts.rows import note_settled, open_prompt

#: Of one app each, and what belongs to a session in it.
APPS = ("cards", "prompts", "artifacts")


@pytest.fixture(name="ann")
def _ann(transactional_db: None, settings: LazySettings, tmp_path: Path) -> User:
    use_storage(settings, location=str(tmp_path))
    return User.objects.create_user("ann")


@pytest.fixture(name="browser")
def _browser(ann: User) -> Browser:
    return Browser(
        headers={"Authorization": f"Bearer {issue_token(ann, 'x', utc_now())}"}
    )


def full_session(ann: User, session_id: str) -> Session:
    """Return a session with a row of everything that a session may have."""
    session = make_session(session_id, user_principal(ann.pk))
    wait = open_prompt(session, f"req_{session_id}")
    note_settled(session, f"req_old_{session_id}", "approved")
    Injection.objects.create(turn=wait.turn, text="also", accepted_at=utc_now())
    PermissionGrant.objects.create(
        session=session, permission_key="Bash", granted_at=utc_now()
    )
    store(session, [chunk(seq) for seq in range(1, 8)])
    prune(session, up_to=2)
    keep(session, "dot.png", PNG)
    keep(session, "dot.png", PNG + b"\0")
    return session


def rows_of(session: Session) -> dict[str, int]:
    """Return how many rows each table has of a session."""
    counts = {}
    for model in (
        model for app in APPS for model in apps.get_app_config(app).get_models()
    ):
        for field in model._meta.get_fields():
            path = {Session: "", TurnRow: "__session"}.get(
                getattr(field, "related_model", None)  # type: ignore[arg-type]
            )
            if field.concrete and path is not None:
                rows = model._default_manager.filter(
                    **{f"{field.name}{path}": session.pk}
                )
                counts[f"{model._meta.label}.{field.name}"] = rows.count()
    return counts


class TestDelete:
    def test_removes_everything_of_the_session_alone(
        self, ann: User, browser: Browser
    ) -> None:
        """Rows of every app, and files."""
        doomed, other = full_session(ann, "sess_1"), full_session(ann, "sess_2")
        files, rows = files_in_storage(), rows_of(other)
        assert rows == rows_of(doomed)
        assert 0 not in rows.values()

        answer = browser.delete("/v1/sessions/sess_1")

        assert (answer.status_code, answer.content) == (204, b"")
        assert set(rows_of(doomed).values()) == {0}
        assert rows_of(other) == rows
        assert len(files_in_storage()) == len(files) / 2
        assert not Session.objects.filter(pk=doomed.pk).exists()
        for part in ("", "/snapshot", "/events"):
            assert browser.get(f"/v1/sessions/sess_1{part}").status_code == 404
        assert browser.delete("/v1/sessions/sess_1").status_code == 404

    @pytest.mark.parametrize("session_id", ["sess_bob", "unknown", "a%00b", "~1"])
    def test_of_others_is_unknown(
        self, ann: User, browser: Browser, session_id: str
    ) -> None:
        """Spec: Ruling E27."""
        foreign = make_session("sess_bob", "user:0")

        assert browser.delete(f"/v1/sessions/{session_id}").status_code == 404
        assert Session.objects.filter(pk=foreign.pk).exists()

    def test_with_a_cookie_needs_the_token_of_the_page(self, ann: User) -> None:
        session = make_session("sess_1", user_principal(ann.pk))
        browser = Browser(enforce_csrf_checks=True)
        browser.force_login(ann)
        browser.get("/")
        token = {"X-CSRFToken": browser.cookies["csrftoken"].value}

        assert browser.delete("/v1/sessions/sess_1").status_code == 403
        assert Session.objects.filter(pk=session.pk).exists()
        assert browser.delete("/v1/sessions/sess_1", headers=token).status_code == 204

    def test_is_done_in_parts(
        self, ann: User, browser: Browser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A long log does not keep others from writing."""
        session = make_session("sess_1", user_principal(ann.pk))
        store(session, [chunk(seq) for seq in range(1, 101)])
        pauses: list[int] = []
        monkeypatch.setattr(deletion, "CHUNK_ROWS", 30)
        monkeypatch.setattr(
            deletion, "_pause", lambda: pauses.append(Event.objects.count())
        )

        assert browser.delete("/v1/sessions/sess_1").status_code == 204

        assert pauses == [70, 40, 10]
        assert not Event.objects.exists()


class TestLeftover:
    @pytest.fixture(name="leftover")
    def _leftover(self, ann: User, monkeypatch: pytest.MonkeyPatch) -> Session:
        """What a process leaves that dies in the middle."""
        session = full_session(ann, "sess_1")

        def die(_: int) -> None:
            raise DatabaseError("away")

        with monkeypatch.context() as patch:
            patch.setattr(deletion, "_remove_events", die)
            with pytest.raises(DatabaseError):
                delete_session(session.pk)
        session.refresh_from_db()
        return session

    def test_is_nobodys_and_nothing_waits_in_it(
        self, browser: Browser, leftover: Session
    ) -> None:
        assert leftover.principal == NOBODY
        assert (leftover.title, leftover.owner, leftover.fence) == ("", "", 1)
        assert not TurnRow.objects.exists()
        assert browser.get("/v1/sessions").json()["results"] == []
        assert browser.get("/v1/prompts").json()["results"] == []
        assert browser.get("/v1/artifacts?session_id=sess_1").status_code == 404
        assert browser.delete("/v1/sessions/sess_1").status_code == 404

    def test_is_removed_with_the_next_deletion(
        self, ann: User, browser: Browser, leftover: Session
    ) -> None:
        """Its name is free by then."""
        make_session("sess_1", user_principal(ann.pk)).refresh_from_db()

        assert browser.delete("/v1/sessions/sess_1").status_code == 204
        assert not Session.objects.exists()
        assert files_in_storage() == set()

    def test_is_removed_with_the_clean_up(self, leftover: Session) -> None:
        """Spec: interfaces.md, Commands."""

        def command(*arguments: str) -> str:
            out = StringIO()
            call_command("cleanup_orphans", *arguments, stdout=out)
            return out.getvalue()

        assert " deleted=1 " in command("--dry-run")
        assert " deleted=1 " in command()
        assert " deleted=0 " in command()
        assert not Session.objects.exists()
        assert not Event.objects.exists()
        assert not LogBase.objects.exists()

    def test_can_be_removed_by_two(self, leftover: Session) -> None:
        assert deletion.remove_deleted() == 1
        assert deletion.remove_deleted() == 0
        assert not delete_session(leftover.pk)


@pytest_asyncio.fixture(name="house")
async def _house(transactional_db: None) -> AsyncIterator[House]:
    async with running_house() as house:
        house.hub.start()

        def forget(session_pk: int, **_: object) -> None:
            house.hub.forget(session_pk)

        session_deleted.connect(forget)
        yield house


async def delete(client: Client) -> None:
    assert client.connection._live is not None
    record = client.connection._live.record
    assert record is not None
    assert await run_in_database(delete_session, record.pk)


def was_told(client: Client) -> bool:
    return kind_of(client.last) == "resume_failed"


async def until_told(client: Client) -> None:
    await client.transport.until(lambda: was_told(client))


class TestLive:
    async def test_turn_is_stopped_and_clients_are_told(self, house: House) -> None:
        """Neither the engine goes on, nor a card of it."""
        is_inside, was_cancelled = asyncio.Event(), asyncio.Event()

        async def play(turn: Turn) -> None:
            async with turn.message(), turn.tool("Bash"):
                try:
                    is_inside.set()
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    was_cancelled.set()
                    raise

        house.engine.plays["run"] = play
        clients = [await house.connect(), await house.connect()]
        other = await house.connect("sess_2")
        await clients[0].say("run", "c1")
        await is_inside.wait()

        await delete(clients[0])

        for client in clients:
            await until_told(client)
            assert error_of(client.frames[-2])["code"] == "SESSION_DELETED"
            assert client.last["payload"]["inner"] == {
                "trace_id": client.trace_id,
                "reason": "session_not_found",
            }
            assert client.transport.closed == []
            assert client.closes() == []
        async with asyncio.timeout(PATIENCE_S):
            await was_cancelled.wait()
        assert not was_told(other)

    async def test_leaves_nothing_to_talk_to(self, house: House) -> None:
        client = await house.connect()
        await client.say("hi", "c1")
        await client.until_closed("turn_c1")
        await delete(client)
        await until_told(client)

        await client.say("hi", "c2")
        assert error_of(client.last)["code"] == "SESSION_NOT_FOUND"
        await client.interrupt()
        assert error_of(client.last)["code"] == "SESSION_NOT_FOUND"
        assert (await client.resume(0))["reason"] == "session_not_found"
        assert (await client.resume(0, "tr_unknown"))["reason"] == "unknown_trace"
        assert await run_in_database(Session.objects.count) == 0

    async def test_frees_the_name_for_a_new_session(self, house: House) -> None:
        client = await house.connect()
        await client.say("hi", "c1")
        await client.until_closed("turn_c1")
        old_trace = client.trace_id
        await delete(client)
        await until_told(client)

        await client.send({"type": "session.create", "session_id": "sess_1"})
        assert client.trace_id != old_trace
        await client.say("hi", "c1")

        await client.transport.until(lambda: len(client.closes_of("turn_c1")) == 2)
        assert client.seqs[0] == 1
        late = await house.connect()
        assert late.trace_id == client.trace_id

    async def test_waits_for_no_answer(self, house: House) -> None:
        async def play(turn: Turn) -> None:
            await turn.permission("Bash", {"command": "ls"})

        house.engine.plays["run"] = play
        client = await house.connect()
        await client.say("run", "c1")
        await client.transport.until(
            lambda: any(each["type"] == "prompt.user" for each in client.frames)
        )

        await delete(client)

        await until_told(client)
        assert client.last["payload"]["kind"] == "resume_failed"

    @pytest.mark.parametrize("round_no", range(3))
    async def test_meets_an_engine_that_makes_files(
        self, house: House, settings: LazySettings, tmp_path: Path, round_no: int
    ) -> None:
        """Neither a row nor a file of it is left, however far each one was."""
        use_storage(settings, location=str(tmp_path / "files"))
        was_ended = asyncio.Event()

        async def play(turn: Turn) -> None:
            try:
                for number in range(10_000):
                    await turn.artifact(f"{number}.txt", b"words")
            finally:
                was_ended.set()

        house.engine.plays["make"] = play
        client = await house.connect()
        await client.say("make", "c1")
        await client.transport.until(lambda: len(client.logged) > 10 + 7 * round_no)

        await delete(client)

        await until_told(client)
        async with asyncio.timeout(PATIENCE_S):
            await was_ended.wait()
            while await run_in_database(files_in_storage):
                # What was under way is discarded in a thread that tells nobody.
                await run_in_database(int)
        assert await run_in_database(Artifact.objects.count) == 0

    async def test_meets_what_came_first(self, house: House) -> None:
        """A message that is accepted between the look and the deletion goes too."""
        client = await house.connect()
        await client.say("hi", "c1")
        await client.until_closed("turn_c1")
        live = client.connection._live
        assert live is not None
        assert live.record is not None
        # Deleted elsewhere, and nobody has heard of it.
        await run_in_database(Session.objects.filter(pk=live.record.pk).delete)

        await client.say("hi", "c2")

        assert error_of(client.last)["code"] == "SESSION_NOT_FOUND"


@pytest.mark.parametrize("way", ["rung", "looked"])
async def test_other_workers_stop_too(transactional_db: None, way: str) -> None:
    """Spec: Ruling E26; design.md 1: a lost ring costs a moment."""
    layer: Any = InMemoryChannelLayer() if way == "rung" else None
    lease_s = 15 if way == "rung" else 1
    async with (
        running_house(layer=layer, lease_s=lease_s) as owner,
        running_house(layer=layer, lease_s=lease_s) as other,
    ):
        owner.hub.start()
        other.hub.start()
        play = Waiting(owner)
        ann = await owner.connect()
        await ann.say("wait", "c1")
        await play.is_inside.wait()
        follower = await other.connect()
        await delete(ann)
        assert follower.connection._live is not None
        assert follower.connection._live.record is not None

        other.hub.forget(follower.connection._live.record.pk)

        for client in (follower, ann):
            await until_told(client)
        assert ann.closes() == []
