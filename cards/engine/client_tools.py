"""Tools that the client runs. Spec: EMIT 9; Ruling E24."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

from msgspec import UNSET

from cards.engine.block import Block, Context
from cards.engine.errors import error_type_of
from cards.engine.values import json_or_unset, text_or_unset
from cards.log.store import RowChange
from cards.ports import Settlement
from cards.protocol.card_tree import Card
from cards.protocol.errors import ErrorInfo, make_error
from cards.protocol.json_form import JSONValue, clean_text
from cards.protocol.kinds import CardKind, CloseStatus, ErrorType
from cards.protocol.payloads import Payload, ToolPayload

ClientToolStatus = Literal["success", "error", "denied", "timeout", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientToolResult:
    """What a client's tool gave.

    Attributes:
        output: Anything JSON; None for nothing.
        error: What the client says went wrong; None for nothing.
        metadata: More facts about the call.
    """

    status: ClientToolStatus
    output: JSONValue
    error: JSONValue
    metadata: Mapping[str, JSONValue]


#: How the card ends, and why. Spec: EMIT 9, 12.
_ERROR_OF_STATUS: dict[str, ErrorType] = {
    "error": ErrorType.INTERNAL,
    "denied": ErrorType.PERMISSION_DENIED,
    "timeout": ErrorType.TOOL_TIMEOUT,
}


class ClientTool(Block):
    """One tool call that a client runs; the desk enters it, waits, and leaves it."""

    kind: ClassVar[CardKind] = CardKind.TOOL

    def __init__(
        self,
        context: Context,
        *,
        parent: Card | None,
        agent_id: str,
        agent_run_id: str | None,
        name: str,
        input: object,  # noqa: A002 - the wire's word
        intent: str | None,
    ) -> None:
        super().__init__(
            context, parent=parent, agent_id=agent_id, agent_run_id=agent_run_id
        )
        self._name = clean_text(name).strip() or "tool"
        self._input = input
        self._intent = intent
        self._reserved_id = ""
        self._shown: tuple[RowChange, ...] = ()
        self._removed: tuple[RowChange, ...] = ()
        self._settlement: Settlement | None = None

    def reserve(
        self, card_id: str, *, shown: RowChange, removed: tuple[RowChange, ...]
    ) -> None:
        """Give the card its id, and the changes that go with its frames."""
        self._reserved_id = card_id
        self._shown, self._removed = (shown,), removed

    def settle(self, settlement: Settlement) -> None:
        """Record what the client gave, for the close."""
        self._settlement = settlement

    @property
    def has_timed_out(self) -> bool:
        """Whether no result came within the time that the engine gave."""
        return self._settlement is not None and self._settlement.is_lapsed

    @property
    def result(self) -> ClientToolResult:
        """What the client gave.

        Raises:
            RuntimeError: Nothing was given yet.
        """
        if self._settlement is None:
            raise RuntimeError("the client's tool has no result yet")
        given = self._settlement.payload
        return ClientToolResult(
            status=cast("ClientToolStatus", self._settlement.decision),
            output=given.get("output"),
            error=given.get("error"),
            metadata=cast("dict[str, JSONValue]", given.get("metadata") or {}),
        )

    def _opening(self) -> Payload:
        return ToolPayload(
            name=self._name,
            target="client",
            intent=text_or_unset(self._intent),
            input=json_or_unset(self._input),
        )

    def _wanted_card_id(self) -> str | None:
        return self._reserved_id

    def _opening_changes(self) -> tuple[RowChange, ...]:
        return self._shown

    def _closing_changes(self) -> tuple[RowChange, ...]:
        return self._removed

    def _ending(self) -> tuple[CloseStatus, ErrorInfo | None]:
        status = self.result.status
        if status == "cancelled":
            return CloseStatus.CANCELLED, None
        if status == "success":
            return CloseStatus.OK, None
        return CloseStatus.FAILED, _error_of(status, self.result.error)

    def _inner(self) -> Payload | None:
        if self._settlement is None:
            return None
        output, metadata = self.result.output, json_or_unset(self.result.metadata)
        if output is None and metadata is UNSET:
            return None
        return ToolPayload(
            output=UNSET if output is None else output, metadata=metadata
        )


def _error_of(status: str, given: JSONValue) -> ErrorInfo:
    """Return the error of a call that failed, in the client's words if it has any."""
    error_type = _ERROR_OF_STATUS[status]
    message = f"the client's tool ended with {status}"
    if isinstance(given, str):
        message = clean_text(given) or message
    if isinstance(given, dict):
        message = clean_text(str(given.get("message") or message))
        # Another word is the client's own: then the status tells.
        with suppress(ValueError):
            error_type = error_type_of(str(given.get("type")))
    return make_error(error_type, message)
