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
        since: When that last grew, in seconds.
    """

    since: float
    written_bytes: int = 0
    read_bytes: int = 0

    def look(self, unsent_bytes: int, now: float) -> float:
        """Return for how many seconds the client has read nothing that it could.

        Args:
            unsent_bytes: Written, and not yet taken by the client's machine.
            now: Monotonic time in seconds.
        """
        read_bytes = self.written_bytes - unsent_bytes
        if unsent_bytes <= 0 or read_bytes > self.read_bytes:
            self.since = now
        self.read_bytes = read_bytes
        return now - self.since
