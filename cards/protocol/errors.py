"""ErrorInfo, its registry of defaults, and the errors of the protocol itself.

Spec: EMIT 12, 16.
"""

from dataclasses import dataclass
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from cards.protocol.json_form import JSONValue
from cards.protocol.kinds import ErrorType


class Recovery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What happens next; `next_card_id` points to the replacing card.

    Spec: EMIT 12.
    """

    action: Literal["retry", "fallback", "abort"]
    next_card_id: str | UnsetType = UNSET


class ErrorInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why something failed: for the program, the developer and the user.

    `message` is for developers, `user_message` for the user's eyes; both are
    never empty. `retry_after_ms` is a wait in milliseconds before a retry.

    Spec: EMIT 12.
    """

    type: ErrorType
    code: str | UnsetType = UNSET
    message: str
    user_message: str
    retryable: bool
    retry_after_ms: int | UnsetType = UNSET
    recovery: Recovery | UnsetType = UNSET
    details: dict[str, JSONValue] | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class ErrorDefaults:
    """What an ErrorInfo says unless its maker knows better."""

    user_message: str
    retryable: bool


#: Spec: EMIT 12; emit-tables 6.
ERROR_REGISTRY: dict[ErrorType, ErrorDefaults] = {
    ErrorType.TOOL_TIMEOUT: ErrorDefaults(
        "That took too long; I will try it another way.", retryable=True
    ),
    ErrorType.ORPHAN_TIMEOUT: ErrorDefaults(
        "This step went silent and was given up.", retryable=False
    ),
    ErrorType.RATE_LIMIT: ErrorDefaults(
        "There are too many requests right now; please try again in a moment.",
        retryable=True,
    ),
    ErrorType.OVERLOADED: ErrorDefaults(
        "The service is busy; please try again in a moment.", retryable=True
    ),
    ErrorType.CONTRACT_FAIL: ErrorDefaults(
        "The result was not what was asked for; it is being put right.",
        retryable=True,
    ),
    ErrorType.DEPENDENCY_FAIL: ErrorDefaults(
        "Something this step builds on failed.", retryable=True
    ),
    ErrorType.USER_ABORTED: ErrorDefaults("You stopped this.", retryable=False),
    ErrorType.PERMISSION_DENIED: ErrorDefaults(
        "This was not permitted.", retryable=False
    ),
    ErrorType.MAX_TURNS: ErrorDefaults(
        "This took too many attempts and was stopped.", retryable=False
    ),
    ErrorType.CONTEXT_EXCEEDED: ErrorDefaults(
        "The conversation is too long for this; please split the task.",
        retryable=False,
    ),
    ErrorType.MODEL_ERROR: ErrorDefaults(
        "The model has a problem right now.", retryable=True
    ),
    ErrorType.BUDGET_EXHAUSTED: ErrorDefaults(
        "The budget for this is used up.", retryable=False
    ),
    ErrorType.INVALID_INPUT: ErrorDefaults(
        "There is a problem with the input.", retryable=False
    ),
    ErrorType.INTERNAL: ErrorDefaults(
        "Something unexpected happened.", retryable=False
    ),
}


def make_error(
    error_type: ErrorType,
    message: str,
    *,
    code: str | None = None,
    user_message: str | None = None,
    retryable: bool | None = None,
    retry_after_ms: int | None = None,
    details: dict[str, JSONValue] | None = None,
) -> ErrorInfo:
    """Return a complete ErrorInfo; None takes the default of the type.

    Spec: EMIT 12; Ruling E11.
    """
    defaults = ERROR_REGISTRY[error_type]
    return ErrorInfo(
        type=error_type,
        code=code or UNSET,
        message=message or error_type.value,
        user_message=user_message or defaults.user_message,
        retryable=defaults.retryable if retryable is None else retryable,
        retry_after_ms=UNSET if retry_after_ms is None else retry_after_ms,
        details=details or UNSET,
    )


class ProtocolError(Exception):
    """Somebody broke the card protocol."""


class LocalProtocolError(ProtocolError):
    """We were about to send something illegal: a bug on our side.

    Nothing was sent. Do not catch it to go on; fix the caller.
    """


class RemoteProtocolError(ProtocolError):
    """The client broke a rule; the connection lives, nothing was stored.

    Attributes:
        error: What the client is told.
        closes_connection: The frame is unusable as a whole (too large).
    """

    def __init__(self, error: ErrorInfo, *, closes_connection: bool = False) -> None:
        super().__init__(error.message)
        self.error = error
        self.closes_connection = closes_connection


def refuse(
    message: str,
    *,
    code: str,
    field: str | None = None,
    allowed: str | None = None,
    user_message: str | None = None,
) -> RemoteProtocolError:
    """Return the error for a client frame that breaks a rule.

    Args:
        message: What is wrong, for the developer of the client.
        code: Stable word for programs, upper case.
        field: Path of the offending field, such as `content[0].text`.
        allowed: What would have been right.
        user_message: What the user is to do; None for the words of `invalid_input`.

    Spec: EMIT 12; Ruling E22.
    """
    details: dict[str, JSONValue] = {}
    if field is not None:
        details["field"] = field
    if allowed is not None:
        details["allowed"] = allowed
        message = f"{message}; allowed: {allowed}"
    return RemoteProtocolError(
        make_error(
            ErrorType.INVALID_INPUT,
            message,
            code=code,
            user_message=user_message,
            details=details,
        )
    )
