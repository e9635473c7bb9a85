"""What an engine's scopes need of whoever keeps the files.

Spec: design.md 2; Ruling E21.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from cards.ports import StoredArtifact

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeFile:
    """A file that an engine wants to be kept.

    Attributes:
        pieces: The bytes; read in another thread, once.
        may_wait: Whether reading them may last for ever, as that of a pipe does.
        mime_type: A hint; "" for none.
        is_wanted: Whether the turn that makes it goes on.
    """

    name: str
    pieces: Iterable[bytes]
    may_wait: bool
    mime_type: str
    type: str
    role: str
    description: str
    is_wanted: Callable[[], bool]


class ArtifactDesk(Protocol):
    """Where a turn's files are kept."""

    async def keep(
        self, file: MadeFile, show: Callable[[StoredArtifact, bytes], R]
    ) -> R:
        """Keep a file, and show it as soon as it is durable.

        Args:
            show: Called once, in the order of the versions, even if nobody waits
                any more; told its icon as well, a PNG, b"" for none.

        Returns:
            What `show` returned.

        Raises:
            EngineError: The file is not kept; nothing of it is left.
        """
