"""Who somebody is, and whose tokens and sign-ins hold.

Spec: Ruling E27; cases FR-123 to FR-131.
"""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as BrowserSession
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.test import Client, RequestFactory
from django.utils import timezone

from cards.access_tokens import find_token
from cards.authentication import (
    Identity,
    identity_of_request,
    identity_of_scope,
    still_valid,
)
from cards.browser_sessions import SessionStore
from cards.database import run_in_database
from cards.models import AccessToken
from cards.principals import ANONYMOUS, browser_principal, user_principal
from tests.integration.cards.conftest import make_session


@pytest.fixture
def ann(transactional_db: None) -> User:
    return User.objects.create_user("ann", password="pw")


def token_of(user: User) -> str:
    out = StringIO()
    call_command("issue_token", user.username, stdout=out)
    return out.getvalue().strip().rpartition("token=")[2]


def signed_in(user: User) -> str:
    store = SessionStore()
    store[SESSION_KEY] = str(user.pk)
    store[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    store[HASH_SESSION_KEY] = user.get_session_auth_hash()
    store.save()
    assert store.session_key is not None
    return store.session_key


def expire(session_key: str) -> None:
    past = timezone.now() - timedelta(seconds=1)
    BrowserSession.objects.filter(session_key=session_key).update(expire_date=past)


def scope(
    *headers: tuple[str, str], subprotocols: tuple[str, ...] = ()
) -> dict[str, Any]:
    return {
        "headers": [(name.encode(), value.encode()) for name, value in headers],
        "subprotocols": list(subprotocols),
    }


async def who(scope: dict[str, Any], *, allow_anonymous: bool = True) -> str | None:
    identity = await identity_of_scope(scope, allow_anonymous=allow_anonymous)
    return identity.principal if identity else None


class TestIssueToken:
    def test_prints_it_once_and_keeps_a_digest(self, ann: User) -> None:
        out = StringIO()
        call_command("issue_token", "ann", stdout=out)
        line = out.getvalue()

        assert line.startswith("issue_token: user=ann token=cwt_")
        assert line.count("\n") == 1
        token = line.strip().rpartition("=")[2]
        row = AccessToken.objects.get()
        assert token not in row.digest
        assert find_token(token) == row
        assert find_token(token + "x") is None

    def test_knows_only_users_who_may_sign_in(self, ann: User) -> None:
        User.objects.create_user("gone", is_active=False)
        for name in ("nobody", "gone"):
            with pytest.raises(CommandError, match=name):
                call_command("issue_token", name)
        assert AccessToken.objects.count() == 0

    def test_dry_run_issues_nothing(self, ann: User) -> None:
        out = StringIO()
        call_command("issue_token", "ann", "--dry-run", stdout=out)

        assert out.getvalue() == "issue_token: user=ann token=\n"
        assert AccessToken.objects.count() == 0

    def test_says_when_the_database_is_away(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(username: str) -> None:
            raise OperationalError("no route to the database")

        monkeypatch.setattr("cards.management.commands.issue_token.find_user", fail)

        with pytest.raises(CommandError, match="no route to the database"):
            call_command("issue_token", "ann")


class TestHandshake:
    async def test_by_header_or_subprotocol(self, ann: User) -> None:
        token = await run_in_database(token_of, ann)
        mine = user_principal(ann.pk)

        assert await who(scope(("authorization", f"Bearer {token}"))) == mine
        assert await who(scope(subprotocols=("bearer", token))) == mine

    async def test_by_cookie(self, ann: User) -> None:
        key = await run_in_database(signed_in, ann)
        cookie = ("cookie", f"sessionid={key}")

        assert await who(scope(cookie), allow_anonymous=False) == f"user:{ann.pk}"

    @pytest.mark.parametrize(
        "neighbour", ['prefs={"a": "b c"}', "nameless", "a[b]=1", 'open="', "=", "é=é"]
    )
    async def test_by_cookie_beside_an_odd_one(self, ann: User, neighbour: str) -> None:
        """What Django reads for the page is what the socket reads."""
        key = await run_in_database(signed_in, ann)

        for cookies in (
            f"{neighbour}; sessionid={key}",
            f"sessionid={key}; {neighbour}",
        ):
            assert await who(scope(("cookie", cookies))) == user_principal(ann.pk)

    async def test_by_a_cookie_that_holds_no_longer_is_refused(self, ann: User) -> None:
        key = await run_in_database(signed_in, ann)
        await run_in_database(expire, key)

        for cookie in (key, "x" * 32, '"\\000abcdefghij"', "é" * 32, "a" * 4000):
            header = ("cookie", f"sessionid={cookie}")
            assert await who(scope(header), allow_anonymous=False) is None

    @pytest.mark.parametrize(
        "bad",
        [
            scope(("authorization", "Bearer nonsense")),
            scope(("authorization", "Bearer ")),
            scope(("authorization", "bearer")),
            scope(("authorization", "Bearer\tnonsense")),
            scope(
                ("authorization", "Bearer \udcff".encode("latin1", "ignore").decode())
            ),
            scope(subprotocols=("bearer", "nonsense")),
            scope(subprotocols=("bearer",)),
        ],
    )
    async def test_with_a_bad_token_falls_back_to_nothing(
        self, ann: User, bad: dict[str, Any]
    ) -> None:
        key = await run_in_database(signed_in, ann)
        bad["headers"].append((b"cookie", f"sessionid={key}".encode()))

        assert await who(bad) is None

    async def test_without_anything_is_anonymous_where_allowed(
        self, transactional_db: None
    ) -> None:
        unknown = scope(("cookie", "sessionid=expired"))
        for each in (scope(), unknown, scope(("authorization", "Basic eA=="))):
            assert await who(each) == ANONYMOUS
            assert await who(each, allow_anonymous=False) is None

    def test_of_two_browsers_are_two_principals(self, ann: User) -> None:
        request = RequestFactory().get("/")
        principals = set()
        for _ in range(2):
            request.session = SessionStore()
            request.session["cardwire"] = "anonymous"
            request.session.save()
            identity = identity_of_request(request, allow_anonymous=True)
            assert identity is not None
            assert identity.principal == browser_principal(
                str(request.session.session_key)
            )
            principals.add(identity.principal)
        assert len(principals) == 2


class TestIdentity:
    def test_is_written_without_its_secret(self) -> None:
        identity = Identity(principal=user_principal(1), session_key="SECRET")

        assert "SECRET" not in repr(identity)


class TestStillValid:
    def test_ends_with_token_password_or_user(self, ann: User) -> None:
        bob = User.objects.create_user("bob", password="pw")
        token = find_token(token_of(ann))
        assert token is not None
        by_token = Identity(principal=user_principal(ann.pk), token_pk=token.pk)
        by_cookie = Identity(
            principal=user_principal(bob.pk), session_key=signed_in(bob)
        )
        guest = Identity(principal=ANONYMOUS)
        everybody = {by_token, by_cookie, guest}
        assert still_valid(everybody) == everybody

        bob.set_password("another")
        bob.save()
        assert still_valid(everybody) == {by_token, guest}
        ann.is_active = False
        ann.save()
        assert still_valid(everybody) == {guest}

    def test_ends_with_the_token(self, ann: User) -> None:
        token = find_token(token_of(ann))
        assert token is not None
        identity = Identity(principal=user_principal(ann.pk), token_pk=token.pk)
        token.delete()

        assert still_valid({identity}) == set()

    def test_ends_with_a_deleted_user(self, ann: User) -> None:
        token = find_token(token_of(ann))
        assert token is not None
        mine = user_principal(ann.pk)
        identities = {
            Identity(principal=mine, token_pk=token.pk),
            Identity(principal=mine, session_key=signed_in(ann)),
        }
        assert still_valid(identities) == identities

        ann.delete()

        assert still_valid(identities) == set()

    def test_ends_with_the_sign_in(self, ann: User) -> None:
        """By signing out, by time, or by the key of somebody who never signed in."""
        client = Client()
        client.force_login(ann)
        signed_out, late, odd = (
            client.cookies["sessionid"].value,
            *map(signed_in, [ann] * 2),
        )
        guest = SessionStore(odd)
        del guest[SESSION_KEY]
        guest.save()
        stays = signed_in(ann)
        client.post("/sign-out/")
        expire(late)
        identities = {
            key: Identity(principal=user_principal(ann.pk), session_key=key)
            for key in (signed_out, late, odd, stays)
        }

        assert still_valid(set(identities.values())) == {identities[stays]}

    def test_asks_once_for_everybody(
        self, ann: User, django_assert_max_num_queries: Any
    ) -> None:
        identities = set()
        for number in range(20):
            user = User.objects.create(username=f"user{number}")
            token = find_token(token_of(user))
            assert token is not None
            mine = user_principal(user.pk)
            identities.add(Identity(principal=mine, token_pk=token.pk))
            identities.add(Identity(principal=mine, session_key=signed_in(user)))

        with django_assert_max_num_queries(3):
            assert still_valid(identities) == identities


class TestRest:
    PATHS = ("", "/snapshot", "/events")

    def test_answers_for_foreign_sessions_as_for_unknown_ones(self, ann: User) -> None:
        """Case FR-125."""
        make_session("sess_ann", user_principal(ann.pk))
        bob = User.objects.create_user("bob")
        header = {"authorization": f"Bearer {token_of(bob)}"}
        client = Client()
        for path in self.PATHS:
            foreign = client.get(f"/v1/sessions/sess_ann{path}", headers=header)
            unknown = client.get(f"/v1/sessions/sess_none{path}", headers=header)
            assert foreign.status_code == unknown.status_code == 404
            assert foreign.content == unknown.content
        assert client.get("/v1/sessions", headers=header).json()["results"] == []

    def test_keeps_browsers_apart(self, ann: User) -> None:
        """Case FR-125: a guest's session, and who asks for it."""
        guest, other, user = Client(), Client(), Client()
        for each in (guest, other):
            each.get("/")
        user.force_login(ann)
        key = guest.cookies["sessionid"].value
        make_session("sess_guest", browser_principal(key))
        for path in self.PATHS:
            address = f"/v1/sessions/sess_guest{path}"
            assert guest.get(address).status_code == 200
            for stranger in (other, user, Client()):
                foreign = stranger.get(address)
                unknown = stranger.get(f"/v1/sessions/sess_none{path}")
                assert foreign.status_code == unknown.status_code == 404
                assert foreign.content == unknown.content

    def test_takes_no_cookie_beside_a_bad_token(self, ann: User) -> None:
        client = Client()
        client.force_login(ann)
        for value in ("Bearer nonsense", "Bearer\tnonsense", "Bearer"):
            answer = client.get("/v1/sessions", headers={"authorization": value})
            assert answer.status_code == 401
            assert "a token that holds" in answer.json()["detail"]

    def test_takes_a_cookie_that_no_session_has_for_none(
        self, transactional_db: None
    ) -> None:
        client = Client()
        client.cookies["sessionid"] = "\0" * 32
        for path in ("/", "/v1/sessions"):
            assert client.get(path).status_code == 200

    def test_shows_the_own_by_token(self, ann: User) -> None:
        make_session("sess_ann", user_principal(ann.pk))
        header = {"authorization": f"Bearer {token_of(ann)}"}
        for path in self.PATHS:
            answer = Client().get(f"/v1/sessions/sess_ann{path}", headers=header)
            assert answer.status_code == 200

    def test_wants_a_sign_in_where_guests_are_not_allowed(
        self, ann: User, settings: Any
    ) -> None:
        settings.CARDWIRE_ALLOW_ANONYMOUS = False
        for header in ({}, {"authorization": "Bearer nonsense"}):
            answer = Client().get("/v1/sessions", headers=header)
            assert answer.status_code == 401
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert "sign in first" in answer.json()["detail"]


class TestSignIn:
    def test_is_where_the_page_leads_without_guests(
        self, ann: User, settings: Any
    ) -> None:
        settings.CARDWIRE_ALLOW_ANONYMOUS = False
        client = Client()
        there = client.get("/?session=sess_1")
        assert there.headers["Location"] == "/sign-in/?next=/%3Fsession%3Dsess_1"
        form = client.get(there.headers["Location"])
        assert "default-src 'none'" in form.headers["Content-Security-Policy"]

        wrong = client.post("/sign-in/", {"username": "ann", "password": "no"})
        assert "do not fit together" in wrong.content.decode()
        right = client.post(
            there.headers["Location"],
            {"username": "ann", "password": "pw", "next": "/?session=sess_1"},
        )
        assert right.headers["Location"] == "/?session=sess_1"
        page = client.get("/").content.decode()
        assert 'data-signed-in-name="ann"' in page
        assert client.post("/sign-out/").status_code == 302
        assert client.get("/").status_code == 302

    def test_leaves_the_guests_sessions_to_the_guest(self, ann: User) -> None:
        client = Client()
        client.get("/")
        guest = browser_principal(client.cookies["sessionid"].value)
        make_session("sess_guest", guest)
        assert client.get("/v1/sessions/sess_guest").status_code == 200

        client.post("/sign-in/", {"username": "ann", "password": "pw"})

        assert client.get("/v1/sessions/sess_guest").status_code == 404


class TestTokenAdmin:
    def test_takes_a_token_back(self, ann: User) -> None:
        token = token_of(ann)
        root = User.objects.create_superuser("root", password="pw")
        client = Client()
        client.force_login(root)
        shown = client.get("/admin/cards/accesstoken/").content.decode()
        row = AccessToken.objects.get()
        assert row.digest[:8] in shown
        assert row.digest not in shown
        assert client.get("/admin/cards/accesstoken/add/").status_code == 403

        client.post(f"/admin/cards/accesstoken/{row.pk}/delete/", {"post": "yes"})

        assert find_token(token) is None
