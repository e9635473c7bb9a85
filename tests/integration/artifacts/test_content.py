"""The bytes of artifacts by REST: whole, in part, if changed, and never run."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.files.storage import storages
from django.utils.http import http_date

from artifacts.downloads import PIECE_BYTES, FilePieces
from artifacts.models import ArtifactVersion
from cards.models import Session
from tests.integration.artifacts.files import (
    HTML,
    PNG,
    SVG,
    Reader,
    fetch,
    files_in_storage,
    keep,
    reader_of,
    storage,
)

TEXT = bytes(range(48, 58)) * 20_000


@pytest.fixture(name="version")
def _version(session: Session) -> ArtifactVersion:
    return keep(session, "digits.txt", TEXT)


def address_of(version: ArtifactVersion, query: str = "") -> str:
    return f"/v1/artifacts/{version.artifact.artifact_id}/content{query}"


class TestContent:
    def test_comes_whole(self, reader: Reader, version: ArtifactVersion) -> None:
        """Spec: interfaces.md, REST."""
        found = fetch(reader, address_of(version))

        assert (found.status, found.body) == (200, TEXT)
        assert found.headers["Content-Length"] == str(len(TEXT))
        assert found.headers["Accept-Ranges"] == "bytes"
        assert found.headers["ETag"] == f'"{version.sha256}"'
        assert found.headers["Content-Type"] == "text/plain; charset=utf-8"

    def test_is_that_of_the_version(self, reader: Reader, session: Session) -> None:
        first = keep(session, "a.txt", b"one")
        keep(session, "a.txt", b"two")

        bodies = [
            fetch(reader, address_of(first, query)).body
            for query in ("", "?version=1", "?version=2")
        ]

        assert bodies == [b"two", b"one", b"two"]

    @pytest.mark.parametrize("version_no", ["3", "99999999999999999999"])
    def test_of_an_unknown_version_is_not_there(
        self, reader: Reader, version: ArtifactVersion, version_no: str
    ) -> None:
        found = fetch(reader, address_of(version, f"?version={version_no}"))

        assert found.status == 404

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            *((f"?version={bad}", "version") for bad in ("0", "-1", "x", "", "1" * 21)),
            ("?download=yes", "download"),
        ],
    )
    def test_is_not_guessed(
        self, reader: Reader, version: ArtifactVersion, query: str, field: str
    ) -> None:
        found = fetch(reader, address_of(version, query))

        assert found.status == 400
        assert field.encode() in found.body
        assert b"allowed" in found.body

    def test_that_is_empty_comes(self, reader: Reader, session: Session) -> None:
        version = keep(session, "empty.txt", b"")

        found = fetch(reader, address_of(version))

        assert (found.status, found.body) == (200, b"")
        assert found.headers["Content-Length"] == "0"
        assert fetch(reader, address_of(version), range="bytes=0-").status == 416

    def test_has_a_head(self, reader: Reader, version: ArtifactVersion) -> None:
        whole = fetch(reader, address_of(version))

        found = fetch(reader, address_of(version), "HEAD", range="bytes=0-1")

        assert (found.status, found.body) == (200, b"")
        assert found.headers == whole.headers

    @pytest.mark.parametrize("accept", ["image/*", "application/pdf", "*/*"])
    def test_comes_whatever_is_accepted(
        self, reader: Reader, version: ArtifactVersion, accept: str
    ) -> None:
        """An `<img>` of some browsers accepts pictures only."""
        assert fetch(reader, address_of(version), accept=accept).status == 200


class TestRange:
    @pytest.mark.parametrize(
        ("asked", "first", "last"),
        [
            ("bytes=0-9", 0, 9),
            ("bytes=70000-140000", 70_000, 140_000),
            ("bytes=199990-", 199_990, 199_999),
            ("bytes=-5", 199_995, 199_999),
            ("bytes=0-999999999", 0, 199_999),
        ],
    )
    def test_of_a_file_comes(
        self,
        reader: Reader,
        version: ArtifactVersion,
        asked: str,
        first: int,
        last: int,
    ) -> None:
        found = fetch(reader, address_of(version), range=asked)

        assert found.status == 206
        assert found.body == TEXT[first : last + 1]
        assert found.headers["Content-Range"] == f"bytes {first}-{last}/200000"
        assert found.headers["Content-Length"] == str(last - first + 1)

    @pytest.mark.parametrize("asked", ["bytes=0-1,5-6", "bytes=5-4", "lines=1-2"])
    def test_that_is_no_single_one_is_left(
        self, reader: Reader, version: ArtifactVersion, asked: str
    ) -> None:
        found = fetch(reader, address_of(version), range=asked)

        assert (found.status, found.body) == (200, TEXT)

    @pytest.mark.parametrize("asked", ["bytes=200000-", "bytes=-0"])
    def test_outside_of_the_file_is_told(
        self, reader: Reader, version: ArtifactVersion, asked: str
    ) -> None:
        found = fetch(reader, address_of(version), range=asked)

        assert found.status == 416
        assert found.headers["Content-Range"] == "bytes */200000"

    def test_of_the_same_file_comes(
        self, reader: Reader, version: ArtifactVersion
    ) -> None:
        whole = fetch(reader, address_of(version)).headers

        for known in (whole["ETag"], whole["Last-Modified"]):
            found = fetch(
                reader, address_of(version), range="bytes=0-1", if_range=known
            )
            assert found.status == 206

    @pytest.mark.parametrize(
        "known",
        ['"0"', 'W/"0"', "nonsense", http_date(0), "Thu, 01 Jan 2099 00:00:00 GMT"],
    )
    def test_of_another_file_is_the_whole(
        self, reader: Reader, version: ArtifactVersion, known: str
    ) -> None:
        """What a client has a part of is not joined to another file."""
        found = fetch(reader, address_of(version), range="bytes=0-1", if_range=known)

        assert (found.status, found.body) == (200, TEXT)

    def test_of_a_weak_tag_is_the_whole(
        self, reader: Reader, version: ArtifactVersion
    ) -> None:
        tag = f'W/"{version.sha256}"'

        found = fetch(reader, address_of(version), range="bytes=0-1", if_range=tag)

        assert found.status == 200


class TestCondition:
    def test_spares_what_is_known(
        self, reader: Reader, version: ArtifactVersion
    ) -> None:
        whole = fetch(reader, address_of(version)).headers

        for known in (
            {"if_none_match": whole["ETag"]},
            {"if_none_match": f'"other", W/{whole["ETag"]}'},
            {"if_modified_since": whole["Last-Modified"]},
        ):
            found = fetch(reader, address_of(version), **known)
            assert (found.status, found.body) == (304, b"")
            assert found.headers["ETag"] == whole["ETag"]
            assert found.headers["Cache-Control"] == "private, no-cache"

    def test_sends_what_changed(
        self, reader: Reader, session: Session, version: ArtifactVersion
    ) -> None:
        known = f'"{version.sha256}"'
        keep(session, "digits.txt", b"new")

        assert fetch(reader, address_of(version), if_none_match=known).body == b"new"
        assert fetch(reader, address_of(version), if_match=known).status == 412

    @pytest.mark.parametrize(
        ("header", "status"),
        [
            ({"if_match": "*"}, 200),
            ({"if_match": '"0"'}, 412),
            ({"if_unmodified_since": http_date(86_400)}, 412),
            ({"if_modified_since": http_date(0)}, 200),
            ({"if_none_match": '"0"'}, 200),
        ],
        ids=str,
    )
    def test_is_kept(
        self,
        reader: Reader,
        version: ArtifactVersion,
        header: dict[str, str],
        status: int,
    ) -> None:
        """Spec: RFC 9110 13."""
        assert fetch(reader, address_of(version), **header).status == status

    def test_before_a_part(self, reader: Reader, version: ArtifactVersion) -> None:
        found = fetch(
            reader,
            address_of(version),
            range="bytes=0-1",
            if_none_match=f'"{version.sha256}"',
        )

        assert found.status == 304

    def test_last_modified_is_when_the_version_came(
        self, reader: Reader, version: ArtifactVersion
    ) -> None:
        came = datetime(2026, 5, 4, 3, 2, 1, 999_000, tzinfo=UTC)
        ArtifactVersion.objects.update(created_at=came)

        found = fetch(reader, address_of(version))

        assert found.headers["Last-Modified"] == "Mon, 04 May 2026 03:02:01 GMT"
        later = http_date((came + timedelta(days=1)).timestamp())
        assert fetch(reader, address_of(version), if_modified_since=later).status == 304


class TestSafety:
    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("page.html", HTML),
            ("picture.svg", SVG),
            ("data.xml", b"<?xml version='1.0'?><a/>"),
            ("script.js", b"alert(1)"),
            ("style.css", b"* { color: red }"),
            ("picture.png", HTML),
            ("paper.pdf", SVG),
            ("notes.txt", HTML),
            ("archive.zip", b"PK\x03\x04" + bytes(100)),
            ("thing", b"\x00\x01\x02"),
        ],
    )
    def test_never_shows_what_could_run(
        self, reader: Reader, session: Session, name: str, content: bytes
    ) -> None:
        """Cases XSS: neither by its type nor by a name that lies."""
        found = fetch(reader, address_of(keep(session, name, content)))

        assert found.body == content
        assert found.headers["Content-Disposition"].startswith("attachment; ")
        kind = found.headers["Content-Type"]
        assert not any(word in kind for word in ("html", "xml", "script", "css"))

    @pytest.mark.parametrize(
        ("name", "content", "kind"),
        [
            ("dot.png", PNG, "image/png"),
            ("dot.html", PNG, "image/png"),
            ("a.txt", b"words", "text/plain; charset=utf-8"),
            ("a.csv", b"a,b\n1,2\n", "text/csv; charset=utf-8"),
            ("a.pdf", b"%PDF-1.4\n\x80\x81", "application/pdf"),
        ],
    )
    def test_shows_what_cannot(
        self,
        reader: Reader,
        session: Session,
        name: str,
        content: bytes,
        kind: str,
    ) -> None:
        version = keep(session, name, content)

        shown = fetch(reader, address_of(version)).headers
        saved = fetch(reader, address_of(version, "?download=1")).headers

        assert shown["Content-Type"] == saved["Content-Type"] == kind
        assert shown["Content-Disposition"] == f'inline; filename="{name}"'
        assert saved["Content-Disposition"] == f'attachment; filename="{name}"'

    @pytest.mark.parametrize("content", [HTML, PNG, b"%PDF-1.4\n\x80", b"words"])
    @pytest.mark.parametrize("asked", ["", "bytes=0-1"])
    def test_goes_with_every_answer(
        self, reader: Reader, session: Session, content: bytes, asked: str
    ) -> None:
        found = fetch(reader, address_of(keep(session, "a", content)), range=asked)

        headers = found.headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "private, no-cache"
        assert {"Cookie", "Authorization"} <= set(headers["Vary"].split(", "))

    @pytest.mark.parametrize(
        ("name", "disposition"),
        [
            ('say "hi".txt', r'attachment; filename="say \"hi\".txt"'),
            ("a;b=c.txt", 'attachment; filename="a;b=c.txt"'),
            (
                "100%.txt",
                "attachment; filename=\"100_.txt\"; filename*=UTF-8''100%25.txt",
            ),
            (
                "报告 1.md",
                'attachment; filename="__ 1.md";'
                " filename*=UTF-8''%E6%8A%A5%E5%91%8A%201.md",
            ),
            (
                "naïve.txt",
                "attachment; filename=\"naive.txt\"; filename*=UTF-8''na%C3%AFve.txt",
            ),
            ("../../etc/passwd", 'attachment; filename="passwd"'),
            ("a\r\nSet-Cookie: x=1", 'attachment; filename="a Set-Cookie: x=1"'),
            ("gnp.\u202etxt.exe", 'attachment; filename="gnp.txt.exe"'),
            ("CON", 'attachment; filename="_CON"'),
        ],
    )
    def test_names_the_file_rightly(
        self, reader: Reader, session: Session, name: str, disposition: str
    ) -> None:
        """Spec: RFC 6266, RFC 8187; FR-107, FR-111."""
        version = keep(session, name, b"words")

        found = fetch(reader, address_of(version, "?download=1"))

        assert found.headers["Content-Disposition"] == disposition

    def test_keeps_a_name_of_any_length(self, reader: Reader, session: Session) -> None:
        version = keep(session, "长" * 10_000 + ".txt", b"words")

        found = fetch(reader, address_of(version))

        assert found.status == 200
        assert found.headers["Content-Disposition"].endswith("%E9%95%BF.txt")


class TestOwnership:
    @pytest.mark.parametrize("part", ["", "/content", "/thumbnail"])
    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    def test_others_are_told_that_it_is_unknown(
        self, session: Session, part: str, method: str
    ) -> None:
        """Spec: Ruling E27; ids of others."""
        bob = reader_of(User.objects.create_user("bob"))
        version = keep(session, "dot.png", PNG)

        foreign = fetch(
            bob, f"/v1/artifacts/{version.artifact.artifact_id}{part}", method
        )
        unknown = fetch(bob, f"/v1/artifacts/art_unknown{part}", method)

        assert foreign.status == unknown.status == 404
        assert foreign.body == unknown.body
        assert foreign.headers == unknown.headers

    @pytest.mark.parametrize("name", ["a%00b", "x" * 500, "%F0%9F%98%80", "a%0Ab"])
    def test_what_is_no_id_is_unknown(self, reader: Reader, name: str) -> None:
        assert fetch(reader, f"/v1/artifacts/{name}/content").status == 404

    def test_a_bad_token_is_refused(self, version: ArtifactVersion) -> None:
        stranger = Reader("Bearer nonsense")

        assert fetch(stranger, address_of(version)).status == 401


class TestThumbnail:
    def test_is_a_small_picture(self, reader: Reader, session: Session) -> None:
        version = keep(session, "dot.png", PNG)
        name = version.artifact.artifact_id

        found = fetch(reader, f"/v1/artifacts/{name}/thumbnail?version=1")

        assert found.status == 200
        with storage().open(version.thumbnail_name) as file:
            assert found.body == file.read()
        assert found.headers["Content-Type"] == "image/webp"
        assert found.headers["ETag"] != f'"{version.sha256}"'
        known = {"if_none_match": found.headers["ETag"]}
        assert fetch(reader, f"/v1/artifacts/{name}/thumbnail", **known).status == 304

    def test_of_another_file_is_not_there(
        self, reader: Reader, version: ArtifactVersion
    ) -> None:
        name = version.artifact.artifact_id

        assert fetch(reader, f"/v1/artifacts/{name}/thumbnail").status == 404


class TestMissingFile:
    @pytest.mark.parametrize("part", ["content", "thumbnail"])
    def test_is_not_there(self, reader: Reader, session: Session, part: str) -> None:
        version = keep(session, "dot.png", PNG)
        for name in files_in_storage():
            storage().delete(name)

        found = fetch(reader, f"/v1/artifacts/{version.artifact.artifact_id}/{part}")

        assert found.status == 404
        assert b"gone" in found.body

    @pytest.mark.parametrize("part", ["content", "thumbnail"])
    def test_of_a_storage_that_fails_may_be_there_again(
        self,
        reader: Reader,
        session: Session,
        part: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        version = keep(session, "dot.png", PNG)

        def fail(*_: object) -> None:
            raise ConnectionError("the bucket is away")

        for method in ("open", "size"):
            monkeypatch.setattr(storages["artifacts"], method, fail)

        found = fetch(reader, f"/v1/artifacts/{version.artifact.artifact_id}/{part}")

        assert found.status == 503
        assert b"bucket" not in found.body

    def test_that_is_cut_breaks_the_answer_off(
        self, reader: Reader, version: ArtifactVersion
    ) -> None:
        """A client must not take half of a file for all of it."""
        with storage().open(version.storage_name, "r+b") as file:
            file.truncate(100_000)

        with pytest.raises(OSError, match="shorter"):
            fetch(reader, address_of(version))


class OpenFile:
    """A file that tells what is done to it."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.read_sizes: list[int] = []
        self.is_closed = False

    def read(self, size: int) -> bytes:
        self.read_sizes.append(size)
        piece = bytes(min(size, self._left))
        self._left -= len(piece)
        return piece

    def close(self) -> None:
        self.is_closed = True


async def all_of(pieces: FilePieces) -> int:
    return sum([len(each) async for each in pieces])


class TestFilePieces:
    def test_are_bounded(self) -> None:
        file: Any = OpenFile(1_000_000)

        size = async_to_sync(all_of)(FilePieces(file, first=0, size_bytes=1_000_000))

        assert size == 1_000_000
        assert max(file.read_sizes) == PIECE_BYTES == 64 * 1024
        assert file.is_closed

    def test_close_the_file_that_cannot_be_read(self) -> None:
        file: Any = OpenFile(10)

        with pytest.raises(OSError, match="shorter"):
            async_to_sync(all_of)(FilePieces(file, first=0, size_bytes=11))

        assert file.is_closed

    def test_close_the_file_when_the_client_goes(
        self,
        reader: Reader,
        version: ArtifactVersion,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Django closes the answer then."""
        file = OpenFile(len(TEXT))
        monkeypatch.setattr(storages["artifacts"], "open", lambda _: file)

        async def ask_and_go() -> None:
            answer: Any = await reader.get(address_of(version))
            pieces = aiter(answer.streaming_content)
            await anext(pieces)
            await pieces.aclose()
            await asyncio.to_thread(answer.close)

        async_to_sync(ask_and_go)()

        assert file.is_closed
        assert file.read_sizes == [PIECE_BYTES]
