"""Where a session's files are kept while it is owned.

| a crash after | leaves | then |
|---|---|---|
| the bytes are staged | a file without a row | `cleanup_orphans` removes it |
| the row is stored | a file without a card | it is listed, and the next one of its name is the next version |
| its card is logged | all of it | |

Spec: design.md 1; Ruling E21.
"""  # noqa: E501 - a table

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO, Final, TypeVar

from django.db import Error as DatabaseError

from cards.clock import Entropy, utc_now
from cards.database import WriteBatches, run_in_database
from cards.engine import EngineError
from cards.engine.artifact_desk import MadeFile
from cards.file_threads import run_with_files, run_with_source
from cards.ownership import NotTheOwner, write_as_owner
from cards.ports import (
    ArtifactRefused,
    ArtifactShelf,
    NewArtifact,
    StagedContent,
    StoredArtifact,
)
from cards.protocol.ids import mint_card_id
from cards.protocol.json_form import JSONValue
from cards.protocol.kinds import CardKind, ErrorType
from cards.protocol.mentions import KnownArtifacts

logger = logging.getLogger(__name__)

R = TypeVar("R")

NOT_STORED = "ARTIFACT_NOT_STORED"

#: What an engine gave to be read and is read at a time, in one session.
MAX_SOURCES: Final = 8


class SessionArtifacts:
    """The files of one session in this process; see `ArtifactDesk`.

    Args:
        fence: Gives the fence under which the session is held.
        known: Id and name of the files that it has, the newest last.
    """

    def __init__(
        self,
        session_pk: int,
        *,
        fence: Callable[[], int],
        shelf: ArtifactShelf,
        writes: WriteBatches,
        known: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._session_pk = session_pk
        self._fence = fence
        self._shelf = shelf
        self._writes = writes
        self._entropy = Entropy()
        self._order = asyncio.Lock()
        self._sources = asyncio.Semaphore(MAX_SOURCES)
        self._works: set[asyncio.Task[Any]] = set()
        #: Each is set when nobody wants its file any more.
        self._given_up: set[asyncio.Event] = set()
        #: What messages may mention. Spec: Ruling E21.
        self.known = KnownArtifacts()
        for artifact_id, name in known:
            self.known.learn(artifact_id, name)

    def learn_from(self, content: Sequence[Mapping[str, JSONValue]]) -> None:
        """Know the files that came with a user's message."""
        for block in content:
            source = block.get("source")
            if isinstance(source, dict) and source.get("type") == "artifact":
                self.known.learn(str(source["artifact_id"]), str(source["name"]))

    async def look(self) -> None:
        """Know the files that were brought by others meanwhile, such as uploads.

        Raises:
            django.db.Error: The database cannot be read.
        """
        stored = await run_in_database(self._shelf.known, self._session_pk)
        for artifact_id, name in stored:
            if not self.known.knows(artifact_id):
                self.known.learn(artifact_id, name)

    async def keep(
        self, file: MadeFile, show: Callable[[StoredArtifact, bytes], R]
    ) -> R:
        """See `ArtifactDesk.keep`."""
        is_given_up = asyncio.Event()
        self._given_up.add(is_given_up)
        work = self._begin(self._keep(file, show, is_given_up))
        work.add_done_callback(lambda _: self._given_up.discard(is_given_up))
        try:
            # What is stored is shown, although whoever waits is cancelled.
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            is_given_up.set()
            raise

    async def open(self, artifact_id: str, version: int) -> BinaryIO:
        """Open a version of a file of the session, for reading from a thread.

        Raises:
            FileNotFoundError: There is none any more.
            django.db.Error: The database cannot be read.
        """
        return await run_in_database(
            self._shelf.read, self._session_pk, artifact_id, version
        )

    def _begin(self, work: Coroutine[None, None, R]) -> "asyncio.Task[R]":
        task = asyncio.create_task(work)
        self._works.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, work: "asyncio.Task[Any]") -> None:
        self._works.discard(work)
        if not work.cancelled() and (error := work.exception()) is not None:
            # Whoever waits gets it, too, unless it was cancelled.
            logger.info(
                "a file of session %s was not kept: %r", self._session_pk, error
            )

    async def _stage(
        self, file: MadeFile, name: str, is_given_up: asyncio.Event
    ) -> StagedContent:
        stage = partial(
            self._shelf.stage,
            _while_wanted(file, is_given_up),
            name=name,
            claimed_mime_type=file.mime_type,
        )
        try:
            if file.may_wait:
                return await self._stage_source(stage, is_given_up)
            return await run_with_files(stage)
        except ArtifactRefused as refusal:
            raise _not_stored(refusal) from refusal

    async def _stage_source(
        self, stage: Callable[[], StagedContent], is_given_up: asyncio.Event
    ) -> StagedContent:
        """Stage what may never end, and wait for it only as long as it is wanted."""
        reading = asyncio.create_task(self._read_source(stage))
        ending = asyncio.create_task(is_given_up.wait())
        await asyncio.wait({reading, ending}, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if reading.done():
            return reading.result()
        reading.add_done_callback(self._discard_late)
        raise _turn_ended()

    async def _read_source(self, stage: Callable[[], StagedContent]) -> StagedContent:
        async with self._sources:
            return await run_with_source(stage)

    def _discard_late(self, reading: "asyncio.Task[StagedContent]") -> None:
        """Remove what was staged when nobody wanted it any more."""
        if not reading.cancelled() and reading.exception() is None:
            self._begin(run_with_files(self._shelf.discard, reading.result()))

    async def _keep(
        self,
        file: MadeFile,
        show: Callable[[StoredArtifact, bytes], R],
        is_given_up: asyncio.Event,
    ) -> R:
        name = self._shelf.safe_name(file.name)
        content = await self._stage(file, name, is_given_up)
        new = NewArtifact(
            artifact_id=mint_card_id(CardKind.ARTIFACT, self._entropy.hex),
            session_pk=self._session_pk,
            name=name,
            content=content,
            is_version=True,
            source="assistant",
            type=file.type,
            role=file.role,
            description=file.description,
        )
        # One after the other, so that the cards come in the order of the versions.
        async with self._order:
            if is_given_up.is_set() or not file.is_wanted():
                await run_with_files(self._shelf.discard, content)
                raise _turn_ended()
            stored = await self._store(new)
            self.known.learn(stored.artifact_id, stored.name)
            return show(stored, content.icon)

    async def _store(self, new: NewArtifact) -> StoredArtifact:
        now = utc_now()
        try:
            return await self._writes.run(
                self._session_pk,
                write_as_owner,
                self._session_pk,
                self._fence(),
                lambda: self._shelf.keep(new, now),
            )
        except NotTheOwner as error:
            await run_with_files(self._shelf.discard, new.content)
            raise EngineError(
                ErrorType.DEPENDENCY_FAIL, str(error), NOT_STORED
            ) from error
        except DatabaseError as error:
            # The row may be there although its commit was not confirmed, so the
            # bytes stay; without a row, `cleanup_orphans` removes them.
            logger.warning("a file was not stored: %s", error)
            raise EngineError(
                ErrorType.DEPENDENCY_FAIL,
                "the database cannot be written",
                NOT_STORED,
            ) from error

    async def close(self) -> None:
        """Give up what is still read, and wait for what is done in the background."""
        for is_given_up in self._given_up:
            is_given_up.set()
        await asyncio.gather(*self._works, return_exceptions=True)


def _while_wanted(file: MadeFile, is_given_up: asyncio.Event) -> Iterator[bytes]:
    """Return the bytes of a file as long as somebody wants it; read in a thread.

    Raises:
        EngineError: Nobody does any more.
    """
    pieces = iter(file.pieces)
    while file.is_wanted() and not is_given_up.is_set():
        piece = next(pieces, None)
        if piece is None:
            return
        yield piece
    raise _turn_ended()


def _turn_ended() -> EngineError:
    return EngineError(ErrorType.USER_ABORTED, "the turn has ended")


def _not_stored(refusal: ArtifactRefused) -> EngineError:
    if refusal.is_transient:
        return EngineError(
            ErrorType.DEPENDENCY_FAIL,
            f"{refusal} ({refusal.code})",
            NOT_STORED,
            retryable=True,
            user_message="A file could not be saved.",
        )
    return EngineError(
        ErrorType.INVALID_INPUT,
        str(refusal),
        refusal.code,
        user_message="A file was too large to be kept.",
    )
