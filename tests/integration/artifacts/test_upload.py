"""Files that users bring by REST: whole, or not at all."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.core.files.storage import storages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import DatabaseError
from django.test import Client
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from artifacts import uploads
from artifacts.models import Artifact, ArtifactVersion
from artifacts.shelf import StoredArtifactShelf
from cards.models import Session
from cards.ownership import lock_session
from config.wiring import artifact_shelf
from tests.integration.artifacts.files import (
    HTML,
    PNG,
    SVG,
    client_of,
    files_in_storage,
    storage,
)

UPLOADS = "/v1/artifacts"


def bring(
    browser: Client,
    content: bytes = b"words",
    name: str = "a.txt",
    *,
    session_id: str = "sess_ann",
    claimed: str = "text/plain",
    **headers: str,
) -> Any:
    file = SimpleUploadedFile("x", content, claimed)
    # Past Django's own, which takes path steps out of what a test says.
    file._name = name  # type: ignore[attr-defined]
    return browser.post(
        UPLOADS,
        {"session_id": session_id, "file": file},
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def send(browser: Client, body: bytes, **headers: str) -> Any:
    return browser.generic(
        "POST",
        UPLOADS,
        body,
        content_type="multipart/form-data; boundary=frame",
        headers=headers,
    )


def part(disposition: str, content: bytes, *headers: str) -> bytes:
    head = [f"Content-Disposition: form-data; {disposition}", *headers]
    return b"--frame\r\n" + "\r\n".join(head).encode() + b"\r\n\r\n" + content + b"\r\n"


SESSION = part('name="session_id"', b"sess_ann")
FILE = part('name="file"; filename="a.txt"', b"words")
END = b"--frame--\r\n"


def incoming_files() -> list[str]:
    """Return what lies where files come in; nothing is to stay there."""
    folder: Path = artifact_shelf()._incoming_dir
    return [path.name for path in folder.iterdir()] if folder.exists() else []


def nothing_is_left() -> bool:
    rows = Artifact.objects.exists() or ArtifactVersion.objects.exists()
    return not rows and not files_in_storage() and not incoming_files()


class TestUpload:
    def test_keeps_the_file(self, browser: Client, session: Session) -> None:
        """Spec: interfaces.md, REST."""
        answer = bring(browser, b"# Words\n", "notes.md")

        told = answer.json()
        row = ArtifactVersion.objects.select_related("artifact").get()
        assert answer.status_code == 201
        assert answer.headers["Location"] == f"/v1/artifacts/{told['artifact_id']}"
        assert told["artifact_id"] == row.artifact.artifact_id
        assert told["session_id"] == "sess_ann"
        assert (told["name"], told["source"]) == ("notes.md", "user")
        assert (told["mime_type"], told["size_bytes"]) == ("text/markdown", 8)
        assert (told["version"], len(told["versions"])) == (1, 1)
        with storage().open(row.storage_name) as file:
            assert file.read() == b"# Words\n"
        assert row.artifact.session == session
        assert incoming_files() == []

    def test_is_always_an_artifact_of_its_own(
        self, browser: Client, session: Session
    ) -> None:
        first, second = (bring(browser, text).json() for text in (b"one", b"two"))

        assert first["artifact_id"] != second["artifact_id"]
        assert first["version"] == second["version"] == 1

    def test_may_be_empty(self, browser: Client, session: Session) -> None:
        told = bring(browser, b"", "empty.txt").json()

        assert (told["size_bytes"], told["mime_type"]) == (0, "text/plain")

    def test_of_a_picture_has_a_thumbnail(
        self, browser: Client, session: Session
    ) -> None:
        told = bring(browser, PNG, "dot.png").json()

        address = f"/v1/artifacts/{told['artifact_id']}/thumbnail?version=1"
        assert (told["type"], told["thumbnail"]) == ("image", address)

    @pytest.mark.parametrize(
        ("content", "name", "claimed", "mime_type"),
        [
            (HTML, "picture.png", "image/png", "text/html"),
            (SVG, "picture.png", "image/png", "image/svg+xml"),
            (PNG, "page.html", "text/html", "image/png"),
            (b"\x00\x01", "page.html", "text/html", "application/octet-stream"),
            (b"words", "a.bin", "image/png", "text/plain"),
            (b"words", "a.txt", "x" * 500, "text/plain"),
        ],
    )
    def test_is_what_its_bytes_tell(
        self,
        browser: Client,
        session: Session,
        content: bytes,
        name: str,
        claimed: str,
        mime_type: str,
    ) -> None:
        """FR-109: a claim is only a hint."""
        told = bring(browser, content, name, claimed=claimed).json()

        assert told["mime_type"] == mime_type

    @pytest.mark.parametrize(
        ("name", "kept"),
        [
            ("../../etc/passwd", "passwd"),
            ("..\\..\\boot.ini", "boot.ini"),
            ("..", "unnamed-file"),
            (".", "unnamed-file"),
            ("/", "unnamed-file"),
            ("con.txt", "_con.txt"),
            ("a\u202egnp.exe", "agnp.exe"),
            ("a\x00b.txt", "ab.txt"),
            ("a\u200b.txt", "a.txt"),
            ("报告.md", "报告.md"),
            ("a&amp;b.txt", "a&amp;b.txt"),
            ("x" * 900 + ".txt", "x" * 251 + ".txt"),
        ],
    )
    def test_gets_a_safe_name(
        self, browser: Client, session: Session, name: str, kept: str
    ) -> None:
        """FR-107, FR-111, FR-113."""
        form = SESSION + part(f'name="file"; filename="{name}"', b"words") + END

        answer = send(browser, form)

        assert answer.status_code == 201
        assert answer.json()["name"] == kept

    def test_may_come_before_its_session(
        self, browser: Client, session: Session
    ) -> None:
        assert send(browser, FILE + SESSION + END).status_code == 201

    def test_may_come_with_fields_that_nobody_knows(
        self, browser: Client, session: Session
    ) -> None:
        others = part('name="more"', b"1") + part('name="f2"; filename="b"', b"2")

        assert send(browser, others + SESSION + others + FILE + END).status_code == 201
        assert ArtifactVersion.objects.get().size_bytes == 5
        assert incoming_files() == []


class TestBadForm:
    @pytest.mark.parametrize(
        ("body", "field"),
        [
            (SESSION + END, "file"),
            (SESSION + part('name="file"', b"words") + END, "file"),
            (SESSION + part('name="file"; filename=""', b"") + END, "file"),
            (SESSION + FILE + FILE + END, "file"),
            (FILE + END, "session_id"),
            (SESSION + SESSION + FILE + END, "session_id"),
            (END, "file"),
            (b"nonsense", "file"),
        ],
        ids=range(8),
    )
    def test_is_told_what_lacks(
        self, browser: Client, session: Session, body: bytes, field: str
    ) -> None:
        answer = send(browser, body)

        error = answer.json()["error"]
        assert answer.status_code == 400
        assert (error["type"], error["details"]["field"]) == ("invalid_input", field)
        assert error["details"]["allowed"]
        assert nothing_is_left()

    @pytest.mark.parametrize(
        "body",
        [
            SESSION + FILE,
            SESSION + FILE[:-4],
            (SESSION + FILE + END)[:-4],
            SESSION + part('name="file"; filename="a"', b"x" * 300_000)[:200_000],
        ],
        ids=["no end", "cut file", "cut end", "long"],
    )
    def test_that_breaks_off_leaves_nothing(
        self, browser: Client, session: Session, body: bytes
    ) -> None:
        answer = send(browser, body)

        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "INVALID_FORM"
        assert nothing_is_left()

    @pytest.mark.parametrize(
        ("content_type", "status"),
        [
            ("multipart/form-data", 400),
            ("multipart/form-data; boundary=" + "x" * 5000, 400),
            ("multipart/form-data; boundary=frame; charset=nonsense", 201),
            ("multipart/mixed; boundary=frame", 415),
            ("application/json", 415),
            ("application/x-www-form-urlencoded", 415),
            ("", 415),
        ],
    )
    def test_says_what_it_is(
        self, browser: Client, session: Session, content_type: str, status: int
    ) -> None:
        answer = browser.generic(
            "POST", UPLOADS, SESSION + FILE + END, content_type=content_type
        )

        assert answer.status_code == status

    @pytest.mark.parametrize(
        "head",
        [
            "name=\"file\"; filename*=nonsense''a.txt",
            "name=\"file\"; filename*=utf-8''%FF%FE",
            'name="file"; filename="\udcff"',
            'filename="a.txt"',
            'name="file"; filename="a.txt"\r\nContent-Transfer-Encoding: base64',
        ],
    )
    def test_with_an_odd_head_is_taken_or_refused(
        self, browser: Client, session: Session, head: str
    ) -> None:
        disposition = f"Content-Disposition: form-data; {head}"
        file = disposition.encode(errors="surrogateescape") + b"\r\n\r\nwords"

        answer = send(browser, SESSION + b"--frame\r\n" + file + b"\r\n" + END)

        assert answer.status_code in {201, 400}
        assert answer.status_code == 201 or nothing_is_left()

    @pytest.mark.parametrize("length", [1000, 1100, 10_000])
    def test_with_a_head_that_is_too_long_is_told_so(
        self, browser: Client, session: Session, length: int
    ) -> None:
        """Django reads 1,024 bytes of it, which no file system's names need."""
        file = part(f'name="file"; filename="{"x" * length}"', b"words")

        answer = send(browser, SESSION + file + END)

        assert answer.status_code == 400
        assert "header size" in answer.json()["error"]["message"]
        assert nothing_is_left()

    def test_with_huge_fields_is_refused(
        self, browser: Client, session: Session, settings: LazySettings
    ) -> None:
        settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000

        answer = send(browser, SESSION + FILE + part('name="x"', b"y" * 2000) + END)

        assert answer.status_code == 413
        assert nothing_is_left()

    @pytest.mark.parametrize(
        "many", [part('name="x"', b""), part('name="x"; filename="y"', b"")]
    )
    def test_with_many_parts_is_refused(
        self, browser: Client, session: Session, many: bytes
    ) -> None:
        answer = send(browser, SESSION + FILE + 2000 * many + END)

        assert answer.status_code == 400
        assert nothing_is_left()

    @hypothesis_settings(
        max_examples=60,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(st.binary(max_size=200), st.integers(0, 200))
    def test_of_any_bytes_is_answered(
        self, browser: Client, session: Session, junk: bytes, place: int
    ) -> None:
        form = SESSION + FILE + END
        at = place % len(form)

        answer = send(browser, form[:at] + junk + form[at:])

        assert answer.status_code in {201, 400, 404}
        assert incoming_files() == []
        assert len(files_in_storage()) == ArtifactVersion.objects.count()


class TestRefusedUpload:
    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(artifact_shelf(), "_max_bytes", 1000)

    def test_of_the_largest_size_is_taken(
        self, browser: Client, session: Session
    ) -> None:
        assert bring(browser, b"x" * 1000).status_code == 201

    def test_is_over_the_cap(self, browser: Client, session: Session) -> None:
        answer = bring(browser, b"x" * 1001)

        error = answer.json()["error"]
        assert answer.status_code == 413
        assert (error["code"], error["retryable"]) == ("ARTIFACT_TOO_LARGE", False)
        assert "1000" in error["message"]
        assert error["details"] == {"field": "file"}
        assert nothing_is_left()

    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
    @pytest.mark.parametrize("where", ["incoming", "storage"])
    def test_does_not_fit_the_disk(
        self,
        browser: Client,
        session: Session,
        monkeypatch: pytest.MonkeyPatch,
        where: str,
        number: int,
    ) -> None:
        """Bad input: a disk that is full; a clear error, no half file, no row."""

        def fail(*_: object, **__: object) -> None:
            raise OSError(number, "full")

        if where == "incoming":
            monkeypatch.setattr("artifacts.staging.os.fsync", fail)
        else:
            monkeypatch.setattr(storages["artifacts"], "save", fail)

        answer = bring(browser)

        error = answer.json()["error"]
        assert answer.status_code == 507
        assert (error["code"], error["retryable"]) == ("STORAGE_FULL", True)
        assert "room" in error["user_message"]
        assert nothing_is_left()

    def test_meets_a_storage_that_fails(
        self, browser: Client, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise ConnectionError("secret bucket")

        monkeypatch.setattr(storages["artifacts"], "save", fail)

        answer = bring(browser)

        assert answer.status_code == 503
        assert answer.json()["error"]["type"] == "dependency_fail"
        assert b"secret" not in answer.content
        assert nothing_is_left()

    def test_meets_a_database_that_fails(
        self, browser: Client, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise DatabaseError("away")

        monkeypatch.setattr(StoredArtifactShelf, "keep", staticmethod(fail))
        browser.raise_request_exception = False

        assert bring(browser).status_code == 500
        assert nothing_is_left()

    def test_is_for_a_session_that_goes_meanwhile(
        self, browser: Client, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def lose(session_pk: int) -> None:
            Session.objects.filter(pk=session_pk).delete()
            lock_session(session_pk)

        monkeypatch.setattr(uploads, "lock_session", lose)

        assert bring(browser).status_code == 404
        assert nothing_is_left()


class TestOwnership:
    @pytest.mark.parametrize(
        "session_id", ["sess_ann", "unknown", "a\0b", "", "x" * 999]
    )
    def test_of_others_is_a_session_that_is_unknown(
        self, session: Session, session_id: str
    ) -> None:
        """Spec: Ruling E27; ids of others."""
        bob = client_of(User.objects.create_user("bob"))

        answer = bring(bob, session_id=session_id)

        assert answer.status_code == 404
        assert answer.json() == {"detail": "there is no such session"}
        assert nothing_is_left()

    def test_comes_with_a_token(self, session: Session) -> None:
        stranger = Client(headers={"Authorization": "Bearer nonsense"})

        answer = bring(stranger)

        assert answer.status_code == 401
        assert nothing_is_left()


class TestCookie:
    @pytest.fixture(name="cookie_browser")
    def _cookie_browser(self, ann: User) -> Client:
        browser = Client(enforce_csrf_checks=True)
        browser.force_login(ann)
        browser.get("/")
        return browser

    def test_needs_the_token_of_the_page(
        self, cookie_browser: Client, session: Session
    ) -> None:
        """Spec: Ruling E27."""
        token = cookie_browser.cookies["csrftoken"].value

        assert bring(cookie_browser).status_code == 403
        assert nothing_is_left()
        answer = bring(cookie_browser, x_csrftoken=token)
        assert answer.status_code == 201

    def test_does_not_have_its_form_read_before(
        self,
        cookie_browser: Client,
        session: Session,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """What another site's page sends is not even written to the disk."""
        token = cookie_browser.cookies["csrftoken"].value
        begun: list[str] = []
        begin = StoredArtifactShelf.begin

        def watch(shelf: StoredArtifactShelf) -> Any:
            begun.append("begun")
            return begin(shelf)

        monkeypatch.setattr(StoredArtifactShelf, "begin", watch)
        form = part('name="csrfmiddlewaretoken"', token.encode()) + SESSION + FILE

        assert send(cookie_browser, form + END).status_code == 403
        assert begun == []

    def test_of_a_guest_needs_it_too(self, ann: User) -> None:
        guest = Client(enforce_csrf_checks=True)
        guest.get("/")

        assert bring(guest).status_code == 403

    def test_errors_are_json(self, cookie_browser: Client, session: Session) -> None:
        assert json.loads(bring(cookie_browser).content)["detail"]
