"""A form with a file in it, read bit by bit, and the file kept.

Nothing is read of it before its sender may own sessions; the file goes from the form
to where the storage takes it, never through memory as a whole. What breaks on the way
leaves nothing behind.

Spec: interfaces.md, REST; issue "Artifacts" 4.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from django.core.exceptions import (
    RequestDataTooBig,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.core.files.uploadhandler import FileUploadHandler, SkipFile
from django.db import transaction
from django.http import HttpRequest, QueryDict
from django.http.multipartparser import (
    InputStreamExhausted,
    MultiPartParser,
    MultiPartParserError,
)

from artifacts.protocol.names import safe_name
from artifacts.shelf import StoredArtifactShelf
from artifacts.staging import IncomingFile
from cards.ownership import lock_session
from cards.ports import NewArtifact, StoredArtifact
from cards.protocol.errors import refuse
from cards.protocol.ids import mint_card_id
from cards.protocol.kinds import CardKind

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile

#: Of the fields of the form.
FILE_FIELD: Final = "file"
SESSION_FIELD: Final = "session_id"

INVALID_FORM: Final = "INVALID_FORM"
FIELDS_TOO_LARGE: Final = "BODY_TOO_LARGE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that came whole, and where it is to go.

    Attributes:
        session_id: As it was given.
        name: Safe.
        claimed_mime_type: Whatever the client says.
    """

    session_id: str
    name: str
    claimed_mime_type: str
    incoming: IncomingFile


class _FileWriter(FileUploadHandler):
    """Writes the one file of a form to where the storage takes it."""

    def __init__(self, shelf: StoredArtifactShelf) -> None:
        super().__init__()
        self._shelf = shelf
        self.incoming: IncomingFile | None = None
        self.is_whole = False

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Begin; files under other names are passed by.

        Raises:
            RemoteProtocolError: There was one before.
            ArtifactRefused: The storage cannot take any.
        """
        if args[0] != FILE_FIELD:
            raise SkipFile
        if self.incoming is not None:
            raise _refuse_field(FILE_FIELD, "several files came", "one file")
        super().new_file(*args, **kwargs)
        self.incoming = self._shelf.begin()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Write a piece.

        Raises:
            ArtifactRefused: It is too large, or the disk cannot take it.
        """
        if self.incoming is not None:
            self.incoming.write(raw_data)

    def file_complete(self, file_size: int) -> "UploadedFile | None":
        """Know that what follows the file came, too."""
        self.is_whole = True
        return None


class _FormParser(MultiPartParser):
    """Django's own, which would leave a file out if its name is not to its liking."""

    def sanitize_file_name(self, file_name: str) -> str:
        """Return a name that is safe and never empty."""
        return safe_name(file_name)


@contextmanager
def read_upload(request: HttpRequest, shelf: StoredArtifactShelf) -> Iterator[Upload]:
    """Give the upload in a form; its file is gone afterwards unless it was taken.

    Raises:
        RemoteProtocolError: The form is broken, or a field of it is wrong.
        ArtifactRefused: The file is over the cap, or the disk cannot take it.
    """
    writer = _FileWriter(shelf)
    try:
        fields = _read_form(request, writer)
        yield _upload_of(fields, writer)
    finally:
        if writer.incoming is not None:
            writer.incoming.close()


def _read_form(request: HttpRequest, writer: _FileWriter) -> QueryDict:
    # Django takes a body of no stated length for empty; this one has been received,
    # however long it is, and ends where it ends.
    length = request.META.get("CONTENT_LENGTH") or "1"
    meta = request.META | {"CONTENT_LENGTH": length}
    try:
        stream = cast("BinaryIO", request)
        parser = _FormParser(meta, stream, [writer], request.encoding)
        fields, _ = parser.parse()
    except RequestDataTooBig as error:
        raise refuse(
            "the fields beside the file are too large",
            code=FIELDS_TOO_LARGE,
            allowed="a session id and one file",
        ) from error
    except (
        InputStreamExhausted,
        # An encoding that there is not.
        LookupError,
        MultiPartParserError,
        TooManyFieldsSent,
        TooManyFilesSent,
    ) as error:
        raise refuse(
            f"the form cannot be read: {error}",
            code=INVALID_FORM,
            allowed=f"multipart/form-data with {SESSION_FIELD} and {FILE_FIELD}",
        ) from error
    return fields


def _upload_of(fields: QueryDict, writer: _FileWriter) -> Upload:
    if writer.incoming is None:
        raise _refuse_field(
            FILE_FIELD, "no file came", "one file, in a part that has a file name"
        )
    if not writer.is_whole:
        raise refuse(
            "the form ends within the file",
            code=INVALID_FORM,
            field=FILE_FIELD,
            allowed="a form with its last boundary",
        )
    session_ids = fields.getlist(SESSION_FIELD)
    if len(session_ids) != 1:
        raise _refuse_field(
            SESSION_FIELD, f"{len(session_ids)} of them came", "one session id"
        )
    return Upload(
        session_id=session_ids[0],
        name=writer.file_name or safe_name(""),
        claimed_mime_type=writer.content_type or "",
        incoming=writer.incoming,
    )


def _refuse_field(field: str, what: str, allowed: str) -> Exception:
    return refuse(
        f"{field}: {what}", code="INVALID_FIELD", field=field, allowed=allowed
    )


def keep_upload(
    shelf: StoredArtifactShelf, upload: Upload, *, session_pk: int, now: datetime
) -> StoredArtifact:
    """Keep an uploaded file as an artifact of its own; open a transaction.

    Raises:
        ArtifactRefused: The storage cannot take it; nothing is left of it.
        ObjectDoesNotExist: The session is gone.
        django.db.Error: Nothing is stored, or, if the commit failed, perhaps it is;
            the clean-up finds out.
    """
    content = shelf.stage_incoming(
        upload.incoming,
        name=upload.name,
        claimed_mime_type=upload.claimed_mime_type,
    )
    new = NewArtifact(
        artifact_id=mint_card_id(CardKind.ARTIFACT, secrets.token_hex),
        session_pk=session_pk,
        name=upload.name,
        content=content,
        is_version=False,
        source="user",
    )
    with transaction.atomic():
        try:
            lock_session(session_pk)
            return shelf.keep(new, now)
        except BaseException:
            # Surely not stored. After a commit that failed nobody knows.
            shelf.discard(content)
            raise
