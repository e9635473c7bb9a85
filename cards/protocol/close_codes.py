"""Why a socket is closed. Spec: RFC 6455 7.4; Rulings E22, E25."""

from enum import IntEnum


class CloseCode(IntEnum):
    """The close codes that we use; docs/wire.md says what a client does about each."""

    GOING_AWAY = 1001
    POLICY_VIOLATION = 1008
    TOO_LARGE = 1009
    INTERNAL_ERROR = 1011
    TRY_AGAIN_LATER = 1013
