"""How many messages somebody may send in a minute. Pure: the time comes in.

Spec: issue "Liveness and ownership" 9; case HC-62.
"""

from collections import deque

#: The span that is looked at, in seconds.
SPAN_S = 60.0


class RateLimit:
    """A sliding window over the last minute.

    Args:
        limit: Most messages within any minute; at least 1.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._times: deque[float] = deque()

    def admit(self, now: float) -> int:
        """Count a message, or refuse it.

        Args:
            now: Monotonic time in seconds.

        Returns:
            0 when the message was admitted; else the milliseconds after which the
            next one will be, at least 1. A refused message does not count.
        """
        self._forget(now)
        if len(self._times) < self._limit:
            self._times.append(now)
            return 0
        return max(1, round((self._times[0] + SPAN_S - now) * 1000))

    def is_idle(self, now: float) -> bool:
        """Whether nothing was admitted within the last minute."""
        self._forget(now)
        return not self._times

    def _forget(self, now: float) -> None:
        while self._times and self._times[0] <= now - SPAN_S:
            self._times.popleft()
