"""What a client may say, and the strict reading of it.

Spec: EMIT 9, 7.3; Ruling E22.
"""

import re
from typing import Annotated, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta

from cards.protocol.envelope import MAX_SAFE_INTEGER
from cards.protocol.errors import RemoteProtocolError, refuse
from cards.protocol.ids import SESSION_ID_ALLOWED, is_session_id
from cards.protocol.json_form import MAX_DEPTH, JSONValue
from cards.protocol.user_blocks import (
    FILE_TYPES,
    MAX_BLOCKS,
    ContentBlock,
    check_blocks,
    is_file,
)

CoordinatorMode = Literal["react", "plan"]
PlanConfirmation = Literal["auto", "required"]
ToolResultStatus = Literal["success", "ok", "error", "denied", "timeout", "cancelled"]

ClientId = Annotated[str, Meta(min_length=1, max_length=128)]
Seq = Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]


class FrameLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one client frame may hold.

    Attributes:
        depth: Levels of nesting.
        blocks: Of one message.

    Spec: Ruling E22.
    """

    depth: int = MAX_DEPTH
    blocks: int = MAX_BLOCKS


#: What holds where the operator decided nothing.
DEFAULT_LIMITS: Final = FrameLimits()


class ClientMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of every client message; unknown fields are ignored."""


class SessionCreate(ClientMessage, frozen=True, kw_only=True, tag="session.create"):
    """Bind the connection to a session; None keeps the present one.

    Spec: EMIT 9; Ruling E1.
    """

    session_id: ClientId | None = None
    capabilities: JSONValue = None


class UserMessage(ClientMessage, frozen=True, kw_only=True, tag="user.message"):
    """The user's words; `content` may also be `{"text": …}` or `text` alone.

    Spec: EMIT 9; Ruling E22.
    """

    event_id: ClientId | None = None
    content: list[ContentBlock] | ContentBlock | None = None
    text: str | None = None
    coordinator_mode: CoordinatorMode | None = None
    plan_confirmation: PlanConfirmation | None = None


class UserInject(ClientMessage, frozen=True, kw_only=True, tag="user.inject"):
    """A remark into the running turn, in words alone. Spec: EMIT 9; Ruling E23."""

    text: Annotated[str, Meta(min_length=1)]
    trace_id: ClientId | None = None
    content: JSONValue = None


class ToolResult(ClientMessage, frozen=True, kw_only=True, tag="tool.result"):
    """What a client-side tool gave. Spec: EMIT 9; Ruling E24."""

    tool_use_id: ClientId
    status: ToolResultStatus
    output: JSONValue = None
    error: JSONValue = None
    metadata: dict[str, JSONValue] | None = None


class PromptUserResponse(
    ClientMessage, frozen=True, kw_only=True, tag="prompt.user_response"
):
    """The user's answer to a prompt. Spec: EMIT 7.3."""

    request_id: ClientId
    decision: str
    payload: dict[str, JSONValue] | None = None


class SessionInterrupt(
    ClientMessage, frozen=True, kw_only=True, tag="session.interrupt"
):
    """Stop the running turn, or the one that is named.

    A client that names the turn it shows can never hit a later one, however late its
    frame comes.

    Spec: EMIT 9; Rulings E9, E10.
    """

    trace_id: ClientId | None = None
    turn_card_id: ClientId | None = None
    clear_queue: bool = False


class SessionResume(ClientMessage, frozen=True, kw_only=True, tag="session.resume"):
    """Continue after `last_seq`; 0 or missing asks for everything kept.

    Spec: EMIT 2.4.1; Ruling E5.
    """

    trace_id: ClientId
    last_seq: Seq = 0
    message_cursors: dict[str, JSONValue] | None = None


class Ping(ClientMessage, frozen=True, kw_only=True, tag="ping"):
    """A sign of life. Spec: EMIT 2.3; Ruling E25."""


AnyClientMessage: TypeAlias = (
    SessionCreate
    | UserMessage
    | UserInject
    | ToolResult
    | PromptUserResponse
    | SessionInterrupt
    | SessionResume
    | Ping
)

_MESSAGE_OF_TYPE: dict[str, type[AnyClientMessage]] = {
    "session.create": SessionCreate,
    "user.message": UserMessage,
    "user.inject": UserInject,
    "tool.result": ToolResult,
    "prompt.user_response": PromptUserResponse,
    "session.interrupt": SessionInterrupt,
    "session.resume": SessionResume,
    "ping": Ping,
}


def read_client_message(
    frame: JSONValue, limits: FrameLimits = DEFAULT_LIMITS
) -> AnyClientMessage:
    """Return the client message in a decoded frame.

    Args:
        limits: Of its depth nothing is looked at any more.

    Raises:
        RemoteProtocolError: The type is unknown or a field breaks its rule; the
            error names the field and what is allowed.

    Spec: EMIT 9; Ruling E22.
    """
    if not isinstance(frame, dict):
        raise refuse(
            "the frame is not a JSON object",
            code="NOT_AN_OBJECT",
            allowed='an object with a "type"',
        )
    frame_type = frame.get("type")
    shape = _MESSAGE_OF_TYPE.get(frame_type) if isinstance(frame_type, str) else None
    if shape is None:
        raise refuse(
            "unknown or missing frame type",
            code="UNKNOWN_FRAME_TYPE",
            field="type",
            allowed=", ".join(_MESSAGE_OF_TYPE),
        )
    if shape is Ping:
        # EMIT 2.3: whatever else the frame holds.
        return Ping()
    try:
        message = msgspec.convert(frame, shape)
    except msgspec.ValidationError as error:
        raise refuse_field(str(error)) from error
    _check(message, limits)
    return message


def nothing_waits(message: ToolResult | PromptUserResponse) -> RemoteProtocolError:
    """Return the error for an answer that nobody waits for. Spec: Rulings E15, E24."""
    if isinstance(message, ToolResult):
        return refuse(
            f"no client tool waits under tool_use_id {message.tool_use_id!r}",
            code="UNKNOWN_TOOL_USE_ID",
            field="tool_use_id",
            user_message="Nothing waits for this result any more.",
        )
    return refuse(
        f"no prompt waits under request_id {message.request_id!r}",
        code="UNKNOWN_REQUEST_ID",
        field="request_id",
        user_message="This question was answered before, or its time is over.",
    )


# msgspec words its errors "Expected `str`, got `int` - at `$.last_seq`".
_LOCATED = re.compile(r"(?P<problem>.*) - at `(?P<path>\$?.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
_EXPECTED = re.compile(r"Expected (?P<allowed>.*?)(, got `(?P<got>.*)`)?")

#: What msgspec does not name, and it repeats what the client wrote, at any length.
_WORDS_OF_FIELD: dict[str, tuple[str, ...]] = {
    "coordinator_mode": get_args(CoordinatorMode),
    "plan_confirmation": get_args(PlanConfirmation),
    "status": get_args(ToolResultStatus),
}


def refuse_field(validation: str, *, under: str = "") -> RemoteProtocolError:
    """Return the error for a field that has not the shape that it should have.

    Args:
        validation: What msgspec said.
        under: Path of what was validated; "" for the frame itself.
    """
    located = _LOCATED.fullmatch(validation)
    problem, path = (
        (located["problem"], located["path"]) if located else (validation, "$")
    )
    path = f"{under}{path.removeprefix('$')}".lstrip(".")
    missing = _MISSING.fullmatch(problem)
    if missing is not None:
        field = f"{path}.{missing['name']}" if path else missing["name"]
        return refuse(f"{field} is missing", code="MISSING_FIELD", field=field)
    expected = _EXPECTED.fullmatch(problem)
    if expected is None:
        return refuse(
            f"{path} is none of the words allowed",
            code="INVALID_FIELD",
            field=path,
            allowed=", ".join(_WORDS_OF_FIELD[path]),
        )
    return refuse(
        f"{path} is {expected['got'] or 'out of bounds'}",
        code="INVALID_FIELD",
        field=path,
        allowed=expected["allowed"].replace("`", ""),
    )


def _check(message: AnyClientMessage, limits: FrameLimits) -> None:
    if isinstance(message, UserMessage):
        check_blocks(blocks_of(message), limits.blocks)
    elif isinstance(message, SessionCreate) and message.session_id is not None:
        check_session_id(message.session_id)
    elif isinstance(message, UserInject) and _names_files(message.content):
        # Not ignored like other unknown fields: they would get lost unseen.
        raise refuse(
            "content of a user.inject holds files",
            code="UNSUPPORTED_FIELD",
            field="content",
            allowed="text; files go with a user.message",
        )


def _names_files(content: JSONValue) -> bool:
    blocks = content if isinstance(content, list) else [content]
    return any(
        isinstance(block, dict) and block.get("type") in FILE_TYPES for block in blocks
    )


def check_session_id(session_id: str) -> None:
    """Refuse a session id of a shape that no session may have.

    Raises:
        RemoteProtocolError: The id has other characters or another length.

    Spec: Ruling E1.
    """
    if not is_session_id(session_id):
        raise refuse(
            "session_id is not a valid session id",
            code="INVALID_SESSION_ID",
            field="session_id",
            allowed=SESSION_ID_ALLOWED,
        )


def blocks_of(message: UserMessage) -> list[ContentBlock]:
    """Return the blocks of a message in order, whichever shorthand it used.

    `content` wins over `text`; a single object stands for a list of one.

    Spec: EMIT 9, 14.1.
    """
    if isinstance(message.content, ContentBlock):
        return [message.content]
    if message.content is not None:
        return list(message.content)
    if message.text is not None:
        return [ContentBlock(text=message.text)]
    return []


def has_files(message: UserMessage) -> bool:
    """Tell whether files go with a message."""
    return any(map(is_file, blocks_of(message)))


def text_of(message: UserMessage) -> str:
    """Return the text blocks of a message joined by blank lines. Spec: EMIT 9."""
    return "\n\n".join(
        block.text
        for block in blocks_of(message)
        if block.type == "text" and block.text
    )
