"""Who follows a session in this process, and the recent frames that they read.

Spec: Rulings E4, E26; design.md 3.
"""

from collections.abc import Sequence
from typing import Protocol

from cards.log.tail import Tail
from cards.ports import OpenPrompt
from cards.protocol.errors import ErrorInfo
from cards.transport import Batch


class Follower(Protocol):
    """A connection that follows a session."""

    def pump(self) -> None:
        """Send what is new, as far as the client keeps up."""

    def resend(self, prompt: OpenPrompt) -> None:
        """Show a prompt once more, if the client has seen it before."""

    def report_trouble(self, error: ErrorInfo) -> None:
        """Tell this client of trouble that cannot be logged."""

    def greet_anew(self, newest: int, prompts: Sequence[OpenPrompt]) -> None:
        """Tell this client of another trace: another worker made the session.

        Args:
            newest: Seq behind which the client goes on.
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

    def greet_anew(self, newest: int, prompts: Sequence[OpenPrompt]) -> None:
        """Tell of another trace; see `Follower.greet_anew`."""
        for follower in tuple(self.followers):
            follower.greet_anew(newest, prompts)

    def tell_deleted(self) -> None:
        """Tell that the session is deleted."""
        for follower in tuple(self.followers):
            follower.tell_deleted()
