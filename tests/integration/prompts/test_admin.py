"""What an operator sees of prompts, and does about them."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client as Browser

from cards.database import run_in_database
from cards.engine import PromptTimeout, Turn
from cards.principals import ANONYMOUS
from prompts.models import PendingWait, PermissionGrant
from prompts.signals import settled
from tests.integration.cards.house import Client, House, running_house
from tests.integration.prompts.asking import (
    answer,
    prompts_of,
    replies_of,
    request_of,
    say,
    text_of,
    until_asked,
)

WAITS = "/admin/prompts/pendingwait/"
GRANTS = "/admin/prompts/permissiongrant/"


@pytest_asyncio.fixture(name="house")
async def _house(transactional_db: None) -> AsyncIterator[House]:
    async with running_house() as house:
        house.hub.start()

        def go_on(session_pk: int, **_: object) -> None:
            house.hub.nudge(session_pk)

        settled.connect(go_on)
        yield house


@pytest_asyncio.fixture(name="asking")
async def _asking(house: House) -> Client:
    """A client whose turn asks for a permission."""

    async def play(turn: Turn) -> None:
        try:
            given = await turn.permission("Bash", {"command": "rm <b>x</b>"})
            await say(given.approved)(turn)
        except PromptTimeout:
            await say("nobody")(turn)

    house.engine.plays["run"] = play
    client = await house.connect("sess_1", ANONYMOUS)
    await client.say("run", "c1")
    await until_asked(client)
    return client


async def in_admin(do: Callable[[Browser, int], Any], *permissions: str) -> Any:
    """Do something as an operator with these permissions, all for none."""

    def work() -> Any:
        user = User.objects.create_user(
            "olga", is_staff=True, is_superuser=not permissions
        )
        for name in permissions:
            user.user_permissions.add(Permission.objects.get(codename=name))
        browser = Browser()
        browser.force_login(user)
        return do(browser, PendingWait.objects.values_list("pk", flat=True)[0])

    return await run_in_database(work)


def messages_of_log() -> list[str]:
    return [entry.get_change_message() for entry in LogEntry.objects.all()]


class TestPages:
    async def test_show_what_waits(self, asking: Client) -> None:
        def look(browser: Browser, pk: int) -> list[str]:
            pages = (WAITS, f"{WAITS}?q=sess_", f"{WAITS}{pk}/change/")
            return [browser.get(page).content.decode() for page in pages]

        request_id = request_of(prompts_of(asking)[0])
        for page in await in_admin(look):
            assert request_id in page
            assert "sess_1" in page
            assert "rm &lt;b&gt;x&lt;/b&gt;" in page.replace("\\&quot;", "")

    async def test_of_nothing_found_are_empty(self, asking: Client) -> None:
        def look(browser: Browser, _pk: int) -> str:
            return browser.get(f"{WAITS}?q=nobody").content.decode()

        assert request_of(prompts_of(asking)[0]) not in await in_admin(look)


class TestAnswer:
    async def test_reaches_who_waits_and_is_recorded(self, asking: Client) -> None:
        def act(browser: Browser, pk: int) -> list[str]:
            page = browser.get(f"{WAITS}{pk}/answer/").content.decode()
            assert "approved" in page
            told = browser.post(
                f"{WAITS}{pk}/answer/",
                {"decision": "approved", "payload": '{"scope": "session"}'},
            )
            assert told.status_code == 302
            return messages_of_log()

        recorded = await in_admin(act)
        await asking.until_closed("turn_c1")

        assert recorded == ["answered by olga: approved"]
        assert text_of(asking) == "True"
        assert replies_of(asking)[0]["reason"] == "answered by olga"
        assert await run_in_database(PermissionGrant.objects.count) == 1

    @pytest.mark.parametrize(
        "fields",
        [
            {"decision": "approved", "payload": '{"scope": "galaxy"}'},
            {"decision": "approved", "payload": '{"approved": false}'},
            {"decision": "approved", "payload": "[]"},
            {"decision": "approved", "payload": "{"},
            {"decision": "maybe", "payload": "{}"},
        ],
    )
    async def test_that_does_not_fit_is_shown_again(
        self, asking: Client, fields: dict[str, str]
    ) -> None:
        def act(browser: Browser, pk: int) -> tuple[int, bool]:
            page = browser.post(f"{WAITS}{pk}/answer/", fields)
            return page.status_code, "errorlist" in page.content.decode()

        assert await in_admin(act) == (200, True)
        assert replies_of(asking) == []


class TestExpiry:
    async def test_is_told_to_who_waits(self, asking: Client) -> None:
        def act(browser: Browser, pk: int) -> list[str]:
            assert browser.get(f"{WAITS}{pk}/expire/").status_code == 405
            assert browser.post(f"{WAITS}{pk}/expire/").status_code == 302
            return messages_of_log()

        assert await in_admin(act) == ["expired by olga"]
        await asking.until_closed("turn_c1")

        assert text_of(asking) == "nobody"
        assert replies_of(asking)[0]["decision"] == "timeout"
        assert replies_of(asking)[0]["reason"] == "expired by olga"


class TestResending:
    async def test_shows_a_prompt_once_more(self, house: House, asking: Client) -> None:
        def act(browser: Browser, pk: int) -> list[str]:
            assert browser.post(f"{WAITS}{pk}/resend/").status_code == 302
            return messages_of_log()

        assert await in_admin(act) == ["shown again"]
        await until_asked(asking, 2)
        await house.hub.look_around()

        first, second = [raw for raw in asking.transport.raw if b"prompt.user" in raw]
        assert first == second


class TestPermissions:
    @pytest.mark.parametrize("name", ["answer", "expire", "resend"])
    async def test_to_look_are_not_enough_to_act(
        self, asking: Client, name: str
    ) -> None:
        def act(browser: Browser, pk: int) -> tuple[int, int]:
            shown = browser.get(f"{WAITS}{pk}/change/")
            assert b"Expire" not in shown.content
            acted = browser.post(f"{WAITS}{pk}/{name}/", {"decision": "denied"})
            return shown.status_code, acted.status_code

        assert await in_admin(act, "view_pendingwait") == (200, 403)

    async def test_settled_prompts_are_left_alone(self, asking: Client) -> None:
        def act(browser: Browser, pk: int) -> list[int]:
            PendingWait.objects.update(kind="client_tool")
            statuses = [
                browser.post(f"{WAITS}{pk}/{name}/", {}).status_code
                for name in ("answer", "expire", "resend")
            ]
            PendingWait.objects.update(kind="permission")
            return statuses

        assert await in_admin(act) == [404] * 3


class TestGrants:
    async def test_can_be_taken_back(self, house: House, asking: Client) -> None:
        """Spec: Ruling E18."""
        request_id = request_of(prompts_of(asking)[0])
        await answer(asking, request_id, "approved", scope="session")
        await asking.until_closed("turn_c1")

        def act() -> tuple[bool, int]:
            user = User.objects.create_superuser("olga")
            browser = Browser()
            browser.force_login(user)
            listed = b"rm &lt;b&gt;x" in browser.get(GRANTS).content
            grant = PermissionGrant.objects.get()
            gone = browser.post(f"{GRANTS}{grant.pk}/delete/", {"post": "yes"})
            return listed, gone.status_code

        assert await run_in_database(act) == (True, 302)
        await asking.say("run", "c2")
        await until_asked(asking, 2)
