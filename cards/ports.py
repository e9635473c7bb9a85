"""What the cards need of the apps above them, which implement it.

`config/wiring.py` joins them. The functions of a book run in a database thread; those
that write, within the caller's transaction.

Spec: design.md 2, 5; Rulings E15 to E18, E21, E24.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Protocol

from cards.log.store import RowChange
from cards.protocol.client_messages import PromptUserResponse, ToolResult
from cards.protocol.json_form import JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWait:
    """Somebody is about to be asked, or a client's tool to be called.

    Attributes:
        request_id: Of the prompt; the card id of a client's tool.
        kind: A prompt kind, or `client_tool`.
        turn_pk: The turn that asks.
        timeout_ms: Milliseconds from `created_at` on; 0 for none.
    """

    request_id: str
    session_pk: int
    turn_pk: int
    kind: str
    created_at: datetime
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """How a wait was settled; its row stands until that is logged.

    Attributes:
        kind: A prompt kind, or `client_tool`.
        decision: What the user decided, `timeout` when nobody did in time; the status
            of a client's tool.
        is_lapsed: Whether nobody decided in time.
        payload: The checked answer.
        reason: Shown with the reply; "" for none.
        rejection: Why the answer cannot be carried out, so that the user is to be
            asked again; "" when it can.
        frame: The prompt as it was sent.
        turn_pk: The turn that asked.
    """

    request_id: str
    session_pk: int
    turn_pk: int
    kind: str
    decision: str
    is_lapsed: bool
    payload: dict[str, JSONValue]
    reason: str
    rejection: str
    frame: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPrompt:
    """A prompt that may still be answered.

    Attributes:
        resent_at: When an operator last had it sent again; None for never.
        seq: Of its frame.
        frame: As it was sent.
    """

    session_pk: int
    request_id: str
    seq: int
    frame: bytes
    resent_at: datetime | None


class PromptBook(Protocol):
    """Keeps what is asked until it is answered and the answer is used.

    A wait is opened, shown, settled and removed, in this order; each step but the
    first goes with something else in one transaction, so that a crash between them
    leaves a state from which the next owner of the session goes on.
    """

    def open_wait(self, wait: NewWait) -> None:
        """Store a wait that nobody sees yet. Spec: Ruling E15.

        Raises:
            django.db.Error: It cannot be stored.
        """

    def wait_shown(self, request_id: str, *, frame: bytes, seq: int) -> RowChange:
        """Return the change that goes with its frame; open for answers from then."""

    def wait_removed(
        self, session_pk: int, request_id: str, decision: str, now: datetime
    ) -> tuple[RowChange, ...]:
        """Return the changes that go with its reply."""

    def wait_dropped(self, request_id: str) -> None:
        """Forget a wait that needs no reply."""

    def open_prompts(self, session_pk: int, now: datetime) -> list[OpenPrompt]:
        """Return what may be answered, oldest first; no client's tools."""

    def may_be_settled(self, session_pk: int, request_id: str) -> bool:
        """Tell whether a claim has a chance; False is final."""

    def claim_answer(
        self, session_pk: int, answer: PromptUserResponse, now: datetime
    ) -> None:
        """Settle a prompt by its user's answer, once.

        Raises:
            RemoteProtocolError: Nothing waits under this id, or the answer is not
                one to this prompt, which then stays open.

        Spec: Rulings E15, E16.
        """

    def claim_result(self, session_pk: int, result: ToolResult, now: datetime) -> None:
        """Settle a client's tool call by its result, once.

        Raises:
            RemoteProtocolError: Nothing waits under this id.

        Spec: Ruling E24.
        """

    def lapse(self, request_id: str, now: datetime) -> bool:
        """Settle a wait with `timeout` if its time is over. Spec: Ruling E17."""

    def lapse_due(self, now: datetime, *, limit: int) -> int:
        """Settle waits whose `timeout_ms` is over; return how many."""

    def lapse_expired(self, now: datetime, *, limit: int) -> int:
        """Settle waits that are older than they may get; return how many.

        Spec: Ruling E17.
        """

    def settlements(self, session_pks: Sequence[int]) -> list[Settlement]:
        """Return what is settled and not removed yet, oldest first."""

    def has_settlements(self, session_pk: int) -> bool:
        """Tell whether `settlements` would return any."""

    def is_settled(self, request_id: str) -> bool:
        """Tell whether a wait is settled and its row still stands."""

    def sessions_with_settlements(self, *, limit: int) -> list[int]:
        """Return sessions whose owner has something to log or to run."""

    def continuation_text(self, settlement: Settlement) -> str | None:
        """Return question and answer for the model; None when nothing goes on.

        Spec: Ruling E15.
        """

    def prompt_of(self, settlement: Settlement) -> dict[str, JSONValue]:
        """Return the inner of the prompt."""

    def permission_key(self, tool_name: str, tool_input: object) -> str:
        """Return what a grant for this call covers. Spec: Ruling E18."""

    def is_granted(self, session_pk: int, permission_key: str) -> bool:
        """Tell whether the session's user allowed this before. Spec: Ruling E18."""

    def resent(self, since: datetime, now: datetime) -> list[OpenPrompt]:
        """Return the prompts that an operator has had sent again since then.

        Those that may not be answered any more are left out. Spec: Ruling E17.
        """


class ArtifactRefused(Exception):
    """A file cannot be kept; nothing of it is left.

    Args:
        code: Which bound or state, such as `ARTIFACT_TOO_LARGE`.
        message: For developers; names the bound.
        is_transient: Whether trying again may help, as when a disk is full.
    """

    def __init__(self, code: str, message: str, *, is_transient: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.is_transient = is_transient


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedContent:
    """Bytes in the storage that no row names yet.

    Attributes:
        storage_name: Under which the storage keeps them.
        sha256: Of the bytes, in hex.
        mime_type: As its bytes tell; never what somebody claimed alone.
        thumbnail_name: Under which the storage keeps a small picture; "" for none.
        icon: A picture small enough for a frame, as PNG; b"" for none.
    """

    storage_name: str
    size_bytes: int
    sha256: str
    mime_type: str
    thumbnail_name: str
    icon: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewArtifact:
    """A file to be kept.

    Attributes:
        artifact_id: Of the artifact if it is a new one.
        is_version: Whether a file of the same name in the session gets a new version;
            False always makes an artifact of its own.
        source: `assistant` or `user`.
        type: What it is to its maker (`file`, `data`, `image`, ...); "" derives it
            from the MIME type.
    """

    artifact_id: str
    session_pk: int
    name: str
    content: StagedContent
    is_version: bool
    source: str
    type: str = ""
    role: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredArtifact:
    """One version of a file that is kept; `version` counts from 1.

    Attributes:
        has_thumbnail: Whether there is a small picture of it.
    """

    artifact_id: str
    version: int
    name: str
    type: str
    mime_type: str
    size_bytes: int
    sha256: str
    role: str
    description: str
    has_thumbnail: bool


class ArtifactShelf(Protocol):
    """Keeps the files of sessions; rows and files live and die together.

    A file is staged, then kept or discarded; what a crash leaves staged is removed by
    `cleanup_orphans`.

    Spec: design.md 2; Ruling E21; interfaces.md, REST.
    """

    def safe_name(self, name: str) -> str:
        """Return a name that may be shown, stored and linked; never empty."""

    def stage(
        self, chunks: Iterable[bytes], *, name: str, claimed_mime_type: str = ""
    ) -> StagedContent:
        """Write bytes to the storage, all or nothing; no database is touched.

        Args:
            name: Safe; a hint for the MIME type where bytes do not tell.
            claimed_mime_type: A hint, likewise.

        Raises:
            ArtifactRefused: It is over the cap, or the storage cannot take it.
        """

    def keep(self, new: NewArtifact, now: datetime) -> StoredArtifact:
        """Store the row of what was staged, in the caller's transaction.

        The caller holds the lock of the session, so that versions count on.
        """

    def discard(self, content: StagedContent) -> None:
        """Remove what was staged and will not be kept."""

    def find(
        self, session_pk: int, artifact_id: str, version: int | None = None
    ) -> StoredArtifact | None:
        """Return a version, None for the newest; None when the session has none."""

    def known(self, session_pk: int) -> list[tuple[str, str]]:
        """Return id and name of each artifact, by the age of its newest version."""

    def read(self, session_pk: int, artifact_id: str, version: int) -> BinaryIO:
        """Open the bytes of a version, for reading from a thread.

        Raises:
            FileNotFoundError: There is no such version, or its file is gone.
        """
