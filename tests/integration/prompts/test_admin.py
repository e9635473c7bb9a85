"""What an operator sees of prompts, and does about them."""

import re
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext

from cards.clock import utc_now
from cards.database import run_in_database
from cards.engine import PromptTimeout, Turn
from cards.models import Session
from cards.principals import ANONYMOUS
from cards.protocol.kinds import PromptKind
from config.wiring import prompt_book
from prompts.models import PendingWait, PermissionGrant
from prompts.signals import settled
from tests.integration.cards.admin_pages import ESCAPED, HOSTILE, link, page, statements
from tests.integration.cards.conftest import make_session
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
from tests.integration.prompts.rows import FAILED_STEP, open_prompt

WAITS = "/admin/prompts/pendingwait/"
GRANTS = "/admin/prompts/permissiongrant/"

ACTIONS = ("answer", "expire", "resend")


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


@pytest.fixture(name="session")
def _session(transactional_db: None) -> Session:
    return make_session("sess_1")


@pytest.fixture(name="browser")
def _browser(transactional_db: None) -> Browser:
    return operator()


def operator(*permissions: str) -> Browser:
    """Return an operator with these permissions, with all of them for none."""
    user = User.objects.create_user("olga", is_staff=True, is_superuser=not permissions)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    browser = Browser()
    browser.force_login(user)
    return browser


async def in_admin(do: Callable[[Browser, int], Any]) -> Any:
    """Do something about the one wait, as an operator."""

    def work() -> Any:
        return do(operator(), PendingWait.objects.values_list("pk", flat=True)[0])

    return await run_in_database(work)


def recorded() -> list[tuple[str, str]]:
    """Return who did what, as the admin's log has it."""
    entries = LogEntry.objects.select_related("user").order_by("pk")
    return [(each.user.get_username(), each.get_change_message()) for each in entries]


def told(browser: Browser) -> list[str]:
    """Return what the next page tells the operator."""
    return [str(each) for each in browser.get(WAITS).context["messages"]]


class TestList:
    def test_shows_what_waits(self, browser: Browser, session: Session) -> None:
        inner = {"question": f"{HOSTILE}?", "allow_custom": True}
        open_prompt(session, inner=inner, created_at=utc_now() - timedelta(hours=3))

        html = page(browser, WAITS)

        for text in ("req_1", "sess_1", "question", "pending", "3\xa0hours", "2026-"):
            assert text in html
        assert ESCAPED in html

    def test_says_what_has_expired(self, browser: Browser, session: Session) -> None:
        """Spec: Ruling E17."""
        wait = open_prompt(session, expires_at=utc_now())

        assert "expired" in page(browser, WAITS)
        html = page(browser, f"{WAITS}{wait.pk}/change/")
        assert "Its time is over" in html
        assert "Show again" not in html

    @pytest.mark.parametrize("text", ["req_1", "req_", "sess_1", "sess", " req_1 "])
    def test_is_searched_by_the_beginning_of_an_id(
        self, browser: Browser, session: Session, text: str
    ) -> None:
        open_prompt(session, "req_1")
        open_prompt(make_session("other"), "prompt_2")

        html = browser.get(WAITS, {"q": text}).content.decode()

        assert "req_1" in html
        assert "prompt_2" not in html

    @pytest.mark.parametrize("text", ["eq_1", "nobody", "req%", "REQ_1", "\U0010ffff"])
    def test_finds_nothing_else(
        self, browser: Browser, session: Session, text: str
    ) -> None:
        open_prompt(session)

        found = browser.get(WAITS, {"q": text})

        assert found.status_code == 200
        assert b">req_1</a>" not in found.content

    def test_reads_one_page_and_no_frames(
        self, browser: Browser, session: Session
    ) -> None:
        wait = open_prompt(session, "req_x")
        PendingWait.objects.bulk_create(
            PendingWait(
                request_id=f"req_{number:03}",
                session=session,
                turn=wait.turn,
                kind="question",
                state="pending",
                frame=wait.frame,
                created_at=wait.created_at - timedelta(minutes=1 + number),
            )
            for number in range(60)
        )

        with CaptureQueriesContext(connection) as queries:
            newest = page(browser, WAITS)
        older = link(newest, "next")

        assert "COUNT(" not in statements(queries)
        frames = re.findall(
            r'(\w+\W)"PROMPTS_PENDINGWAIT"."FRAME"', statements(queries)
        )
        assert {each.rstrip("ING(") for each in frames} == {"SUBSTR"}
        assert older is not None
        assert "req_048" in newest
        assert "req_049" not in newest
        assert "req_049" in page(browser, WAITS + older)


class TestPage:
    def test_shows_exactly_what_is_asked(
        self, browser: Browser, session: Session
    ) -> None:
        """As text, not with the escapes of JSON."""
        inner = {"tool_name": "Bash", "tool_input": f'echo "a"\n{HOSTILE}'}
        wait = open_prompt(
            session, kind=PromptKind.PERMISSION, inner=inner | {"options": []}
        )

        html = page(browser, f"{WAITS}{wait.pk}/change/")

        assert f"echo &quot;a&quot;\n{ESCAPED}" in html
        assert "/log/2/" in html

    def test_shows_the_answer(self, browser: Browser, session: Session) -> None:
        wait = open_prompt(
            session,
            state="settled",
            decision="approved",
            reason="by bob",
            answer={"custom_text": "<b>"},
        )

        html = page(browser, f"{WAITS}{wait.pk}/change/")

        for text in ("settled", "approved", "by bob", "custom_text", "&lt;b&gt;"):
            assert text in html
        assert "Expire" not in html

    def test_of_a_tool_has_nothing_to_do(
        self, browser: Browser, session: Session
    ) -> None:
        wait = open_prompt(session, kind="client_tool", frame=b"")  # type: ignore[arg-type]

        assert "Expire" not in page(browser, f"{WAITS}{wait.pk}/change/")

    def test_changes_nothing(self, browser: Browser, session: Session) -> None:
        wait = open_prompt(session)

        sent = browser.post(f"{WAITS}{wait.pk}/delete/", {"post": "yes"})
        assert sent.status_code == 403
        assert browser.get(f"{WAITS}add/").status_code == 403
        for name in ("add", f"{wait.pk}/change"):
            assert browser.post(f"{WAITS}{name}/").status_code == 405
        assert PendingWait.objects.count() == 1


class TestAnswer:
    async def test_reaches_who_waits_and_is_recorded(self, asking: Client) -> None:
        def act(browser: Browser, pk: int) -> list[tuple[str, str]]:
            sent = browser.post(
                f"{WAITS}{pk}/answer/",
                {"decision": "approved", "payload": '{"scope": "session"}'},
            )
            assert sent.status_code == 302
            return recorded()

        done = await in_admin(act)
        await asking.until_closed("turn_c1")

        assert done == [("olga", "answered by olga: approved")]
        assert text_of(asking) == "True"
        assert replies_of(asking) == [
            {
                "request_id": request_of(prompts_of(asking)[0]),
                "decision": "approved",
                "reason": "answered by olga",
            }
        ]
        assert await run_in_database(PermissionGrant.objects.count) == 1

    @pytest.mark.parametrize(
        ("fields", "at"),
        [
            ({"decision": "approved", "payload": '{"scope": "galaxy"}'}, "payload"),
            ({"decision": "approved", "payload": '{"approved": false}'}, "payload"),
            ({"decision": "approved", "payload": "[]"}, "payload"),
            ({"decision": "approved", "payload": "{"}, "payload"),
            ({"decision": "approved", "payload": '{"a":1,"a":2}'}, "payload"),
            ({"decision": "maybe", "payload": "{}"}, "decision"),
            ({}, "decision"),
        ],
    )
    async def test_that_does_not_fit_is_shown_again(
        self, asking: Client, fields: dict[str, str], at: str
    ) -> None:
        """Spec: Ruling E16."""

        def act(browser: Browser, pk: int) -> tuple[int, list[str]]:
            shown = browser.post(f"{WAITS}{pk}/answer/", fields)
            assert not recorded()
            return shown.status_code, list(shown.context["form"].errors)

        assert await in_admin(act) == (200, [at])
        assert replies_of(asking) == []

    def test_needs_no_payload(self, browser: Browser, session: Session) -> None:
        wait = open_prompt(session, kind=PromptKind.STEP_DECISION, inner=FAILED_STEP)

        fields = {"decision": "continue", "payload": " "}
        browser.post(f"{WAITS}{wait.pk}/answer/", fields)

        assert PendingWait.objects.get().decision == "continue"

    @pytest.mark.parametrize("may_retry", [True, False])
    def test_offers_what_is_legal(
        self, browser: Browser, session: Session, may_retry: bool
    ) -> None:
        inner = FAILED_STEP | {"allow_retry": may_retry}
        wait = open_prompt(session, kind=PromptKind.STEP_DECISION, inner=inner)

        html = page(browser, f"{WAITS}{wait.pk}/answer/")

        offered = [
            word
            for word in ("approved", "denied", "continue", "retry", "cancel")
            if f'<option value="{word}"' in html
        ]
        assert offered == ["continue", *(["retry"] if may_retry else []), "cancel"]

    def test_goes_with_its_record_or_not_at_all(
        self, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wait = open_prompt(session)

        def fail(*_: object) -> None:
            raise RuntimeError("no record")

        monkeypatch.setattr("django.contrib.admin.ModelAdmin.log_change", fail)
        browser = operator()
        browser.raise_request_exception = False
        fields = {"decision": "denied", "payload": ""}

        assert browser.post(f"{WAITS}{wait.pk}/answer/", fields).status_code == 500
        assert PendingWait.objects.get().state == "pending"


class TestExpiry:
    async def test_is_told_to_who_waits(self, asking: Client) -> None:
        """The engine gets a `PromptTimeout`."""

        def act(browser: Browser, pk: int) -> list[tuple[str, str]]:
            assert browser.get(f"{WAITS}{pk}/expire/").status_code == 405
            assert browser.post(f"{WAITS}{pk}/expire/").status_code == 302
            return recorded()

        assert await in_admin(act) == [("olga", "expired by olga")]
        await asking.until_closed("turn_c1")

        assert text_of(asking) == "nobody"
        assert replies_of(asking)[0]["decision"] == "timeout"
        assert replies_of(asking)[0]["reason"] == "expired by olga"


class TestResending:
    async def test_shows_a_prompt_once_more(self, house: House, asking: Client) -> None:
        """Spec: Ruling E3."""
        second_tab = await house.connect("sess_1", ANONYMOUS)
        await until_asked(second_tab)

        def act(browser: Browser, pk: int) -> list[tuple[str, str]]:
            assert browser.get(f"{WAITS}{pk}/resend/").status_code == 405
            assert browser.post(f"{WAITS}{pk}/resend/").status_code == 302
            return recorded()

        assert await in_admin(act) == [("olga", "shown again by olga")]
        for tab in (asking, second_tab):
            await until_asked(tab, 2)
        for _ in range(3):
            await house.hub.look_around()

        for tab in (asking, second_tab):
            first, second = [each for each in tab.transport.raw if b"prompt.u" in each]
            assert first == second

    def test_leaves_alone_what_has_expired(
        self, browser: Browser, session: Session
    ) -> None:
        """Spec: Ruling E17."""
        wait = open_prompt(session, expires_at=utc_now())

        browser.post(f"{WAITS}{wait.pk}/resend/")

        now = utc_now()
        assert prompt_book().resent(now - timedelta(minutes=1), now) == []


class TestActions:
    @pytest.mark.parametrize("name", ACTIONS)
    @pytest.mark.parametrize(
        "changes",
        [
            {"state": "settled", "decision": "denied", "answer": {}},
            {"state": "opening"},
            {"kind": "client_tool"},
            {"expires_at": utc_now()},
            {"deadline_at": utc_now()},
        ],
        ids=lambda changes: next(iter(changes)),
    )
    def test_leave_alone_what_is_not_open(
        self, browser: Browser, session: Session, name: str, changes: dict[str, Any]
    ) -> None:
        wait = open_prompt(session, **changes)
        before = PendingWait.objects.values().get()

        sent = browser.post(
            f"{WAITS}{wait.pk}/{name}/", {"decision": "denied", "payload": ""}
        )

        assert sent.status_code == 302
        assert told(browser) == ["This prompt is not open any more; nothing was done."]
        assert PendingWait.objects.values().get() == before
        assert recorded() == []

    @pytest.mark.parametrize("name", ACTIONS)
    def test_find_out_who_was_faster(
        self,
        browser: Browser,
        session: Session,
        monkeypatch: pytest.MonkeyPatch,
        name: str,
    ) -> None:
        """Between the look at the prompt and what is done about it."""
        wait = open_prompt(session)
        monkeypatch.setattr("prompts.admin.waits._is_open", lambda _: True)
        PendingWait.objects.update(state="settled", decision="approved", answer={})

        browser.post(f"{WAITS}{wait.pk}/{name}/", {"decision": "denied"})

        assert told(browser) == ["This prompt is not open any more; nothing was done."]
        assert PendingWait.objects.get().decision == "approved"
        assert recorded() == []

    @pytest.mark.parametrize("name", ACTIONS)
    def test_know_no_other_prompt(self, browser: Browser, name: str) -> None:
        assert browser.post(f"{WAITS}4711/{name}/").status_code == 302

    @pytest.mark.parametrize("name", ACTIONS)
    @pytest.mark.parametrize(
        ("permission", "status"),
        [
            ("view_pendingwait", 403),
            ("view_session", 403),
            ("change_pendingwait", 302),
        ],
    )
    def test_need_the_permission_to_change(
        self, session: Session, name: str, permission: str, status: int
    ) -> None:
        wait = open_prompt(session)
        browser = operator(permission)

        sent = browser.post(f"{WAITS}{wait.pk}/{name}/", {"decision": "denied"})

        assert sent.status_code == status
        assert len(recorded()) == (status == 302)

    def test_are_shown_to_those_who_may(self, session: Session) -> None:
        wait = open_prompt(session)

        assert "Expire" not in page(
            operator("view_pendingwait"), f"{WAITS}{wait.pk}/change/"
        )

    @pytest.mark.parametrize("name", ACTIONS)
    def test_are_for_operators_alone(self, session: Session, name: str) -> None:
        wait = open_prompt(session)
        user = Browser()
        user.force_login(User.objects.create_user("ann"))

        for browser in (Browser(), user):
            sent = browser.post(f"{WAITS}{wait.pk}/{name}/", {"decision": "denied"})
            assert sent["Location"].startswith("/admin/login/")
        assert PendingWait.objects.get().state == "pending"

    @pytest.mark.parametrize("name", ACTIONS)
    def test_need_the_page(self, browser: Browser, session: Session, name: str) -> None:
        wait = open_prompt(session)
        browser.handler.enforce_csrf_checks = True

        sent = browser.post(f"{WAITS}{wait.pk}/{name}/", {"decision": "denied"})

        assert sent.status_code == 403
        assert PendingWait.objects.get().resent_at is None


class TestGrants:
    async def test_can_be_taken_back(self, house: House, asking: Client) -> None:
        """Spec: Ruling E18."""
        request_id = request_of(prompts_of(asking)[0])
        await answer(asking, request_id, "approved", scope="session")
        await asking.until_closed("turn_c1")

        def act() -> tuple[bool, int, bool]:
            browser = operator()
            listed = b"rm &lt;b&gt;x" in browser.get(GRANTS).content
            grant = PermissionGrant.objects.get()
            gone = browser.post(f"{GRANTS}{grant.pk}/delete/", {"post": "yes"})
            entry = LogEntry.objects.select_related("user").get()
            is_recorded = entry.is_deletion() and entry.user.get_username() == "olga"
            return listed, gone.status_code, is_recorded

        assert await run_in_database(act) == (True, 302, True)
        await asking.say("run", "c2")
        await until_asked(asking, 2)

    def test_are_named_so_that_it_can_be_trusted(
        self, browser: Browser, session: Session
    ) -> None:
        grant = PermissionGrant.objects.create(
            session=session, permission_key=HOSTILE, granted_at=utc_now()
        )

        for name in ("change", "delete"):
            html = page(browser, f"{GRANTS}{grant.pk}/{name}/")
            assert ESCAPED in html
            assert "\u202e" not in html
        browser.post(f"{GRANTS}{grant.pk}/delete/", {"post": "yes"})
        assert "\u202e" not in LogEntry.objects.get().object_repr

    def test_come_in_pages(self, browser: Browser, session: Session) -> None:
        PermissionGrant.objects.bulk_create(
            PermissionGrant(
                session=session, permission_key=f"key {number}.", granted_at=utc_now()
            )
            for number in range(60)
        )

        with CaptureQueriesContext(connection) as queries:
            newest = page(browser, GRANTS)
        older = link(newest, "next")

        assert "COUNT(" not in statements(queries)
        assert older is not None
        assert "key 10." in newest
        assert "key 9." not in newest
        assert "key 9." in page(browser, GRANTS + older)

    def test_are_found_by_session(self, browser: Browser, session: Session) -> None:
        for owner, key in ((session, "mine"), (make_session("other"), "theirs")):
            PermissionGrant.objects.create(
                session=owner, permission_key=f"{key} {HOSTILE}", granted_at=utc_now()
            )

        html = page(browser, f"{GRANTS}?q=sess_")

        assert f"mine {ESCAPED}" in html
        assert "theirs" not in html

    @pytest.mark.parametrize(
        ("permission", "status"),
        [("view_permissiongrant", 403), ("delete_permissiongrant", 302)],
    )
    def test_need_the_permission_to_delete(
        self, session: Session, permission: str, status: int
    ) -> None:
        grant = PermissionGrant.objects.create(
            session=session, permission_key="ls", granted_at=utc_now()
        )
        browser = operator(permission)

        sent = browser.post(f"{GRANTS}{grant.pk}/delete/", {"post": "yes"})

        assert sent.status_code == status
        assert PermissionGrant.objects.exists() == (status == 403)
