"""How an engine says that something failed. Spec: EMIT 12; Ruling E11."""

from msgspec import UNSET

from cards.engine.values import count_or_unset, text_or_unset
from cards.protocol.errors import ErrorInfo, make_error
from cards.protocol.json_form import clean_text
from cards.protocol.kinds import ErrorType


class EngineError(Exception):
    """A failure whose ErrorInfo the engine chooses.

    Args:
        type: One of the error types of EMIT 12, such as "rate_limit".
        message: For developers.
        code: Stable word for programs; None for none.
        retryable: None takes the default of the type.
        retry_after_ms: Milliseconds to wait before a retry; None for no advice.
        user_message: For the user's eyes; None takes the default of the type.

    Raises:
        ValueError: The type is not one of EMIT 12.

    Spec: EMIT 12; Ruling E11.
    """

    def __init__(  # noqa: PLR0917 - the signature is the API
        self,
        type: str,  # noqa: A002 - the wire's word
        message: str,
        code: str | None = None,
        retryable: bool | None = None,
        retry_after_ms: int | None = None,
        user_message: str | None = None,
    ) -> None:
        super().__init__(message)
        self.error: ErrorInfo = error_info(
            type,
            message,
            code=code,
            retryable=retryable,
            retry_after_ms=retry_after_ms,
            user_message=user_message,
        )


def error_info(
    word: str,
    message: str,
    *,
    code: str | None = None,
    retryable: bool | None = None,
    retry_after_ms: int | None = None,
    user_message: str | None = None,
) -> ErrorInfo:
    """Return the ErrorInfo of what an engine says, fit for a frame.

    Args:
        word: One of the error types of EMIT 12.

    Raises:
        ValueError: The type is not one of EMIT 12.

    Spec: EMIT 12; Rulings E6, E11.
    """
    retry_after = count_or_unset(retry_after_ms)
    return make_error(
        error_type_of(word),
        clean_text(str(message)),
        code=text_or_unset(code) or None,
        retryable=None if retryable is None else bool(retryable),
        retry_after_ms=None if retry_after is UNSET else retry_after,
        user_message=text_or_unset(user_message) or None,
    )


def error_type_of(word: str) -> ErrorType:
    """Return the error type of that name.

    Raises:
        ValueError: There is none; the message lists those there are.
    """
    try:
        return ErrorType(word)
    except ValueError:
        allowed = ", ".join(ErrorType)
        raise ValueError(f"unknown error type {word!r}; allowed: {allowed}") from None
