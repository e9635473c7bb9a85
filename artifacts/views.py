"""REST: bringing files, and what is told and given of those that are kept.

Spec: interfaces.md, REST; Ruling E27; docs/artifacts.md.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any, BinaryIO, Final, TypeVar, cast

import msgspec
from django.core.exceptions import ObjectDoesNotExist
from django.core.files.storage import storages
from django.http.response import HttpResponseBase
from django.urls import reverse
from rest_framework.exceptions import (
    APIException,
    NotFound,
    UnsupportedMediaType,
    ValidationError,
)
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from artifacts.downloads import ServedFile, answer_with, content_of
from artifacts.models import ArtifactVersion
from artifacts.queries import find_version, newest_versions, versions_of
from artifacts.serializers import artifact_json, artifact_with_versions
from artifacts.shelf import StoredArtifactShelf
from artifacts.staging import STORAGE_FULL, TOO_LARGE
from artifacts.thumbnails import MIME_TYPE as THUMBNAIL_TYPE
from artifacts.uploads import (
    FIELDS_TOO_LARGE,
    SESSION_FIELD,
    keep_upload,
    read_upload,
)
from cards.clock import utc_now
from cards.paging import next_url, read_cursor
from cards.permissions import OwnsSessions, principal_of
from cards.ports import ArtifactRefused
from cards.protocol.errors import ErrorInfo, RemoteProtocolError, make_error
from cards.protocol.ids import is_session_id
from cards.protocol.kinds import ErrorType
from cards.queries import find_own_session

logger = logging.getLogger(__name__)

R = TypeVar("R")

#: Artifacts on one page of the list.
PAGE_ARTIFACTS: Final = 50

_CURSOR_SALT: Final = "artifacts.list"

_FORM_TYPE: Final = "multipart/form-data"

#: What stands in the way of a file that the storage does not take.
_STATUS_OF_CODE: Final = {
    TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    FIELDS_TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    STORAGE_FULL: HTTPStatus.INSUFFICIENT_STORAGE,
}

_SENTENCES: Final = {
    TOO_LARGE: "This file is too large.",
    STORAGE_FULL: "The server has no room left for files.",
}

_CANNOT_BE_STORED: Final = "The server cannot store files right now."


class AnyType(BaseContentNegotiation):
    """Lets a client accept what it likes: a file is of the type that it is."""

    def select_parser(
        self, request: Request, parsers: Iterable[BaseParser]
    ) -> BaseParser | None:
        """Return the only one, which nobody needs."""
        return next(iter(parsers), None)

    def select_renderer(
        self,
        request: Request,
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        """Return the one for errors."""
        renderer = next(iter(renderers))
        return renderer, renderer.media_type or ""


class ArtifactList(APIView):
    """The artifacts of one's session, and where files are brought.

    Attributes:
        shelf: Keeps what is brought.
    """

    permission_classes = (OwnsSessions,)
    shelf: StoredArtifactShelf | None = None

    def get(self, request: Request) -> Response:
        """Return `{results, next, previous}`, newest first; `next` None at the end."""
        session_id = request.query_params.get(SESSION_FIELD)
        if session_id is None:
            raise ValidationError(
                {SESSION_FIELD: "missing; allowed: the id of one of your sessions"}
            )
        before = read_cursor(request, salt=_CURSOR_SALT)
        found = newest_versions(
            _session_pk(request, session_id), before=before, limit=PAGE_ARTIFACTS + 1
        )
        page = found[:PAGE_ARTIFACTS]
        last = page[-1].artifact if len(found) > len(page) else None
        return Response(
            {
                "results": [artifact_json(each.artifact, each) for each in page],
                "next": next_url(request, last.created_at, last.pk, salt=_CURSOR_SALT)
                if last
                else None,
                "previous": None,
            }
        )

    def post(self, request: Request) -> Response:
        """Keep a file: 201 with the artifact, which is always one of its own.

        413 over the cap, 507 without room, 503 when the storage fails, 404 for a
        session that is not one's own, 400 for a form that does not fit, 415 for none.
        """
        if not request.content_type.lower().startswith(_FORM_TYPE):
            raise UnsupportedMediaType(request.content_type)
        try:
            artifact_id = self._keep(request)
        except RemoteProtocolError as refusal:
            return _error(refusal.error, HTTPStatus.BAD_REQUEST)
        except ArtifactRefused as refusal:
            return _error(_error_of(refusal), HTTPStatus.SERVICE_UNAVAILABLE)
        except ObjectDoesNotExist as error:
            raise NotFound("there is no such session") from error
        artifact = _own_artifact(request, artifact_id)
        location = reverse("artifact", args=[artifact_id])
        return Response(artifact, status=201, headers={"Location": location})

    def _keep(self, request: Request) -> str:
        if self.shelf is None:
            raise RuntimeError("the routes come with a shelf")
        with read_upload(request._request, self.shelf) as upload:
            session_pk = _session_pk(request, upload.session_id)
            stored = keep_upload(
                self.shelf, upload, session_pk=session_pk, now=utc_now()
            )
        return stored.artifact_id


class ArtifactDetail(APIView):
    """One artifact of one's own."""

    permission_classes = (OwnsSessions,)

    def get(self, request: Request, artifact_id: str) -> Response:
        """Return the artifact with its versions, oldest first."""
        return Response(_own_artifact(request, artifact_id))


class ArtifactContent(APIView):
    """The bytes of a version."""

    permission_classes = (OwnsSessions,)
    content_negotiation_class = AnyType

    def get(self, request: Request, artifact_id: str) -> HttpResponseBase:
        """Return them, or the part that is asked for.

        `version` is a number, the newest without it; `download=1` has a browser save
        what it may show as well.
        """
        is_saved = _choice(request, "download", {"0": False, "1": True})
        version = _own_version(request, artifact_id)
        return _answer(request, content_of(version, is_saved=is_saved))


class ArtifactThumbnail(APIView):
    """The small picture of a version."""

    permission_classes = (OwnsSessions,)
    content_negotiation_class = AnyType

    def get(self, request: Request, artifact_id: str) -> HttpResponseBase:
        """Return it as WebP; `version` as for the content."""
        version = _own_version(request, artifact_id)
        name = version.thumbnail_name
        if not name:
            raise NotFound("there is no small picture of it")
        file = ServedFile(
            name="thumbnail.webp",
            mime_type=THUMBNAIL_TYPE,
            etag=f"{version.sha256}-thumbnail",
            modified_at=version.created_at,
            size_bytes=_of_storage(lambda: storages["artifacts"].size(name)),
            is_saved=False,
            open=lambda: cast("BinaryIO", storages["artifacts"].open(name)),
        )
        return _answer(request, file)


def _own_artifact(request: Request, artifact_id: str) -> dict[str, Any]:
    versions = versions_of(artifact_id, session__principal=principal_of(request))
    if not versions:
        raise NotFound("there is no such artifact")
    return artifact_with_versions(versions[-1].artifact, versions)


def _own_version(request: Request, artifact_id: str) -> ArtifactVersion:
    number = request.query_params.get("version")
    found = find_version(
        artifact_id,
        None if number is None else _version_number(number),
        session__principal=principal_of(request),
    )
    if found is None:
        raise NotFound("there is no such artifact, or no such version of it")
    return found


def _version_number(text: str) -> int:
    # isdecimal and a bound on the length: int() takes signs, blanks and megabytes.
    if text.isascii() and text.isdecimal() and len(text) <= 20 and int(text) > 0:
        return int(text)
    raise ValidationError({"version": "not valid; allowed: a whole number from 1"})


def _choice(request: Request, name: str, meanings: Mapping[str, bool]) -> bool:
    given = request.query_params.get(name, "0")
    if given not in meanings:
        raise ValidationError(
            {name: f"not valid; allowed: {' or '.join(sorted(meanings))}"}
        )
    return meanings[given]


def _session_pk(request: Request, session_id: str) -> int:
    principal = principal_of(request)
    record = None
    # PostgreSQL fails on a NUL, which no session id has.
    if principal is not None and is_session_id(session_id):
        record = find_own_session(session_id, principal)
    if record is None:
        raise NotFound("there is no such session")
    return record.pk


class StorageFailed(APIException):
    """The storage is broken, or out of reach."""

    status_code = HTTPStatus.SERVICE_UNAVAILABLE
    default_detail = "the server cannot read this file right now"


def _answer(request: Request, file: ServedFile) -> HttpResponseBase:
    # The storage alone may fail so; what else does is a bug.
    guarded = replace(file, open=partial(_of_storage, file.open))
    return answer_with(request._request, guarded)


def _of_storage(read: Callable[[], R]) -> R:
    """Return what is read of the storage.

    Raises:
        NotFound: It has no such file, as while an artifact is being removed.
        StorageFailed: It cannot tell.
    """
    try:
        return read()
    except FileNotFoundError as error:
        logger.warning("an artifact has no file: %s", error)
        raise NotFound("its content is gone") from error
    # A storage may be anybody's; what its network raises is no OSError.
    except Exception as error:
        logger.exception("the storage of artifacts failed")
        raise StorageFailed from error


def _error_of(refusal: ArtifactRefused) -> ErrorInfo:
    is_ours = refusal.is_transient
    return make_error(
        ErrorType.DEPENDENCY_FAIL if is_ours else ErrorType.INVALID_INPUT,
        str(refusal),
        code=refusal.code,
        user_message=_SENTENCES.get(refusal.code, _CANNOT_BE_STORED),
        retryable=is_ours,
        details=None if is_ours else {"field": "file"},
    )


def _error(error: ErrorInfo, status: HTTPStatus) -> Response:
    return Response(
        {"error": msgspec.to_builtins(error)},
        status=_STATUS_OF_CODE.get(str(error.code), status),
    )
