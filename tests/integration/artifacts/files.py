"""Files in sessions, and what asks for them, for tests of REST and the admin."""

import secrets
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.files.storage import FileSystemStorage, storages
from django.db import transaction
from django.test import AsyncClient, Client

from artifacts.models import ArtifactVersion
from cards.access_tokens import issue_token
from cards.clock import utc_now
from cards.models import Session
from cards.ports import NewArtifact
from config.wiring import artifact_shelf

#: A picture of one red dot.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108020000009077"
    "53de0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)

HTML = b"<!doctype html><script>alert(1)</script>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def keep(
    session: Session,
    name: str = "report.md",
    content: bytes = b"# Report\n",
    *,
    artifact_id: str | None = None,
    **fields: Any,
) -> ArtifactVersion:
    """Keep a file in a session, as an engine does."""
    shelf = artifact_shelf()
    staged = shelf.stage([content], name=name)
    new = NewArtifact(
        **{
            "artifact_id": artifact_id or f"art_{secrets.token_hex(8)}",
            "session_pk": session.pk,
            "name": shelf.safe_name(name),
            "content": staged,
            "is_version": True,
            "source": "assistant",
            **fields,
        }
    )
    with transaction.atomic():
        stored = shelf.keep(new, utc_now())
    return ArtifactVersion.objects.select_related("artifact").get(
        artifact__artifact_id=stored.artifact_id, version=stored.version
    )


def authorization_of(user: User) -> str:
    return f"Bearer {issue_token(user, secrets.token_hex(16), utc_now())}"


def client_of(user: User) -> Client:
    return Client(headers={"Authorization": authorization_of(user)})


class Reader(AsyncClient):
    """A client that takes answers as an ASGI server gives them."""

    def __init__(self, authorization: str) -> None:
        super().__init__()
        self._authorization = authorization

    def generic(self, *args: Any, **options: Any) -> Any:
        """Ask, with the token; Django's own forgets headers of all requests."""
        token = {"Authorization": self._authorization}
        options["headers"] = token | (options.get("headers") or {})
        return super().generic(*args, **options)


def reader_of(user: User) -> Reader:
    return Reader(authorization_of(user))


def storage() -> FileSystemStorage:
    found = storages["artifacts"]
    assert isinstance(found, FileSystemStorage)
    return found


def files_in_storage() -> set[str]:
    """Return the names of all files that the storage has."""
    names: set[str] = set()
    for folder in storage().listdir("")[0] if storage().exists("") else []:
        names |= {f"{folder}/{name}" for name in storage().listdir(folder)[1]}
    return names


@dataclass(frozen=True)
class Fetched:
    """An answer with all of its body."""

    status: int
    headers: dict[str, str]
    body: bytes


def fetch(reader: Reader, address: str, method: str = "GET", **headers: str) -> Fetched:
    """Return the answer to a request as an ASGI server gives it."""

    async def ask() -> Fetched:
        answer = await reader.generic(
            method,
            address,
            headers={k.replace("_", "-"): v for k, v in headers.items()},
        )
        if answer.streaming:
            body = b"".join([piece async for piece in answer.streaming_content])
        else:
            body = answer.content
        answer.close()
        return Fetched(answer.status_code, dict(answer.headers), body)

    # Views then run in this thread, and so on this connection to the database.
    return async_to_sync(ask)()
