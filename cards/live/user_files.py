"""The files of user messages: from what a client sends to artifacts of the session.

| a crash after | leaves | then |
|---|---|---|
| the bytes are staged | files without rows | `cleanup_orphans` removes them |
| the message is stored | their rows, in the same transaction | the turn is run |

Nothing is stored of a message that is refused.

Spec: EMIT 9; Rulings E8, E22, E28; design.md 1.
"""

from collections.abc import (
    AsyncIterator,
    Generator,
    Iterator,
    Sequence,
)
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import Any, Final

from msgspec import UNSET

from cards.clock import utc_now
from cards.database import run_in_database
from cards.file_threads import run_with_files
from cards.live.new_turns import ReceivedMessage, accepted_message
from cards.local_paths import LocalPaths, PathRefused
from cards.ports import ArtifactRefused, ArtifactShelf, NewArtifact, StagedContent
from cards.protocol.client_messages import UserMessage, blocks_of, has_files
from cards.protocol.errors import RemoteProtocolError, make_error, refuse
from cards.protocol.json_form import JSONValue
from cards.protocol.kinds import ErrorType
from cards.protocol.user_blocks import (
    ContentBlock,
    Source,
    StoredSource,
    artifact_id_of,
    decode_inline,
    field_of,
    fingerprint_of,
    is_file,
    stored_file_block,
    thumbnail_path,
    wanted_name,
)
from cards.queries import is_accepted

#: Bytes that are read of a file at a time.
_PIECE_BYTES: Final = 256 * 1024

#: By the index of the block; as they are stored with the turn.
_StoredBlocks = dict[int, dict[str, JSONValue]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _StagedFile:
    """A file whose bytes are in the storage; its row is not stored yet."""

    index: int
    type: str
    artifact_id: str
    name: str
    content: StagedContent

    def block(self) -> dict[str, JSONValue]:
        return _stored_block(
            self.type,
            artifact_id=self.artifact_id,
            version=1,
            name=self.name,
            mime_type=self.content.mime_type,
            size_bytes=self.content.size_bytes,
            has_thumbnail=bool(self.content.thumbnail_name),
        )


class _Delivery:
    """Staged files that are either kept, all of them, or not."""

    def __init__(self, shelf: ArtifactShelf, files: Sequence[_StagedFile]) -> None:
        self._shelf = shelf
        self._files = files
        self._is_kept = False

    def keep(self, session_pk: int) -> None:
        """Store their rows, in the caller's transaction."""
        now = utc_now()
        for file in self._files:
            new = NewArtifact(
                artifact_id=file.artifact_id,
                session_pk=session_pk,
                name=file.name,
                content=file.content,
                is_version=False,
                source="user",
            )
            self._shelf.keep(new, now)
        # From here on they may be kept although nobody confirms the commit; without
        # it, `cleanup_orphans` removes them.
        self._is_kept = True

    def discard_unkept(self) -> None:
        """Remove them, unless they were kept."""
        if not self._is_kept:
            for file in self._files:
                self._shelf.discard(file.content)


class UserFiles:
    """Takes in the files of user messages.

    Args:
        shelf: Keeps them.
        local_paths: Where those may be that are named by their path.
    """

    def __init__(self, shelf: ArtifactShelf, local_paths: LocalPaths) -> None:
        self._shelf = shelf
        self._local_paths = local_paths

    @asynccontextmanager
    async def received(
        self,
        message: UserMessage,
        *,
        session_id: str,
        session_pk: int | None,
        event_id: str,
    ) -> AsyncIterator[ReceivedMessage]:
        """Give a message with its files; those that are not kept within are discarded.

        Args:
            session_pk: None when the session has no row yet.
            event_id: Of the message, given or minted.

        Raises:
            RemoteProtocolError: A file is refused, and with it the message.
            django.db.Error: The database cannot be read.
        """
        if not has_files(message):
            yield ReceivedMessage(event_id=event_id, accepted=accepted_message(message))
            return
        blocks = blocks_of(message)
        fingerprint = await run_with_files(
            fingerprint_of, blocks, message.coordinator_mode, message.plan_confirmation
        )
        if session_pk is not None and await run_in_database(
            is_accepted, session_pk, event_id
        ):
            # Its files may be gone from where they were, and are not needed.
            yield ReceivedMessage(
                event_id=event_id,
                accepted=accepted_message(message, fingerprint=fingerprint),
                keep_files=_not_again,
            )
            return
        known = await run_in_database(self._find_all, session_pk, blocks)
        staged = await run_with_files(self._stage_all, blocks, session_id, event_id)
        delivery = _Delivery(self._shelf, staged)
        try:
            yield ReceivedMessage(
                event_id=event_id,
                accepted=accepted_message(
                    message,
                    files=known | {file.index: file.block() for file in staged},
                    fingerprint=fingerprint,
                ),
                keep_files=delivery.keep,
            )
        # Not of a cancelled one, which another thread may be about to keep.
        except Exception:
            await run_with_files(delivery.discard_unkept)
            raise
        await run_with_files(delivery.discard_unkept)

    # What is in the session already.

    def _find_all(
        self, session_pk: int | None, blocks: Sequence[ContentBlock]
    ) -> _StoredBlocks:
        return {
            index: self._find(session_pk, blocks[index].type, source, field_of(index))
            for index, source in _sources(blocks)
            if source.type == "artifact"
        }

    def _find(
        self, session_pk: int | None, block_type: str, source: Source, field: str
    ) -> dict[str, JSONValue]:
        found = session_pk is not None and self._shelf.find(
            session_pk, source.artifact_id or "", source.version
        )
        if not found:
            # Those of others and of other sessions are unknown as well.
            raise refuse(
                "there is no such artifact, or no such version, in this session",
                code="UNKNOWN_ARTIFACT",
                field=f"{field}.source.artifact_id",
                allowed="the id of an artifact of this session, such as an upload",
                user_message="A file of this message is not in this conversation.",
            )
        return _stored_block(
            block_type,
            artifact_id=found.artifact_id,
            version=found.version,
            name=found.name,
            mime_type=found.mime_type,
            size_bytes=found.size_bytes,
            has_thumbnail=found.has_thumbnail,
        )

    # What is not.

    def _stage_all(
        self, blocks: Sequence[ContentBlock], session_id: str, event_id: str
    ) -> list[_StagedFile]:
        # All of them can be read before the first one is written.
        inline = {
            index: decode_inline(source.data or "", field_of(index))
            for index, source in _sources(blocks)
            if source.type == "base64"
        }
        staged: list[_StagedFile] = []
        delivery = _Delivery(self._shelf, staged)
        try:
            for index, source in _sources(blocks):
                if source.type == "artifact":
                    continue
                name = self._shelf.safe_name(wanted_name(blocks[index], index))
                content = self._stage(index, source, inline.get(index), name)
                staged.append(
                    _StagedFile(
                        index=index,
                        type=blocks[index].type,
                        artifact_id=artifact_id_of(
                            session_id, event_id, index, content.sha256
                        ),
                        name=name,
                        content=content,
                    )
                )
        except BaseException:
            delivery.discard_unkept()
            raise
        return staged

    def _stage(
        self, index: int, source: Source, inline: bytes | None, name: str
    ) -> StagedContent:
        field = f"{field_of(index)}.source.{'path' if inline is None else 'data'}"
        try:
            with closing(self._pieces(source, inline)) as pieces:
                return self._shelf.stage(
                    pieces, name=name, claimed_mime_type=source.media_type or ""
                )
        except PathRefused as refusal:
            raise refuse(
                f"{field}: {refusal}",
                code=refusal.code,
                field=field,
                allowed="the path of a regular file in a folder that the server's"
                " operator allows, or an upload",
                user_message="The server cannot read a file of this message.",
            ) from refusal
        except ArtifactRefused as refusal:
            raise _not_stored(refusal, field) from refusal

    def _pieces(
        self, source: Source, inline: bytes | None
    ) -> Generator[bytes, None, None]:
        if inline is not None:
            yield inline
            return
        with self._local_paths.open(source.path or "") as file:
            while piece := file.read(_PIECE_BYTES):
                yield piece


def _sources(blocks: Sequence[ContentBlock]) -> Iterator[tuple[int, Source]]:
    for index, block in enumerate(blocks):
        if is_file(block) and block.source is not None:
            yield index, block.source


def _stored_block(
    block_type: str, *, has_thumbnail: bool, **known: Any
) -> dict[str, JSONValue]:
    path = thumbnail_path(known["artifact_id"], known["version"])
    thumbnail = path if has_thumbnail else UNSET
    return stored_file_block(block_type, StoredSource(thumbnail=thumbnail, **known))


def _not_again(session_pk: int) -> None:
    """Store no message whose files were not taken in."""
    raise RuntimeError(f"an accepted message of session {session_pk} is gone")


def _not_stored(refusal: ArtifactRefused, field: str) -> RemoteProtocolError:
    if not refusal.is_transient:
        return refuse(
            f"{field}: {refusal}",
            code="PAYLOAD_TOO_LARGE",
            field=field,
            allowed="a smaller file",
            user_message="A file of this message is too large.",
        )
    return RemoteProtocolError(
        make_error(
            ErrorType.DEPENDENCY_FAIL,
            f"{field}: {refusal}; nothing of the message was stored",
            code="ARTIFACT_NOT_STORED",
            user_message="A file of this message could not be saved; please try again.",
            details={"field": field, "reason": refusal.code},
        )
    )
