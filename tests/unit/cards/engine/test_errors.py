"""How an engine says that something failed."""

from typing import Any

import pytest
from msgspec import UNSET

from cards.engine import EngineError
from cards.protocol.codec import encode_event
from cards.protocol.errors import ERROR_REGISTRY
from cards.protocol.events import SessionEvent
from cards.protocol.kinds import ErrorType, SessionEventKind
from cards.protocol.payloads import ErrorInner, SessionEventPayload
from tests.unit.cards.protocol.frames import make_envelope


class TestEngineError:
    """Spec: EMIT 12; Ruling E11."""

    @pytest.mark.parametrize("error_type", list(ErrorType))
    def test_takes_the_defaults_of_its_type(self, error_type: ErrorType) -> None:
        error = EngineError(error_type, "why").error

        assert (error.type, error.message) == (error_type, "why")
        assert error.user_message == ERROR_REGISTRY[error_type].user_message
        assert error.retryable == ERROR_REGISTRY[error_type].retryable
        assert (error.code, error.retry_after_ms) == (UNSET, UNSET)

    def test_keeps_what_is_chosen(self) -> None:
        error = EngineError(
            "rate_limit", "429", "UPSTREAM", False, 5000, "Please wait."
        ).error

        assert (error.code, error.retryable) == ("UPSTREAM", False)
        assert (error.retry_after_ms, error.user_message) == (5000, "Please wait.")

    def test_refuses_another_type(self) -> None:
        with pytest.raises(ValueError, match="'oops'; allowed: tool_timeout, "):
            EngineError("oops", "why")

    @pytest.mark.parametrize(
        "fields",
        [
            {"message": "half \ud83d"},
            {"message": ValueError("not text")},
            {"message": None},
            {"message": "", "code": "C\ud83d", "user_message": "\0"},
            {"message": "x", "code": 7, "retryable": 1},
            {"message": "x", "retry_after_ms": 10**20},
            {"message": "x", "retry_after_ms": float("nan")},
            {"message": "x", "retry_after_ms": 1.5},
        ],
        ids=repr,
    )
    def test_is_always_fit_for_a_frame(self, fields: Any) -> None:
        """A failure that cannot be told would leave its card open."""
        error = EngineError(type="internal", **fields).error

        assert error.message
        assert encode_event(
            SessionEvent(
                envelope=make_envelope(),
                payload=SessionEventPayload(
                    kind=SessionEventKind.ERROR, inner=ErrorInner(error=error)
                ),
            )
        )
