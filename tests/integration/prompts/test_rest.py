"""Prompts by REST: the same rules as on a socket."""

import secrets
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser

from cards.access_tokens import issue_token
from cards.clock import utc_now
from cards.models import Event, Session
from cards.models import Turn as TurnRow
from cards.ports import NewWait
from cards.principals import user_principal
from cards.protocol.codec import encode_event
from cards.protocol.events import PromptUser
from cards.protocol.kinds import PromptKind
from cards.protocol.payloads import PromptUserPayload
from config.wiring import prompt_book
from prompts.models import PendingWait, SettledPrompt
from prompts.signals import settled
from tests.integration.cards.conftest import make_session
from tests.unit.cards.protocol.frames import make_envelope

pytestmark = pytest.mark.django_db(transaction=True)

JSON = "application/json"


def open_prompt(session: Session, request_id: str = "req_1") -> PendingWait:
    """Have a question wait in a session, as the log's writer shows it."""
    turn, _ = TurnRow.objects.get_or_create(
        session=session,
        turn_no=1,
        defaults={
            "event_id": "c1",
            "card_id": "turn_c1",
            "run_id": "run_1",
            "state": "running",
            "message": {"text": "hi", "content": []},
            "accepted_at": utc_now(),
        },
    )
    book = prompt_book()
    book.open_wait(
        NewWait(
            request_id=request_id,
            session_pk=session.pk,
            turn_pk=turn.pk,
            kind="question",
            created_at=utc_now(),
            timeout_ms=0,
        )
    )
    payload = PromptUserPayload(
        request_id=request_id,
        kind=PromptKind.QUESTION,
        inner={"question": "which?", "allow_custom": True},
        timeout_ms=0,
    )
    frame = encode_event(PromptUser(envelope=make_envelope(), payload=payload))
    PendingWait.objects.filter(request_id=request_id).update(
        state="pending", frame=frame, seq=2
    )
    return PendingWait.objects.get(request_id=request_id)


@pytest.fixture(name="ann")
def _ann() -> User:
    return User.objects.create_superuser("ann")


@pytest.fixture(name="session")
def _session(ann: User) -> Session:
    return make_session("sess_ann", user_principal(ann.pk))


@pytest.fixture(name="browser")
def _browser(ann: User) -> Browser:
    return bearer(ann)


def bearer(user: User) -> Browser:
    return Browser(HTTP_AUTHORIZATION=authorization_of(user))


def authorization_of(user: User) -> str:
    return f"Bearer {issue_token(user, secrets.token_hex(16), utc_now())}"


def answer(browser: Browser, request_id: str = "req_1", **body: Any) -> Any:
    body = body or {"decision": "approved", "payload": {"custom_text": "this"}}
    return browser.post(f"/v1/prompts/{request_id}/answer", body, content_type=JSON)


class TestPromptList:
    def test_shows_what_is_open(self, browser: Browser, session: Session) -> None:
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
        one = browser.get("/v1/prompts?session_id=sess_ann")
        assert [each["request_id"] for each in one.json()["results"]] == ["req_1"]

    def test_shows_nothing_expired_or_settled(
        self, browser: Browser, session: Session
    ) -> None:
        """Spec: Ruling E17."""
        changes: list[dict[str, Any]] = [
            {"expires_at": utc_now()},
            {"state": "settled"},
            {"state": "opening"},
            {"kind": "client_tool"},
        ]
        for number, change in enumerate(changes):
            open_prompt(session, f"req_{number}")
            rows = PendingWait.objects.filter(request_id=f"req_{number}")
            rows.update(**change)

        assert browser.get("/v1/prompts").json() == {"results": []}

    @pytest.mark.parametrize("session_id", ["sess_bob", "unknown", "a\0b", "x" * 200])
    def test_knows_no_session_of_somebody_else(
        self, browser: Browser, session: Session, session_id: str
    ) -> None:
        """Spec: Ruling E27."""
        open_prompt(make_session("sess_bob", "user:0"))

        assert browser.get("/v1/prompts").json() == {"results": []}
        found = browser.get("/v1/prompts", {"session_id": session_id})
        assert found.status_code == 404


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

    def test_is_refused_after_the_reply(
        self, browser: Browser, session: Session
    ) -> None:
        SettledPrompt.objects.create(
            request_id="req_1",
            session=session,
            decision="timeout",
            settled_at=utc_now(),
        )

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

    @pytest.mark.parametrize(
        "text", ["{", "[]", '{"decision":"a","decision":"b"}', '{"decision":NaN}', "é"]
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
        assert PendingWait.objects.get().state == "pending"

    def test_says_what_it_is(self, browser: Browser, session: Session) -> None:
        open_prompt(session)

        refused = browser.post("/v1/prompts/req_1/answer", {"decision": "approved"})

        assert refused.status_code == 415

    def test_of_somebody_else_is_unknown(
        self, browser: Browser, session: Session
    ) -> None:
        """Spec: Ruling E27."""
        open_prompt(make_session("sess_bob", "user:0"))
        SettledPrompt.objects.create(
            request_id="req_2",
            session=Session.objects.get(session_id="sess_bob"),
            decision="denied",
            settled_at=utc_now(),
        )

        for request_id in ("req_1", "req_2", "req_3", "..", "x" * 100):
            assert answer(browser, request_id).status_code == 404
        assert PendingWait.objects.get().state == "pending"


class TestCookie:
    """Spec: Ruling E27."""

    def test_of_a_user_needs_the_page(self, ann: User, session: Session) -> None:
        open_prompt(session)
        browser = Browser(enforce_csrf_checks=True)
        browser.force_login(ann)

        assert answer(browser).status_code == 403
        assert PendingWait.objects.get().state == "pending"
        browser.get("/admin/password_change/")
        token = browser.cookies["csrftoken"].value
        told = browser.post(
            "/v1/prompts/req_1/answer",
            {"decision": "denied"},
            content_type=JSON,
            HTTP_X_CSRFTOKEN=token,
        )
        assert told.status_code == 200

    def test_of_a_guest_needs_the_page_too(self) -> None:
        browser = Browser(enforce_csrf_checks=True)
        browser.get("/")

        assert answer(browser).status_code == 403

    def test_beside_a_token_does_not_count(self, ann: User, session: Session) -> None:
        open_prompt(session)
        browser = Browser(
            enforce_csrf_checks=True,
            HTTP_AUTHORIZATION=authorization_of(ann),
        )
        browser.force_login(User.objects.create_user("bob"))

        assert answer(browser).status_code == 200
