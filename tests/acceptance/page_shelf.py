"""The files of a scripted session, served to the page by the test."""

import json
import re
import struct
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Error, Page, Request, Route

ADDRESS = re.compile(
    r"/v1/artifacts(?:/(?P<id>[^/?]+)(?:/(?P<part>content|thumbnail)"
    r"(?:\?version=(?P<version>\d+))?)?)?(?:[?&]download=1)?$"
)


#: A Markdown file that mentions another.
REPORT = "# Report\n\nThree files.\n\nSee [data.csv](artifact://art_csv).\n"


def picture(width: int = 60, height: int = 40) -> bytes:
    """Return a PNG of one colour."""

    def chunk(name: bytes, body: bytes) -> bytes:
        head = struct.pack(">I", len(body)) + name + body
        return head + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = (b"\0" + b"\x3c\x78\x82" * width) * height
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def paper(words: str = "Hello PDF") -> bytes:
    """Return a PDF of one page."""
    stream = f"BT /F1 24 Tf 50 100 Td ({words}) Tj ET".encode()
    bodies = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(bodies, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(out)
    return out + b"xref\n0 6\n0000000000 65535 f \n" + table + end


@dataclass
class File:
    """A file with its versions, oldest first."""

    name: str
    mime_type: str
    contents: list[bytes]
    source: str = "assistant"


@dataclass
class PageShelf:
    """Answers the page's requests for files; uploads wait for the test.

    Attributes:
        files: By artifact id.
        uploads: Requests that are not answered yet, oldest first.
        asked: Method, path and `Range` of what was asked for.
    """

    files: dict[str, File] = field(default_factory=dict)
    uploads: list[Route] = field(default_factory=list)
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    def put(self, artifact_id: str, name: str, mime_type: str, *texts: Any) -> None:
        """Put a file there, or versions of it."""
        contents = [t.encode() if isinstance(t, str) else t for t in texts]
        known = self.files.get(artifact_id)
        if known:
            known.contents += contents
        else:
            self.files[artifact_id] = File(name, mime_type, contents)

    def serve(self, page: Page) -> None:
        """Answer what this page asks."""
        page.route("**/v1/artifacts**", self._answer)
        page.route("**/v1/artifacts/**", self._answer)

    def accept(self, artifact_id: str, name: str, mime_type: str = "text/plain") -> str:
        """Take the oldest upload; return what it carried."""
        route = self.uploads.pop(0)
        body = (route.request.post_data_buffer or b"").decode(errors="replace")
        self.put(artifact_id, name, mime_type, b"uploaded")
        route.fulfill(status=201, json=self._facts(artifact_id))
        return body

    def refuse(self, status: int, sentence: str) -> None:
        """Refuse the oldest upload."""
        error = {"type": "invalid_input", "message": "no", "user_message": sentence}
        self.uploads.pop(0).fulfill(status=status, json={"error": error})

    def drop_uploads(self) -> None:
        """Let go of what was not answered."""
        for route in self.uploads:
            # The page may have cancelled it.
            with suppress(Error):
                route.fulfill(status=503)

    def _answer(self, route: Route) -> None:
        request = route.request
        if request.method == "POST":
            self.uploads.append(route)
            return
        path = re.sub(r"^https?://[^/]+", "", request.url)
        self.asked.append((request.method, path, request.headers.get("range", "")))
        found = ADDRESS.fullmatch(path)
        if not found or found["id"] not in self.files:
            route.fulfill(status=404, json={"detail": "there is no such file"})
        elif found["part"] is None:
            route.fulfill(status=200, json=self._facts(found["id"]))
        elif found["part"] == "thumbnail":
            route.fulfill(status=200, body=picture(), content_type="image/png")
        else:
            self._send(route, request, found["id"], int(found["version"] or 1))

    def _send(self, route: Route, request: Request, name: str, version: int) -> None:
        content = self.files[name].contents[version - 1]
        wanted = re.fullmatch(r"bytes=0-(\d+)", request.headers.get("range", ""))
        if wanted:
            content = content[: int(wanted[1]) + 1]
        headers = {"Content-Type": self.files[name].mime_type}
        route.fulfill(status=206 if wanted else 200, body=content, headers=headers)

    def _facts(self, artifact_id: str) -> dict[str, Any]:
        file = self.files[artifact_id]
        thumbnail = f"/v1/artifacts/{artifact_id}/thumbnail?version=1"
        versions = [
            {
                "version": number,
                "type": "file",
                "mime_type": file.mime_type,
                "size_bytes": len(content),
                "role": "",
                "description": "",
                "created_at": "2026-01-01T12:00:00Z",
                "thumbnail": thumbnail if file.mime_type == "image/png" else None,
            }
            for number, content in enumerate(file.contents, 1)
        ]
        named = {"artifact_id": artifact_id, "name": file.name, "source": file.source}
        facts = {**versions[-1], **named, "versions": versions}
        return dict(json.loads(json.dumps(facts)))
