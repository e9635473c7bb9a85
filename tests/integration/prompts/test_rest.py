"""Prompts by REST: the same rules as on a socket."""

import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser

from cards.access_tokens import issue_token
from cards.clock import utc_now
from cards.models import Event, Session
from cards.principals import ANONYMOUS, browser_principal, user_principal
from cards.protocol.kinds import PromptKind
from prompts import views
from prompts.models import PendingWait
from prompts.operations import answer_prompt
from prompts.signals import settled
from tests.integration.cards.conftest import make_session
from tests.integration.prompts.rows import FAILED_STEP, note_settled, open_prompt

pytestmark = pytest.mark.django_db(transaction=True)

JSON = "application/json"


@pytest.fixture(name="ann")
def _ann() -> User:
    return User.objects.create_superuser("ann")


@pytest.fixture(name="session")
def _session(ann: User) -> Session:
    return make_session("sess_ann", user_principal(ann.pk))


@pytest.fixture(name="browser")
def _browser(ann: User) -> Browser:
    return Browser(HTTP_AUTHORIZATION=authorization_of(ann))


def authorization_of(user: User) -> str:
    return f"Bearer {issue_token(user, secrets.token_hex(16), utc_now())}"


def answer(browser: Browser, request_id: str = "req_1", /, **body: Any) -> Any:
    body = body or {"decision": "approved", "payload": {"custom_text": "this"}}
    return browser.post(f"/v1/prompts/{request_id}/answer", body, content_type=JSON)


def listed(browser: Browser, query: str = "") -> list[str]:
    found = browser.get(f"/v1/prompts{query}")
    assert found.status_code == 200
    return [each["request_id"] for each in found.json()["results"]]


class TestPromptList:
    def test_shows_what_is_open(self, browser: Browser, session: Session) -> None:
        """Spec: Ruling E3; interfaces.md, REST."""
        wait = open_prompt(session)

        (shown,) = browser.get("/v1/prompts").json()["results"]

        assert shown["frame"]["payload"]["inner"]["question"] == "which?"
        assert bytes(wait.frame) in browser.get("/v1/prompts").content
        assert (shown["request_id"], shown["session_id"], shown["kind"]) == (
            "req_1",
            "sess_ann",
            "question",
        )
        assert shown["created_at"] < shown["expires_at"]

    def test_begins_with_the_oldest(self, browser: Browser, session: Session) -> None:
        other = make_session("sess_2", session.principal)
        age = timedelta(hours=1)
        open_prompt(session, "req_1")
        open_prompt(other, "req_2", created_at=utc_now() - age)
        open_prompt(session, "req_3", created_at=utc_now() - 2 * age)

        assert listed(browser) == ["req_3", "req_2", "req_1"]
        assert listed(browser, "?session_id=sess_ann") == ["req_3", "req_1"]
        assert listed(browser, "?session_id=sess_2") == ["req_2"]

    @pytest.mark.parametrize(
        "change",
        [
            {"state": "opening"},
            {"state": "settled"},
            {"kind": "client_tool"},
            {"expires_at": utc_now()},
            {"deadline_at": utc_now()},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_shows_nothing_that_cannot_be_answered(
        self, browser: Browser, session: Session, change: dict[str, Any]
    ) -> None:
        """Spec: Ruling E17."""
        open_prompt(session, **change)

        assert listed(browser) == []

    @pytest.mark.parametrize(
        "session_id", ["sess_bob", "unknown", "a\0b", "x" * 200, ""]
    )
    def test_knows_no_session_of_somebody_else(
        self, browser: Browser, session: Session, session_id: str
    ) -> None:
        """Spec: Ruling E27."""
        open_prompt(make_session("sess_bob", "user:0"))

        assert listed(browser) == []
        found = browser.get("/v1/prompts", {"session_id": session_id})
        assert found.status_code == 404

    @pytest.mark.parametrize(
        ("name", "limit", "count"),
        [("MAX_PROMPTS", 2, 2), ("MAX_BYTES", 1, 1), ("MAX_BYTES", 10_000, 3)],
    )
    def test_ends_somewhere(
        self,
        browser: Browser,
        session: Session,
        monkeypatch: pytest.MonkeyPatch,
        name: str,
        limit: int,
        count: int,
    ) -> None:
        for number in range(3):
            open_prompt(session, f"req_{number}")
        monkeypatch.setattr(views, name, limit)

        assert listed(browser) == ["req_0", "req_1", "req_2"][:count]


class TestSnapshot:
    def test_shows_what_is_open_within_it(
        self, browser: Browser, session: Session
    ) -> None:
        """Spec: Ruling E5."""
        shown, later = open_prompt(session), open_prompt(session, "req_2")
        Event.objects.create(session=session, seq=1, data=bytes(shown.frame))
        PendingWait.objects.filter(pk=shown.pk).update(seq=1)

        snapshot = browser.get("/v1/sessions/sess_ann/snapshot").json()

        assert snapshot["last_seq"] == 1 < (later.seq or 0)
        assert [each["payload"]["request_id"] for each in snapshot["prompts"]] == [
            "req_1"
        ]


class TestPromptAnswer:
    def test_settles_once(self, browser: Browser, session: Session) -> None:
        """Spec: Ruling E15."""
        open_prompt(session)
        told: list[int] = []

        def hear(session_pk: int, **_: object) -> None:
            told.append(session_pk)

        settled.connect(hear)

        first, second = answer(browser), answer(browser)

        assert (first.status_code, first.json()) == (
            200,
            {"request_id": "req_1", "decision": "approved"},
        )
        assert (second.status_code, second.json()["decision"]) == (409, "approved")
        row = PendingWait.objects.get()
        assert row.answer == {"selected_options": [], "custom_text": "this"}
        assert told == [session.pk]

    @pytest.mark.parametrize("decision", ["cancel", "retry", "nonsense"])
    def test_tells_the_decision_as_it_counts(
        self, browser: Browser, session: Session, decision: str
    ) -> None:
        """Spec: Rulings E15, E16."""
        open_prompt(session, kind=PromptKind.STEP_DECISION, inner=FAILED_STEP)

        first, second = (answer(browser, decision=decision) for _ in range(2))

        assert (first.status_code, first.json()["decision"]) == (200, "cancel")
        assert (second.status_code, second.json()["decision"]) == (409, "cancelled")
        PendingWait.objects.all().delete()
        note_settled(session, "req_1", "cancelled")
        assert answer(browser).json()["decision"] == "cancelled"

    def test_is_refused_after_the_reply(
        self, browser: Browser, session: Session
    ) -> None:
        note_settled(session, "req_1", "timeout")

        assert answer(browser).status_code == 409

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"decision": "maybe"}, "decision"),
            ({"decision": 1}, "decision"),
            ({"payload": {}}, "decision"),
            ({"decision": "approved", "payload": 1}, "payload"),
            (
                {"decision": "approved", "payload": {"selected_options": ["x"]}},
                "payload.selected_options",
            ),
        ],
    )
    def test_that_does_not_fit_leaves_it_open(
        self, browser: Browser, session: Session, body: dict[str, Any], field: str
    ) -> None:
        """Spec: Ruling E16."""
        open_prompt(session)

        refused = answer(browser, **body)

        assert refused.status_code == 400
        assert refused.json()["error"]["details"]["field"] == field
        assert PendingWait.objects.get().state == "pending"
        assert answer(browser).status_code == 200

    @pytest.mark.parametrize(
        "text",
        [
            *("{", "[]", '"approved"', "é"),
            '{"decision":"approved","decision":"denied"}',
            '{"decision":NaN}',
            '{"decision":"approved","payload":{"custom_text":"\\ud800"}}',
        ],
    )
    def test_is_read_strictly(
        self, browser: Browser, session: Session, text: str
    ) -> None:
        """Spec: Ruling E22."""
        open_prompt(session)

        refused = browser.generic(
            "POST", "/v1/prompts/req_1/answer", text.encode("latin-1"), JSON
        )

        assert refused.status_code == 400
        assert refused.json()["error"]["type"] == "invalid_input"
        assert PendingWait.objects.get().state == "pending"

    @pytest.mark.parametrize("excess", [0, 1])
    def test_may_be_as_long_as_a_frame(
        self, browser: Browser, session: Session, settings: Any, excess: int
    ) -> None:
        """Django would take 2.5 MB. Spec: Ruling E22."""
        open_prompt(session)
        limit = settings.CARDWIRE_MAX_FRAME_BYTES = 3 * 1024 * 1024
        body = '{"decision":"denied"}'.ljust(limit + excess)

        told = browser.generic("POST", "/v1/prompts/req_1/answer", body, JSON)

        assert told.status_code == (413 if excess else 200)
        if excess:
            error = told.json()["error"]
            assert (error["code"], error["type"]) == ("BODY_TOO_LARGE", "invalid_input")
            assert error["details"] == {"allowed": f"{limit} bytes"}
            assert "shorten" in error["user_message"]
            assert PendingWait.objects.get().state == "pending"

    def test_tells_the_user_what_to_do(
        self, browser: Browser, session: Session
    ) -> None:
        open_prompt(session)

        refused = answer(browser, decision="approved", payload={})

        assert refused.json()["error"]["user_message"] == "Please write an answer."

    def test_counts_whoever_fails_to_hear_of_it(
        self, browser: Browser, session: Session
    ) -> None:
        """What is durable is never told as a failure. Spec: Ruling E15."""
        open_prompt(session)
        told: list[int] = []

        def fail(**_: object) -> None:
            raise RuntimeError("the loop is closed")

        def hear(session_pk: int, **_: object) -> None:
            told.append(session_pk)

        settled.connect(fail)
        settled.connect(hear)
        try:
            settled_now = answer(browser)
        finally:
            settled.disconnect(fail)

        assert settled_now.status_code == 200
        assert told == [session.pk]

    def test_is_to_nothing_when_its_session_is_just_deleted(
        self,
        browser: Browser,
        session: Session,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Spec: Ruling E15."""
        open_prompt(session)

        def answer_too_late(*given: Any) -> str:
            session.delete()
            return answer_prompt(*given)

        monkeypatch.setattr("prompts.views.answer_prompt", answer_too_late)

        assert answer(browser).status_code == 404

    def test_counts_for_the_prompt_in_the_address(
        self, browser: Browser, session: Session
    ) -> None:
        open_prompt(session, "req_1")
        open_prompt(session, "req_2")

        told = answer(browser, "req_1", decision="denied", request_id="req_2")

        assert told.json() == {"request_id": "req_1", "decision": "denied"}
        assert listed(browser) == ["req_2"]

    @pytest.mark.parametrize("content_type", ["text/plain", "multipart/form-data", ""])
    def test_says_what_it_is(
        self, browser: Browser, session: Session, content_type: str
    ) -> None:
        open_prompt(session)
        text = '{"decision":"denied"}'

        refused = browser.generic(
            "POST", "/v1/prompts/req_1/answer", text, content_type
        )

        assert refused.status_code == 415
        assert PendingWait.objects.get().state == "pending"

    @pytest.mark.parametrize(
        "end", [{"expires_at": utc_now()}, {"deadline_at": utc_now()}]
    )
    def test_that_comes_too_late_is_to_nothing(
        self, browser: Browser, session: Session, end: dict[str, Any]
    ) -> None:
        """Spec: Rulings E15, E17."""
        open_prompt(session, **end)

        assert answer(browser).status_code == 404
        assert PendingWait.objects.get().state == "pending"

    @pytest.mark.parametrize("state", ["pending", "settled", "gone"])
    def test_never_ends_the_call_of_a_tool(
        self, browser: Browser, session: Session, state: str
    ) -> None:
        """Spec: Ruling E24."""
        if state == "gone":
            note_settled(session, "req_1", "called")
        else:
            open_prompt(session, kind="client_tool", state=state)  # type: ignore[arg-type]

        assert answer(browser).status_code == 404

    def test_of_somebody_else_is_unknown(
        self, browser: Browser, session: Session
    ) -> None:
        """Spec: Ruling E27."""
        foreign = make_session("sess_bob", "user:0")
        open_prompt(foreign, "req_1")
        open_prompt(foreign, "req_2", state="settled", decision="denied")
        note_settled(foreign, "req_3", "denied")

        for request_id in ("req_1", "req_2", "req_3", "req_4", "..", "x" * 100):
            assert answer(browser, request_id).status_code == 404
        assert PendingWait.objects.get(request_id="req_1").state == "pending"


#: Makes somebody: a browser, and the principal that it speaks for.
Visitor = Callable[[], tuple[Browser, str]]


def guest() -> tuple[Browser, str]:
    """A browser that has seen the page."""
    browser = Browser()
    browser.get("/")
    return browser, browser_principal(browser.cookies["sessionid"].value)


def script() -> tuple[Browser, str]:
    return Browser(), ANONYMOUS


def signed_in() -> tuple[Browser, str]:
    user = User.objects.create_user("cid")
    browser = Browser()
    browser.force_login(user)
    return browser, user_principal(user.pk)


def with_token() -> tuple[Browser, str]:
    user = User.objects.create_user("dora")
    return Browser(HTTP_AUTHORIZATION=authorization_of(user)), user_principal(user.pk)


class TestVisitors:
    """Spec: Ruling E27."""

    @pytest.mark.parametrize("visitor", [guest, script, signed_in, with_token])
    def test_see_and_answer_their_own_alone(self, visitor: Visitor) -> None:
        browser, principal = visitor()
        open_prompt(make_session("sess_own", principal), "req_own")
        # Another guest, the shared principal of scripts, another user.
        others = (guest()[1], "user:0", ANONYMOUS)
        for number, other in enumerate(each for each in others if each != principal):
            session = make_session(f"sess_{number}", other)
            open_prompt(session, f"req_{number}")
            assert answer(browser, f"req_{number}").status_code == 404

        assert listed(browser) == ["req_own"]
        assert answer(browser, "req_own").status_code == 200

    @pytest.mark.parametrize("visitor", [guest, script])
    def test_without_a_name_may_be_unwelcome(
        self, visitor: Visitor, settings: Any
    ) -> None:
        browser, principal = visitor()
        open_prompt(make_session("sess_own", principal))
        settings.CARDWIRE_ALLOW_ANONYMOUS = False

        assert browser.get("/v1/prompts").status_code == 401
        assert answer(browser).status_code == 401
        assert PendingWait.objects.get().state == "pending"

    def test_with_a_bad_token_are_nobody(self, ann: User, session: Session) -> None:
        open_prompt(session)
        browser = Browser(HTTP_AUTHORIZATION="Bearer cwt_wrong")
        browser.force_login(ann)

        assert browser.get("/v1/prompts").status_code == 401
        assert answer(browser).status_code == 401


class TestCookie:
    """A page of another site brings the cookie along. Spec: Ruling E27."""

    @pytest.mark.parametrize("visitor", [guest, signed_in])
    def test_needs_the_page(self, visitor: Visitor) -> None:
        browser, principal = visitor()
        open_prompt(make_session("sess_own", principal))
        browser.handler.enforce_csrf_checks = True

        assert answer(browser).status_code == 403
        assert PendingWait.objects.get().state == "pending"
        browser.get("/admin/login/")
        token = browser.cookies["csrftoken"].value
        told = browser.post(
            "/v1/prompts/req_1/answer",
            {"decision": "denied"},
            content_type=JSON,
            HTTP_X_CSRFTOKEN=token,
        )
        assert told.status_code == 200

    def test_takes_answers_as_long_as_a_frame(self, settings: Any) -> None:
        """The look for the page's token does not bound them. Spec: Ruling E22."""
        settings.CARDWIRE_MAX_FRAME_BYTES = 3 * 1024 * 1024
        browser, principal = signed_in()
        open_prompt(make_session("sess_own", principal))
        browser.handler.enforce_csrf_checks = True
        browser.get("/admin/login/")

        told = browser.generic(
            "POST",
            "/v1/prompts/req_1/answer",
            '{"decision":"denied"}'.ljust(settings.CARDWIRE_MAX_FRAME_BYTES),
            JSON,
            HTTP_X_CSRFTOKEN=browser.cookies["csrftoken"].value,
        )

        assert told.status_code == 200

    def test_is_not_needed_by_a_script(self) -> None:
        open_prompt(make_session("sess_own", ANONYMOUS))

        assert answer(Browser(enforce_csrf_checks=True)).status_code == 200

    def test_beside_a_token_does_not_count(self, ann: User, session: Session) -> None:
        open_prompt(session)
        browser = Browser(
            enforce_csrf_checks=True,
            HTTP_AUTHORIZATION=authorization_of(ann),
        )
        browser.force_login(User.objects.create_user("bob"))

        assert answer(browser).status_code == 200

    @pytest.mark.parametrize("authorization", ["Basic YW5uOng=", "Bearerx", "", "x"])
    @pytest.mark.parametrize("visitor", [guest, signed_in])
    def test_needs_the_page_whatever_a_proxy_asked_for(
        self, visitor: Visitor, authorization: str
    ) -> None:
        """A browser sends that along as well; only a token is shown on purpose."""
        browser, principal = visitor()
        open_prompt(make_session("sess_own", principal))
        browser.handler.enforce_csrf_checks = True
        browser.defaults["HTTP_AUTHORIZATION"] = authorization

        assert answer(browser).status_code == 403
        assert PendingWait.objects.get().state == "pending"
