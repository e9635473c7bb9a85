"""Who follows a session in this process, and the recent frames that they read.

Spec: Rulings E4, E26; design.md 3.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from cards.database import run_in_database
from cards.log.tail import Tail
from cards.ports import OpenPrompt
from cards.protocol.errors import ErrorInfo
from cards.queries import newest_seq, read_page
from cards.transport import Batch


class Follower(Protocol):
    """A connection that follows a session."""

    def pump(self) -> None:
        """Send what is new, as far as the client keeps up."""

    def resend(self, prompt: OpenPrompt) -> None:
        """Show a prompt once more, if the client has seen it before."""

    def report_trouble(self, error: ErrorInfo) -> None:
        """Tell this client of trouble that cannot be logged."""

    def greet_anew(self, seq: int) -> None:
        """Tell this client of another trace: another worker made the session.

        Args:
            seq: Behind which the client goes on.
        """

    def tell_deleted(self) -> None:
        """Tell this client that the session is deleted."""


class Audience:
    """The followers of one session.

    Args:
        newest: Seq of its last logged frame; 0 for none.
    """

    def __init__(self, newest: int) -> None:
        self.tail: Tail[Batch] = Tail(newest, Batch)
        self.followers: set[Follower] = set()

    def extend(self, frames: Sequence[bytes]) -> None:
        """Show frames that follow the newest one in the log."""
        self.tail.extend(frames)
        self.pump()

    def skip_to(self, newest: int) -> None:
        """Have each follower read the log up to a seq at its own pace."""
        self.tail.skip_to(newest)
        self.pump()

    async def catch_up(
        self, session_pk: int, newest: int | None, *, is_served: Callable[[], bool]
    ) -> None:
        """Show what another worker wrote.

        Args:
            newest: Seq that the log reaches; None to find it out.
            is_served: Whether this process writes the log itself by now.

        Raises:
            django.db.Error: The database cannot be read.
        """
        if newest is None:
            newest = await run_in_database(newest_seq, session_pk)
        after_seq = self.tail.newest_seq
        if newest <= after_seq:
            return
        page = await run_in_database(
            read_page, session_pk, after_seq=after_seq, up_to_seq=newest
        )
        if self.tail.newest_seq != after_seq or is_served():
            return
        if page.first_seq == after_seq + 1 and page.last_seq == newest:
            self.extend(page.frames)
        else:
            self.skip_to(newest)

    def begin_anew(self, newest: int) -> None:
        """Forget the frames: the log is another one, which reaches this seq."""
        self.tail = Tail(newest, Batch)

    def pump(self) -> None:
        """Send what is new."""
        for follower in tuple(self.followers):
            follower.pump()

    def resend(self, prompt: OpenPrompt) -> None:
        """Show a prompt once more, as an operator wished."""
        for follower in tuple(self.followers):
            follower.resend(prompt)

    def report_trouble(self, error: ErrorInfo) -> None:
        """Tell of trouble that cannot be logged."""
        for follower in tuple(self.followers):
            follower.report_trouble(error)

    def greet_anew(self, seq: int) -> None:
        """Tell of another trace; see `Follower.greet_anew`."""
        for follower in tuple(self.followers):
            follower.greet_anew(seq)

    def tell_deleted(self) -> None:
        """Tell that the session is deleted."""
        for follower in tuple(self.followers):
            follower.tell_deleted()
