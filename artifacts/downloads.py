"""Answers with the bytes of a file, or with the part of it that is asked for.

Spec: issue "Artifacts" 4; RFC 9110 13, 14; RFC 6266.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Final, Self, cast

from django.core.files.storage import storages
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.http import http_date, parse_http_date_safe

from artifacts.delivery import (
    content_type_of,
    disposition_of,
    may_be_shown,
    policy_of,
)
from artifacts.models import ArtifactVersion
from artifacts.protocol.ranges import ByteRange, RangeUnsatisfiable, read_range
from cards.file_threads import run_with_files

logger = logging.getLogger(__name__)

#: Bytes that are read at a time, and so in memory for each download.
PIECE_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedFile:
    """A file and what an answer says of it.

    Attributes:
        name: Safe.
        mime_type: As its bytes tell.
        etag: Of these bytes, without quotes.
        is_saved: Whether it is to be saved although it may be shown.
        open: Opens it in the present thread; raises FileNotFoundError when it is gone.
    """

    name: str
    mime_type: str
    etag: str
    modified_at: datetime
    size_bytes: int
    is_saved: bool
    open: Callable[[], BinaryIO]


def content_of(version: ArtifactVersion, *, is_saved: bool) -> ServedFile:
    """Return the file of a version that comes with its artifact."""
    name = version.storage_name
    return ServedFile(
        name=version.artifact.name,
        mime_type=version.mime_type,
        etag=version.sha256,
        modified_at=version.created_at,
        size_bytes=version.size_bytes,
        is_saved=is_saved,
        open=lambda: cast("BinaryIO", storages["artifacts"].open(name)),
    )


class FilePieces:
    """The bytes of an open file from a place on, each piece read in another thread.

    Args:
        file: Is closed behind the last piece, when reading fails, or by `close`.
        first: Where to begin, counted from 0.
        size_bytes: How many; a file that ends before is an error, which breaks the
            answer off so that its client notices.
    """

    def __init__(self, file: BinaryIO, *, first: int, size_bytes: int) -> None:
        self._file = file
        self._first = first
        self._left = size_bytes

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        piece = await run_with_files(self._read)
        if not piece:
            raise StopAsyncIteration
        return piece

    def _read(self) -> bytes:
        try:
            piece = self._next_piece()
        except BaseException:
            self.close()
            raise
        if not piece:
            self.close()
        return piece

    def _next_piece(self) -> bytes:
        if not self._left:
            return b""
        if self._first:
            self._file.seek(self._first)
            self._first = 0
        piece = self._file.read(min(PIECE_BYTES, self._left))
        if not piece:
            raise OSError(f"a file is {self._left} bytes shorter than it was")
        self._left -= len(piece)
        return piece

    def close(self) -> None:
        """Close the file; Django calls it in a thread when the client is gone."""
        self._file.close()


def answer_with(request: HttpRequest, file: ServedFile) -> HttpResponseBase:
    """Return the answer to a GET or HEAD, in a thread that may wait for a disk.

    Raises:
        OSError: The file cannot be opened; FileNotFoundError when it is gone.
    """
    headers = _headers(file)
    etag, modified = headers["ETag"], int(file.modified_at.timestamp())
    fitting = HttpResponse(headers=headers)
    patch_vary_headers(fitting, ("Authorization", "Cookie"))
    answer = get_conditional_response(
        request, etag=etag, last_modified=modified, response=fitting
    )
    if answer is not fitting and answer is not None:
        return answer
    if request.method == "HEAD":
        # Without the file: what follows a head is nothing.
        fitting.headers["Content-Length"] = str(file.size_bytes)
        return fitting
    try:
        part = _part_wanted(request, file.size_bytes, etag=etag, modified=modified)
    except RangeUnsatisfiable:
        return _unsatisfiable(file.size_bytes)
    return _stream(file, part, dict(fitting.headers))


def _headers(file: ServedFile) -> dict[str, str]:
    is_saved = file.is_saved or not may_be_shown(file.mime_type)
    return {
        "Content-Type": content_type_of(file.mime_type),
        "Content-Disposition": disposition_of(file.name, is_saved=is_saved),
        "Content-Security-Policy": policy_of(file.mime_type),
        "Cross-Origin-Resource-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "Accept-Ranges": "bytes",
        "ETag": f'"{file.etag}"',
        "Last-Modified": http_date(file.modified_at.timestamp()),
        # Kept by the browser alone, and shown again only to whoever may still see it.
        "Cache-Control": "private, no-cache",
    }


def _part_wanted(
    request: HttpRequest, size_bytes: int, *, etag: str, modified: int
) -> ByteRange | None:
    known = request.headers.get("If-Range", etag)
    if known != etag and parse_http_date_safe(known) != modified:
        # What the client has a part of was another file.
        return None
    return read_range(request.headers.get("Range", ""), size_bytes)


def _unsatisfiable(size_bytes: int) -> HttpResponse:
    detail = f"the range lies outside of the file, which has {size_bytes} bytes"
    return JsonResponse(
        {"detail": detail},
        status=416,
        headers={"Content-Range": f"bytes */{size_bytes}"},
    )


def _stream(
    file: ServedFile, part: ByteRange | None, headers: dict[str, str]
) -> StreamingHttpResponse:
    whole = ByteRange(0, file.size_bytes - 1)
    sent = part or whole
    headers["Content-Length"] = str(sent.size_bytes)
    if part is not None:
        headers["Content-Range"] = f"bytes {part.first}-{part.last}/{file.size_bytes}"
    pieces = FilePieces(file.open(), first=sent.first, size_bytes=sent.size_bytes)
    # Read by `aiter`: a list of its pieces would be all of it in memory.
    return StreamingHttpResponse(
        pieces, status=200 if part is None else 206, headers=headers
    )
