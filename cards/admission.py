"""Who is connected: how many at once, how much they say, and whether they still may.

Spec: Ruling E27; issue "Liveness and ownership" 8, 9; case HC-62.
"""

import asyncio
from collections import Counter
from collections.abc import Callable

from cards.authentication import Identity, still_valid
from cards.database import run_in_database
from cards.principals import ANONYMOUS, Principal
from cards.protocol.client_messages import (
    AnyClientMessage,
    SessionCreate,
    UserInject,
    UserMessage,
)
from cards.protocol.close_codes import CloseCode
from cards.protocol.errors import RemoteProtocolError, make_error
from cards.protocol.kinds import ErrorType
from cards.protocol.rate_limit import RateLimit
from cards.rounds import look_again_and_again

#: Principals whose messages are remembered before it is looked whose may be forgotten.
FEW_RATES = 1000

#: What counts as a message; an answer to us never does. Spec: case HC-62.
_COUNTED = (UserMessage, UserInject, SessionCreate)

Close = Callable[[int], None]


class Visit:
    """One connection that was let in."""

    def __init__(
        self, identity: Identity, close: Close, rate: RateLimit | None
    ) -> None:
        self.identity = identity
        self._close = close
        self._rate = rate
        self._is_over = False

    def send_away(self) -> None:
        """Close the socket, and hear nothing more."""
        self._is_over = True
        self._close(CloseCode.POLICY_VIOLATION)

    def admit(self, message: AnyClientMessage) -> None:
        """Count a message.

        Raises:
            RemoteProtocolError: Too many came within a minute, or the client may be
                here no longer; the message has no effect.
        """
        if self._is_over:
            # A client that leaves our close frame unanswered may still send.
            raise RemoteProtocolError(
                make_error(
                    ErrorType.PERMISSION_DENIED,
                    "the token or sign-in holds no longer; this had no effect",
                    code="SIGNED_OUT",
                )
            )
        if self._rate is None or not isinstance(message, _COUNTED):
            return
        wait_ms = self._rate.admit(asyncio.get_running_loop().time())
        if wait_ms:
            raise RemoteProtocolError(
                make_error(
                    ErrorType.RATE_LIMIT,
                    "too many messages within a minute; this one had no effect",
                    code="RATE_LIMITED",
                    retry_after_ms=wait_ms,
                )
            )


class Admission:
    """Lets connections in, and sends away those whose right has ended.

    Args:
        max_connections: Of one principal at once; 0 for any number. Clients without
            cookie or token share a principal and are not counted.
        messages_per_minute: Of one principal; 0 for any number. Clients that share
            one are counted each by itself.
        check_interval_s: Seconds between two looks at tokens and sign-ins.
    """

    def __init__(
        self, *, max_connections: int, messages_per_minute: int, check_interval_s: float
    ) -> None:
        self._max_connections = max_connections
        self._messages_per_minute = messages_per_minute
        self._check_interval_s = check_interval_s
        self._visits: set[Visit] = set()
        self._counts: Counter[Principal] = Counter()
        self._rates: dict[Principal, RateLimit] = {}
        self._most_rates = FEW_RATES
        self._checks: asyncio.Task[None] | None = None

    def enter(self, identity: Identity, close: Close) -> Visit:
        """Let a connection in.

        Args:
            close: Closes its socket with a code.

        Raises:
            RemoteProtocolError: The principal has as many connections as it may.
        """
        principal = identity.principal
        is_full = self._counts[principal] >= self._max_connections > 0
        if is_full and principal != ANONYMOUS:
            raise RemoteProtocolError(
                make_error(
                    ErrorType.OVERLOADED,
                    f"you have {self._max_connections} connections, which is the most",
                    code="TOO_MANY_CONNECTIONS",
                    user_message="This is open in too many places; close some.",
                )
            )
        visit = Visit(identity, close, self._rate_of(principal))
        self._visits.add(visit)
        self._counts[principal] += 1
        return visit

    def leave(self, visit: Visit) -> None:
        """Forget a connection that is gone."""
        if visit in self._visits:
            self._visits.discard(visit)
            principal = visit.identity.principal
            self._counts[principal] -= 1
            if not self._counts[principal]:
                del self._counts[principal]

    def _rate_of(self, principal: Principal) -> RateLimit | None:
        if not self._messages_per_minute:
            return None
        if principal == ANONYMOUS:
            return RateLimit(self._messages_per_minute)
        if len(self._rates) >= self._most_rates:
            self._forget_idle_rates()
        return self._rates.setdefault(principal, RateLimit(self._messages_per_minute))

    def _forget_idle_rates(self) -> None:
        # Kept for a minute after the last message: who leaves and comes back has
        # not got a new minute.
        now = asyncio.get_running_loop().time()
        self._rates = {
            each: rate
            for each, rate in self._rates.items()
            if each in self._counts or not rate.is_idle(now)
        }
        # Not at each of many connections: all of them are looked through.
        self._most_rates = FEW_RATES + 2 * len(self._rates)

    def start(self) -> None:
        """Begin to look at tokens and sign-ins; once."""
        if self._checks is None and self._check_interval_s:
            self._checks = asyncio.create_task(
                look_again_and_again(
                    self.check,
                    pause_s=self._check_interval_s,
                    what="tokens and sign-ins",
                )
            )

    async def check(self) -> None:
        """Send away those whose token or sign-in holds no longer.

        Raises:
            django.db.Error: The database is away; everybody stays.
        """
        visits = tuple(self._visits)
        identities = {
            visit.identity
            for visit in visits
            if visit.identity.token_pk is not None
            or visit.identity.session_key is not None
        }
        if not identities:
            return
        ended = identities - await run_in_database(still_valid, identities)
        for visit in visits:
            if visit.identity in ended:
                visit.send_away()

    async def stop(self) -> None:
        """Look no more."""
        if self._checks is not None:
            self._checks.cancel()
            await asyncio.wait([self._checks])
