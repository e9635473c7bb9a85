"""What is told of artifacts by REST."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from artifacts import views
from artifacts.models import Artifact, ArtifactVersion
from cards.clock import utc_now
from cards.models import Session
from cards.principals import ANONYMOUS
from tests.integration.artifacts.files import PNG, client_of, keep
from tests.integration.cards.admin_pages import statements
from tests.integration.cards.conftest import make_session


def listed(browser: Client, address: str) -> list[str]:
    """Return the names on all pages from an address on."""
    names: list[str] = []
    next_address: str | None = address
    while next_address:
        page = browser.get(next_address)
        assert page.status_code == 200, page.content
        names += [each["name"] for each in page.json()["results"]]
        next_address = page.json()["next"]
    return names


class TestDetail:
    def test_tells_the_versions_oldest_first(
        self, browser: Client, session: Session
    ) -> None:
        """Spec: interfaces.md, REST."""
        keep(session, "a.md", b"# One", role="report", description="first")
        second = keep(session, "a.md", b"# Two!")

        told = browser.get(f"/v1/artifacts/{second.artifact.artifact_id}").json()

        assert told["artifact_id"] == second.artifact.artifact_id
        assert told["uri"] == f"artifact://{second.artifact.artifact_id}"
        assert told["session_id"] == "sess_ann"
        assert (told["name"], told["source"]) == ("a.md", "assistant")
        assert (told["version"], told["size_bytes"]) == (2, 6)
        first, newest = told["versions"]
        assert (first["version"], newest["version"]) == (1, 2)
        assert (first["role"], first["description"]) == ("report", "first")
        assert newest["sha256"] == second.sha256
        assert first["created_at"] <= newest["created_at"]
        assert first["created_at"].endswith("Z")
        assert {**told, **newest} == told

    def test_tells_where_the_small_picture_is(
        self, browser: Client, session: Session
    ) -> None:
        kept = keep(session, "dot.png", PNG)
        name = kept.artifact.artifact_id

        told = browser.get(f"/v1/artifacts/{name}").json()

        assert told["thumbnail"] == f"/v1/artifacts/{name}/thumbnail?version=1"

    def test_of_a_file_without_versions_is_unknown(
        self, browser: Client, session: Session
    ) -> None:
        kept = keep(session)
        ArtifactVersion.objects.all().delete()

        found = browser.get(f"/v1/artifacts/{kept.artifact.artifact_id}")

        assert found.status_code == 404
        assert listed(browser, "/v1/artifacts?session_id=sess_ann") == []

    @pytest.mark.parametrize("method", ["put", "patch", "delete", "post"])
    def test_cannot_be_changed(
        self, browser: Client, session: Session, method: str
    ) -> None:
        kept = keep(session)

        answer = getattr(browser, method)(f"/v1/artifacts/{kept.artifact.artifact_id}")

        assert answer.status_code == 405


class TestList:
    def test_begins_with_the_newest(self, browser: Client, session: Session) -> None:
        for name in ("a", "b", "c"):
            keep(session, name)
        keep(session, "a", b"again")
        keep(make_session("sess_2", session.principal), "other")

        found = browser.get("/v1/artifacts?session_id=sess_ann").json()

        assert [each["name"] for each in found["results"]] == ["c", "b", "a"]
        assert found["results"][2]["version"] == 2
        assert (found["next"], found["previous"]) == (None, None)
        assert "versions" not in found["results"][0]

    def test_comes_in_pages_without_counting(
        self, browser: Client, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Artifacts of the same moment are told once each."""
        monkeypatch.setattr(views, "PAGE_ARTIFACTS", 3)
        names = [f"file {number}" for number in range(10)]
        for name in names:
            keep(session, name)
        moment = utc_now()
        Artifact.objects.filter(name__in=names[2:7]).update(created_at=moment)
        Artifact.objects.filter(name__in=names[7:]).update(
            created_at=moment + timedelta(days=1)
        )

        with CaptureQueriesContext(connection) as queries:
            found = listed(browser, "/v1/artifacts?session_id=sess_ann")

        assert found == names[::-1]
        assert "COUNT(" not in statements(queries)

    @pytest.mark.parametrize(
        ("query", "field"),
        [("", "session_id"), ("?session_id=sess_ann&cursor=nonsense", "cursor")],
    )
    def test_says_what_it_needs(
        self, browser: Client, session: Session, query: str, field: str
    ) -> None:
        answer = browser.get(f"/v1/artifacts{query}")

        assert answer.status_code == 400
        assert "allowed" in str(answer.json()[field])

    @pytest.mark.parametrize("session_id", ["sess_ann", "unknown", "a%00b", ""])
    def test_of_others_is_unknown(self, session: Session, session_id: str) -> None:
        """Spec: Ruling E27."""
        bob = client_of(User.objects.create_user("bob"))

        found = bob.get(f"/v1/artifacts?session_id={session_id}")

        assert found.status_code == 404

    def test_needs_somebody(self, session: Session) -> None:
        stranger = Client(headers={"Authorization": "Bearer nonsense"})

        assert stranger.get("/v1/artifacts?session_id=sess_ann").status_code == 401

    def test_is_open_to_scripts_where_they_may_own_sessions(self, ann: User) -> None:
        keep(make_session("sess_script", ANONYMOUS), "a")

        assert listed(Client(), "/v1/artifacts?session_id=sess_script") == ["a"]
