"""What the user said: words, and files that are read by one interface.

Spec: engine-api.md, Turn; EMIT 9; Rulings E15, E22, E28.
"""

from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass
from typing import BinaryIO, Final, Literal

from cards.engine.artifacts import Artifact
from cards.engine.errors import EngineError
from cards.file_threads import run_with_files
from cards.protocol.json_form import JSONValue
from cards.protocol.kinds import ErrorType

#: Bytes of a file that are read at a time.
CHUNK_BYTES: Final = 256 * 1024

#: Bytes of the largest file that is read at once, unless its reader says otherwise.
MAX_READ_BYTES: Final = 64 * 1024 * 1024


class _Block(Mapping[str, JSONValue]):
    """One piece of the user's message; the mapping is the block as it is logged."""

    def __init__(self, logged: Mapping[str, JSONValue]) -> None:
        self._logged = logged

    def __getitem__(self, key: str) -> JSONValue:
        return self._logged[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._logged)

    def __len__(self) -> int:
        return len(self._logged)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._logged!r})"

    @property
    def type(self) -> str:
        """The word on the wire: `text`, `image`, `file` or `pdf`."""
        return str(self._logged["type"])


class TextBlock(_Block):
    """Words."""

    @property
    def text(self) -> str:
        """The words; "" for none."""
        return str(self._logged.get("text") or "")


class FileBlock(_Block):
    """A file, wherever its bytes came from: an artifact of the session now.

    `type` is what the user's client called it; `artifact.mime_type` what its bytes
    are.

    Args:
        artifact: What is known of it.
        open_file: Opens its bytes.
    """

    def __init__(
        self,
        logged: Mapping[str, JSONValue],
        *,
        artifact: Artifact,
        open_file: Callable[[], Awaitable[BinaryIO]],
    ) -> None:
        super().__init__(logged)
        self.artifact = artifact
        self._open_file = open_file

    @property
    def name(self) -> str:
        """Its name, safe to be shown, stored and linked."""
        return self.artifact.name

    @property
    def mime_type(self) -> str:
        """As its bytes tell."""
        return self.artifact.mime_type

    @property
    def size_bytes(self) -> int:
        """How much there is to read."""
        return self.artifact.size_bytes

    async def read(self, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """Return all of its bytes.

        Args:
            max_bytes: What the caller has room for.

        Raises:
            EngineError: It is larger (`FILE_TOO_LARGE`), or cannot be read, see
                `chunks`.
        """
        if self.size_bytes > max_bytes:
            raise EngineError(
                ErrorType.INVALID_INPUT,
                f"{self.name} has {self.size_bytes} bytes; allowed: {max_bytes}",
                "FILE_TOO_LARGE",
                user_message="A file is too large for this.",
            )
        async with aclosing(self.chunks()) as chunks:
            return b"".join([chunk async for chunk in chunks])

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Give its bytes in order, at most 256 KiB at a time.

        The event loop is not held up; close the iterator, or read to the end.

        Raises:
            EngineError: It was deleted meanwhile (`FILE_GONE`), or cannot be read
                now (`FILE_NOT_READABLE`, retryable).
        """
        try:
            file = await self._open_file()
            try:
                while chunk := await run_with_files(file.read, CHUNK_BYTES):
                    yield chunk
            finally:
                await run_with_files(file.close)
        except FileNotFoundError as error:
            raise EngineError(
                ErrorType.DEPENDENCY_FAIL,
                f"the file {self.name} is gone",
                "FILE_GONE",
                retryable=False,
                user_message="A file of this message was deleted.",
            ) from error
        except OSError as error:
            raise EngineError(
                ErrorType.DEPENDENCY_FAIL,
                f"the file {self.name} cannot be read",
                "FILE_NOT_READABLE",
                user_message="A file of this message cannot be read right now.",
            ) from error


InputBlock = TextBlock | FileBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """An answer to a prompt whose turn is gone, so that this turn goes on with it.

    Attributes:
        kind: Of the prompt, such as `question`.
        request_id: Of the prompt.
        decision: What the user decided.
        payload: The answer.
        prompt: What was asked: the inner of the prompt.

    Spec: Ruling E15.
    """

    kind: str
    request_id: str
    decision: str
    payload: Mapping[str, JSONValue]
    prompt: Mapping[str, JSONValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInput:
    """The user's message, or an answer that came when nobody waited any more.

    Attributes:
        text: All text of the message, and each file as its name in brackets, such
            as `[image: plan.png]`; of an answer, question and answer in words.
        blocks: The words and the files of the message, in order.
        event_id: The client's id of the message, or one that was minted.
        coordinator_mode: How the client wants it worked on; None for no wish.
        plan_confirmation: Whether the client wants to review a plan; None for no
            wish.
        continuation: The answer; None for a message.
    """

    text: str
    blocks: Sequence[InputBlock]
    event_id: str
    coordinator_mode: Literal["react", "plan"] | None = None
    plan_confirmation: Literal["auto", "required"] | None = None
    continuation: Continuation | None = None
