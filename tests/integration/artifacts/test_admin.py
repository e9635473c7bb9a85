"""Files in the operator's admin: found, downloaded, deleted, and never changed."""

import re
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext

from artifacts import admin
from artifacts.models import Artifact, ArtifactVersion
from cards.clock import utc_now
from cards.models import Session
from tests.integration.artifacts.files import HTML, PNG, files_in_storage, keep, storage
from tests.integration.cards.admin_pages import (
    ESCAPED,
    HOSTILE,
    client_with,
    link,
    page,
    statements,
)
from tests.integration.cards.conftest import make_session

ARTIFACTS = "/admin/artifacts/artifact/"


@pytest.fixture(name="operator")
def _operator(ann: User) -> Client:
    browser = Client()
    browser.force_login(User.objects.create_superuser("olga"))
    return browser


def names_of(html: str) -> list[str]:
    """Return the names that a list shows, in order."""
    return re.findall(r'<th class="field-shown_name"><a[^>]*>([^<]*)</a>', html)


def address_of(version: ArtifactVersion, part: str = "change/") -> str:
    return f"{ARTIFACTS}{version.artifact_id}/{part}"


class TestList:
    def test_tells_how_much_there_is(self, operator: Client, session: Session) -> None:
        """Size totals per session."""
        keep(session, "a.txt", b"x" * 100)
        keep(session, "a.txt", b"x" * 200)
        keep(session, "dot.png", PNG)
        keep(make_session("sess_2"), "b.txt", b"x" * 5)

        html = page(operator, ARTIFACTS)

        assert names_of(html) == ["b.txt", "dot.png", "a.txt"]
        of_ann = f"{300 + len(PNG)} B in 2 files"
        assert html.count(of_ann) == 2
        assert "5 B in 1 file<" in html
        assert '<td class="field-versions">2</td>' in html
        assert '<td class="field-size">300 B</td>' in html
        assert '<td class="field-kind">image/png</td>' in html

    def test_leads_to_the_files_of_one_session(
        self, operator: Client, session: Session
    ) -> None:
        keep(session, "a.txt")
        keep(make_session("sess_2"), "b.txt")
        (address,) = re.findall(
            rf'"({ARTIFACTS}\?session__id__exact={session.pk})"',
            page(operator, ARTIFACTS),
        )

        assert names_of(page(operator, address)) == ["a.txt"]

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ("art_1", ["one"]),
            ("art_", ["three", "two", "one"]),
            ("sess_a", ["two", "one"]),
            ("HRE", ["three"]),
            ("ne", ["one"]),
            ("%", []),
            ("' OR 1=1", []),
        ],
    )
    def test_is_searched(
        self, operator: Client, session: Session, query: str, names: list[str]
    ) -> None:
        keep(session, "one", artifact_id="art_1")
        keep(session, "two", artifact_id="art_2")
        keep(make_session("sess_b"), "three", artifact_id="art_3")

        html = operator.get(ARTIFACTS, {"q": query}).content.decode()

        assert names_of(html) == names

    def test_survives_a_search_that_no_database_takes(
        self, operator: Client, session: Session
    ) -> None:
        assert operator.get(ARTIFACTS, {"q": "art_1\0"}).status_code in {200, 302}

    def test_is_filtered_by_who_brought_it(
        self, operator: Client, session: Session
    ) -> None:
        keep(session, "made")
        keep(session, "brought", source="user", is_version=False)

        html = page(operator, f"{ARTIFACTS}?source__exact=user")

        assert names_of(html) == ["brought"]

    def test_comes_in_pages_by_key(
        self, operator: Client, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Files of the same moment are shown once each, and nothing is counted."""
        monkeypatch.setattr(admin.ArtifactAdmin, "list_per_page", 3)
        names = [f"file {number}" for number in range(10)]
        for name in names:
            keep(session, name)
        moment = utc_now() + timedelta(days=1)
        Artifact.objects.filter(name__in=names[4:8]).update(created_at=moment)
        Artifact.objects.filter(name__in=names[8:]).update(
            created_at=moment + timedelta(days=1)
        )
        found: list[str] = []
        address: str | None = ""

        with CaptureQueriesContext(connection) as queries:
            while address is not None:
                html = page(operator, ARTIFACTS + address)
                found += names_of(html)
                address = link(html, "next")

        assert found == names[::-1]
        assert "COUNT(*)" not in statements(queries)

    def test_needs_as_many_queries_for_many_as_for_one(
        self, operator: Client, session: Session
    ) -> None:
        keep(session, "a")
        with CaptureQueriesContext(connection) as one:
            page(operator, ARTIFACTS)
        for number in range(20):
            keep(make_session(f"sess_{number}"), "b")

        with CaptureQueriesContext(connection) as many:
            page(operator, ARTIFACTS)

        assert len(many) == len(one)


class TestPage:
    def test_shows_the_versions(self, operator: Client, session: Session) -> None:
        keep(session, "a.md", b"# One", role="report", description="the first")
        newest = keep(session, "a.md", b"# Two!")

        html = page(operator, address_of(newest))

        assert html.index(newest.sha256) < html.index("the first")
        assert "report" in html
        for number in (1, 2):
            assert f'href="{address_of(newest, f"versions/{number}/")}"' in html

    def test_shows_the_newest_of_many(
        self, operator: Client, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(admin, "SHOWN_VERSIONS", 2)
        for text in (b"1", b"2", b"3"):
            version = keep(session, "a", text)

        html = page(operator, address_of(version))

        assert "there is 1 older" in html
        assert "versions/3/" in html
        assert "versions/1/" not in html

    def test_tells_that_a_file_is_missing(
        self, operator: Client, session: Session
    ) -> None:
        version = keep(session)
        ArtifactVersion.objects.update(missing_since=utc_now())

        assert "file missing" in page(operator, address_of(version))

    def test_shows_hostile_text_as_text(
        self, operator: Client, session: Session
    ) -> None:
        """Spec: FR-119, FR-121."""
        version = keep(session, "a", role=HOSTILE[:64], description=HOSTILE)
        Artifact.objects.update(name=HOSTILE)

        for address in (ARTIFACTS, address_of(version), address_of(version, "delete/")):
            html = page(operator, address)
            assert "<script>alert" not in html
            assert "\u202e" not in html
        assert ESCAPED in page(operator, ARTIFACTS)
        assert page(operator, address_of(version)).count(ESCAPED) >= 2

    def test_changes_nothing(self, operator: Client, session: Session) -> None:
        version = keep(session)

        for address in (address_of(version), f"{ARTIFACTS}add/", ARTIFACTS):
            answer = operator.post(address, {"name": "other"})
            assert answer.status_code in {403, 405}
        assert Artifact.objects.get().name == "report.md"


class TestDownload:
    @staticmethod
    def fetch(browser: AsyncClient, address: str) -> tuple[int, dict[str, str], bytes]:
        async def ask() -> tuple[int, dict[str, str], bytes]:
            answer = await browser.get(address)
            pieces = [piece async for piece in answer.streaming_content]  # type: ignore[attr-defined]
            answer.close()
            return answer.status_code, dict(answer.headers), b"".join(pieces)

        return async_to_sync(ask)()

    def test_gives_the_bytes_to_be_saved(self, session: Session) -> None:
        version = keep(session, "page.html", HTML)
        keep(session, "page.html", b"newer")
        browser = AsyncClient()
        browser.force_login(User.objects.create_superuser("olga"))

        status, headers, body = self.fetch(browser, address_of(version, "versions/1/"))

        assert (status, body) == (200, HTML)
        assert headers["Content-Disposition"] == 'attachment; filename="page.html"'
        assert headers["Content-Type"] == "text/plain; charset=utf-8"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "no-store" in headers["Cache-Control"]

    def test_of_what_is_not_there(self, operator: Client, session: Session) -> None:
        version = keep(session)

        assert operator.get(address_of(version, "versions/2/")).status_code == 404
        for name in files_in_storage():
            storage().delete(name)
        assert operator.get(address_of(version, "versions/1/")).status_code == 404

    def test_is_only_read(self, operator: Client, session: Session) -> None:
        version = keep(session)

        assert operator.post(address_of(version, "versions/1/")).status_code == 405

    def test_needs_the_permission_to_view(self, session: Session) -> None:
        version = keep(session)
        address = address_of(version, "versions/1/")

        assert Client().get(address).status_code == 302
        assert client_with("view_session").get(address).status_code == 403


class TestDelete:
    def test_asks_first_and_removes_rows_and_files(
        self, operator: Client, session: Session
    ) -> None:
        doomed = keep(session, "dot.png", PNG)
        keep(session, "dot.png", PNG + b"\0")
        other = keep(session, "other.txt")
        assert len(files_in_storage()) == 5

        asked = page(operator, address_of(doomed, "delete/"))
        assert "Are you sure" in asked
        assert "dot.png" in asked
        assert Artifact.objects.count() == 2
        answer = operator.post(address_of(doomed, "delete/"), {"post": "yes"})

        assert answer.status_code == 302
        assert [row.pk for row in Artifact.objects.all()] == [other.artifact_id]
        assert files_in_storage() == {other.storage_name}
        assert LogEntry.objects.get().object_repr == doomed.artifact.artifact_id

    def test_needs_the_permission(self, session: Session) -> None:
        version = keep(session)
        browser = client_with("view_artifact", "view_session")

        assert "versions/1/" in page(browser, address_of(version))
        answer = browser.post(address_of(version, "delete/"), {"post": "yes"})

        assert answer.status_code == 403
        assert len(files_in_storage()) == 1
