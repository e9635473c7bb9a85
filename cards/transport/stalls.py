"""Which clients make no progress. Pure: what is unsent and the time come in.

A client that reads, however slowly, makes progress. One that reads nothing while
something is unsent has stalled, and holding it open helps nobody: it can resume.

Spec: issue "Liveness and ownership" 10; design.md 3, Slow clients.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Progress:
    """How far one client has read.

    Attributes:
        written_bytes: All that was written to it.
        read_bytes: Of those, what had left this machine at the last look.
        since: The look that last found it reading, or owed nothing before, in
            seconds.
        behind_at: The last look that found something unsent, in seconds.
    """

    since: float
    written_bytes: int = 0
    read_bytes: int = 0
    behind_at: float = float("-inf")
    _is_behind: bool = False

    def look(self, unsent_bytes: int, now: float) -> float:
        """Return for how many seconds the client has read nothing that it could.

        Args:
            unsent_bytes: Written, and not yet taken by the client's machine.
            now: Monotonic time in seconds.
        """
        read_bytes = self.written_bytes - unsent_bytes
        # Who had everything at the last look owes nothing for the time before this
        # one: what is unsent now may have been written a moment ago.
        if not self._is_behind or unsent_bytes <= 0 or read_bytes > self.read_bytes:
            self.since = now
        self._is_behind = unsent_bytes > 0
        if self._is_behind:
            self.behind_at = now
        self.read_bytes = read_bytes
        return now - self.since
