"""The recent frames of a session, in memory, for everybody who follows it."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Joined = TypeVar("Joined")

#: Bytes of frames kept for one session. A follower that is further behind reads
#: the log.
MAX_TAIL_BYTES = 1024 * 1024


class Tail(Generic[Joined]):
    """The newest committed frames of a session, and where they end.

    Args:
        newest_seq: Seq of the last committed frame; 0 for none.
        join: Makes one thing to send from frames in order. Its last result is kept,
            because followers in step all ask for the same.
    """

    def __init__(
        self,
        newest_seq: int,
        join: Callable[[Sequence[bytes]], Joined],
        *,
        max_bytes: int = MAX_TAIL_BYTES,
    ) -> None:
        self.newest_seq = newest_seq
        self._join = join
        self._max_bytes = max_bytes
        self._frames: list[bytes] = []
        self._bytes = 0
        self._joined: tuple[int, int, Joined] | None = None

    @property
    def oldest_seq(self) -> int:
        """Seq of the oldest frame held; newest_seq + 1 when none is."""
        return self.newest_seq - len(self._frames) + 1

    def extend(self, frames: Sequence[bytes]) -> None:
        """Append committed frames that follow the newest one."""
        self._frames.extend(frames)
        self.newest_seq += len(frames)
        self._bytes += sum(map(len, frames))
        # Trimming to half keeps the cost of moving the list small.
        if self._bytes > self._max_bytes:
            self._trim()

    def skip_to(self, newest_seq: int) -> None:
        """Go on behind frames that are in the log and not here."""
        self.newest_seq = newest_seq
        self._frames.clear()
        self._bytes = 0

    def _trim(self) -> None:
        surplus = self._bytes - self._max_bytes // 2
        count = 0
        while surplus > 0 and count < len(self._frames) - 1:
            surplus -= len(self._frames[count])
            self._bytes -= len(self._frames[count])
            count += 1
        del self._frames[:count]

    def after(self, cursor: int) -> Joined | None:
        """Return all frames beyond a cursor, joined; None when it reaches too far back.

        The cursor must be below `newest_seq`.
        """
        start = cursor + 1 - self.oldest_seq
        if start < 0:
            return None
        if self._joined is not None and self._joined[:2] == (cursor, self.newest_seq):
            return self._joined[2]
        joined = self._join(self._frames[start:])
        self._joined = (cursor, self.newest_seq, joined)
        return joined
