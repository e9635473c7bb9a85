"""The ErrorInfo of what happens to turns without their engine's doing.

Spec: EMIT 12; Rulings E11, E13, E14.
"""

from cards.protocol.errors import ErrorInfo, make_error
from cards.protocol.kinds import CardKind, ErrorType


def orphan_timeout(kind: CardKind) -> ErrorInfo:
    """Return the error of a card that was silent for too long. Spec: Ruling E13."""
    return make_error(
        ErrorType.ORPHAN_TIMEOUT, f"nothing was heard of this {kind} for too long"
    )


def worker_lost() -> ErrorInfo:
    """Return the error of a turn whose process is gone. Spec: Ruling E14."""
    return make_error(
        ErrorType.INTERNAL,
        "the worker that ran this turn is gone",
        code="WORKER_LOST",
        user_message="The server was interrupted while it was answering.",
        retryable=True,
    )


def server_stopped() -> ErrorInfo:
    """Return the error of a turn that a stopping server ended."""
    return make_error(
        ErrorType.INTERNAL,
        "the server was stopped during this turn",
        code="SERVER_STOPPED",
        user_message="The server was restarted while it was answering.",
        retryable=True,
    )


def log_unavailable() -> ErrorInfo:
    """Return the error of a turn that could not be saved."""
    return make_error(
        ErrorType.INTERNAL,
        "the event log could not be written during this turn",
        code="LOG_UNAVAILABLE",
        user_message="This answer was lost because it could not be saved.",
        retryable=True,
    )


def saving_fails() -> ErrorInfo:
    """Return what clients are told while the log cannot be written."""
    return make_error(
        ErrorType.OVERLOADED,
        "the event log cannot be written; the turn will be closed as failed",
        code="LOG_UNAVAILABLE",
        user_message="Your conversation cannot be saved right now.",
    )


def session_deleted() -> ErrorInfo:
    """Return what clients are told whose session was deleted."""
    return make_error(
        ErrorType.USER_ABORTED,
        "the session was deleted with everything that belongs to it",
        code="SESSION_DELETED",
        user_message="This conversation was deleted.",
    )
