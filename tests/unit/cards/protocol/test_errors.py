import msgspec
import pytest
from msgspec import UNSET

from cards.protocol.errors import (
    ERROR_REGISTRY,
    ErrorInfo,
    LocalProtocolError,
    ProtocolError,
    Recovery,
    RemoteProtocolError,
    make_error,
    refuse,
)
from cards.protocol.kinds import ErrorType
from tests.unit.cards.protocol.frames import ERROR

RETRYABLE = {
    ErrorType.TOOL_TIMEOUT,
    ErrorType.RATE_LIMIT,
    ErrorType.OVERLOADED,
    ErrorType.CONTRACT_FAIL,
    ErrorType.DEPENDENCY_FAIL,
    ErrorType.MODEL_ERROR,
}


def as_json(struct: msgspec.Struct) -> object:
    return msgspec.json.decode(msgspec.json.encode(struct))


class TestErrorInfo:
    def test_writes_every_field_under_its_wire_name(self) -> None:
        """Spec: EMIT 12."""
        assert as_json(ERROR) == {
            "type": "tool_timeout",
            "code": "BASH_TIMEOUT",
            "message": "Bash exceeded 120s",
            "user_message": "That took too long.",
            "retryable": True,
            "retry_after_ms": 5000,
            "recovery": {"action": "retry", "next_card_id": "step_b"},
            "details": {"terminal_turn": 3},
        }

    def test_writes_retryable_when_it_is_false(self) -> None:
        """Spec: EMIT 8, 12."""
        error = ErrorInfo(
            type=ErrorType.INTERNAL,
            message="broke",
            user_message="Something broke.",
            retryable=False,
        )

        assert as_json(error) == {
            "type": "internal",
            "message": "broke",
            "user_message": "Something broke.",
            "retryable": False,
        }


class TestRecovery:
    def test_leaves_out_a_card_that_is_not_replaced(self) -> None:
        """Spec: EMIT 12."""
        assert as_json(Recovery(action="abort")) == {"action": "abort"}


class TestErrorRegistry:
    @pytest.mark.parametrize("error_type", ErrorType)
    def test_knows_what_may_be_retried(self, error_type: ErrorType) -> None:
        """Spec: EMIT 12; emit-tables 6."""
        assert ERROR_REGISTRY[error_type].retryable is (error_type in RETRYABLE)

    @pytest.mark.parametrize("error_type", ErrorType)
    def test_has_a_whole_sentence_for_the_user(self, error_type: ErrorType) -> None:
        """Spec: EMIT 12."""
        sentence = ERROR_REGISTRY[error_type].user_message

        assert sentence[0].isupper()
        assert sentence.endswith(".")
        assert error_type.value not in sentence


class TestMakeError:
    @pytest.mark.parametrize("error_type", ErrorType)
    def test_takes_the_defaults_of_the_type(self, error_type: ErrorType) -> None:
        """Spec: EMIT 12."""
        defaults = ERROR_REGISTRY[error_type]

        assert make_error(error_type, "broke") == ErrorInfo(
            type=error_type,
            message="broke",
            user_message=defaults.user_message,
            retryable=defaults.retryable,
        )

    @pytest.mark.parametrize("error_type", ErrorType)
    def test_never_leaves_a_message_empty(self, error_type: ErrorType) -> None:
        """Spec: EMIT 12; Ruling E11."""
        error = make_error(error_type, "", user_message="")

        assert error.message
        assert error.user_message

    @pytest.mark.parametrize("error_type", ErrorType)
    @pytest.mark.parametrize("retryable", [True, False])
    def test_believes_its_maker_about_retrying(
        self, error_type: ErrorType, retryable: bool
    ) -> None:
        """Spec: EMIT 12."""
        error = make_error(error_type, "broke", retryable=retryable)

        assert error.retryable is retryable

    def test_takes_what_its_maker_knows_better(self) -> None:
        error = make_error(
            ErrorType.RATE_LIMIT,
            "429",
            code="UPSTREAM_429",
            user_message="Wait.",
            retry_after_ms=0,
            details={"limit": 5},
        )

        assert as_json(error) == {
            "type": "rate_limit",
            "code": "UPSTREAM_429",
            "message": "429",
            "user_message": "Wait.",
            "retryable": True,
            "retry_after_ms": 0,
            "details": {"limit": 5},
        }

    def test_leaves_out_an_empty_code_and_empty_details(self) -> None:
        """Spec: Ruling E6."""
        error = make_error(ErrorType.INTERNAL, "broke", code="", details={})

        assert error.code is UNSET
        assert error.details is UNSET


class TestProtocolError:
    @pytest.mark.parametrize("kind", [LocalProtocolError, RemoteProtocolError])
    def test_is_the_base_of_both_sides(self, kind: type[Exception]) -> None:
        assert issubclass(kind, ProtocolError)

    def test_of_our_side_is_none_of_the_client(self) -> None:
        assert not issubclass(LocalProtocolError, RemoteProtocolError)


class TestRemoteProtocolError:
    def test_carries_what_the_client_is_told(self) -> None:
        error = make_error(ErrorType.INVALID_INPUT, "too large")

        raised = RemoteProtocolError(error, closes_connection=True)

        assert raised.error is error
        assert raised.closes_connection
        assert str(raised) == "too large"

    def test_leaves_the_connection_open_unless_told(self) -> None:
        """Spec: Ruling E22."""
        error = make_error(ErrorType.INVALID_INPUT, "wrong")

        assert not RemoteProtocolError(error).closes_connection


class TestRefuse:
    def test_names_the_field_and_what_is_allowed(self) -> None:
        """Spec: Ruling E22."""
        error = refuse(
            "wrong", code="INVALID_FIELD", field="content[0].text", allowed="str"
        ).error

        assert error.type is ErrorType.INVALID_INPUT
        assert error.code == "INVALID_FIELD"
        assert error.message == "wrong; allowed: str"
        assert error.details == {"field": "content[0].text", "allowed": "str"}

    def test_leaves_out_what_is_not_known(self) -> None:
        error = refuse("wrong", code="INVALID_JSON").error

        assert error.message == "wrong"
        assert error.details is UNSET

    def test_tells_that_trying_again_does_not_help(self) -> None:
        """Spec: EMIT 12."""
        assert refuse("wrong", code="INVALID_JSON").error.retryable is False

    def test_leaves_the_connection_open(self) -> None:
        """Spec: Ruling E22."""
        assert not refuse("wrong", code="INVALID_JSON").closes_connection
