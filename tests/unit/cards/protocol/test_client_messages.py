from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.protocol.client_messages import (
    ClientMessage,
    Ping,
    PromptUserResponse,
    SessionCreate,
    SessionInterrupt,
    SessionResume,
    ToolResult,
    UserInject,
    UserMessage,
    blocks_of,
    check_session_id,
    read_client_message,
    text_of,
)
from cards.protocol.errors import ErrorInfo, RemoteProtocolError
from cards.protocol.kinds import ErrorType
from cards.protocol.user_blocks import MAX_BLOCKS, ContentBlock, Source

Frame = dict[str, Any]

TEXT_BLOCK = {"type": "text", "text": "Hi"}

#: A frame of each type with no more than it needs.
MINIMAL: dict[str, Frame] = {
    "session.create": {"type": "session.create"},
    "user.message": {"type": "user.message", "text": "Hi"},
    "user.inject": {"type": "user.inject", "text": "Hi"},
    "tool.result": {"type": "tool.result", "tool_use_id": "t1", "status": "ok"},
    "prompt.user_response": {
        "type": "prompt.user_response",
        "request_id": "req_1",
        "decision": "approved",
    },
    "session.interrupt": {"type": "session.interrupt"},
    "session.resume": {"type": "session.resume", "trace_id": "tr_1"},
    "ping": {"type": "ping"},
}

NUMBERS = [0, -1, 1, 2**31, 2**53, 2**63, 2**64, 10**40, -(10**40), 1.0, 2.5]
NO_STRING = [*NUMBERS, True, False, [], {}, ["a"]]
NO_OBJECT = [*NUMBERS, True, "yes", "", []]
NO_BOOL = [0, 1, 1.0, "true", "", [], {}, None]

REQUIRED_IDS = [
    ("tool.result", "tool_use_id"),
    ("prompt.user_response", "request_id"),
    ("session.resume", "trace_id"),
]
OPTIONAL_IDS = [
    ("session.create", "session_id"),
    ("user.message", "event_id"),
    ("user.inject", "trace_id"),
    ("session.interrupt", "trace_id"),
]
IDS = REQUIRED_IDS + OPTIONAL_IDS
REQUIRED_STRINGS = [
    *REQUIRED_IDS,
    ("user.inject", "text"),
    ("tool.result", "status"),
    ("prompt.user_response", "decision"),
]
OPTIONAL_STRINGS = [
    *OPTIONAL_IDS,
    ("user.message", "text"),
    ("user.message", "coordinator_mode"),
    ("user.message", "plan_confirmation"),
]
OBJECTS = [
    ("tool.result", "metadata"),
    ("prompt.user_response", "payload"),
    ("session.resume", "message_cursors"),
]
ANYTHING = [
    ("session.create", "capabilities"),
    ("tool.result", "output"),
    ("tool.result", "error"),
]
FIELDS = sorted(
    {field for _, field in REQUIRED_STRINGS + OPTIONAL_STRINGS + OBJECTS}
    | {"content", "last_seq", "clear_queue"}
)
WORDS = [
    ("user.message", "coordinator_mode", ["react", "plan"]),
    ("user.message", "plan_confirmation", ["auto", "required"]),
    (
        "tool.result",
        "status",
        ["success", "ok", "error", "denied", "timeout", "cancelled"],
    ),
]


def refusal_of(frame: Any) -> ErrorInfo:
    with pytest.raises(RemoteProtocolError) as caught:
        read_client_message(frame)
    error = caught.value.error
    assert error.type is ErrorType.INVALID_INPUT
    assert not caught.value.closes_connection
    return error


def details_of(frame: Any) -> Frame:
    details = refusal_of(frame).details
    assert isinstance(details, dict)
    return details


def user_message(content: object) -> Frame:
    return {"type": "user.message", "content": content}


def read_user_message(frame: Frame) -> UserMessage:
    message = read_client_message(frame)
    assert isinstance(message, UserMessage)
    return message


class TestReadClientMessage:
    @pytest.mark.parametrize(
        ("frame_type", "message"),
        [
            ("session.create", SessionCreate()),
            ("user.message", UserMessage(text="Hi")),
            ("user.inject", UserInject(text="Hi")),
            ("tool.result", ToolResult(tool_use_id="t1", status="ok")),
            (
                "prompt.user_response",
                PromptUserResponse(request_id="req_1", decision="approved"),
            ),
            ("session.interrupt", SessionInterrupt()),
            ("session.resume", SessionResume(trace_id="tr_1")),
            ("ping", Ping()),
        ],
    )
    def test_reads_a_frame_of_each_type(
        self, frame_type: str, message: ClientMessage
    ) -> None:
        """Spec: EMIT 9."""
        assert read_client_message(MINIMAL[frame_type]) == message

    def test_reads_every_field_of_every_type(self) -> None:
        """Spec: EMIT 7.3, 9; Rulings E9, E22."""
        messages: list[ClientMessage] = [
            SessionCreate(session_id="sess_1", capabilities={"streaming": True}),
            UserMessage(
                event_id="c1",
                content=[ContentBlock(text="Hi", source=Source(type="path"), name="n")],
                text="echo",
                coordinator_mode="plan",
                plan_confirmation="required",
            ),
            UserInject(text="Hi", trace_id="tr_1"),
            ToolResult(
                tool_use_id="t1",
                status="error",
                output=[1],
                error={"message": "no"},
                metadata={"exit": 1},
            ),
            PromptUserResponse(
                request_id="req_1", decision="retry", payload={"note": ""}
            ),
            SessionInterrupt(trace_id="tr_1", clear_queue=True),
            SessionResume(trace_id="tr_1", last_seq=42, message_cursors={"m": 1}),
        ]

        frames = [msgspec.to_builtins(message) for message in messages]

        assert [read_client_message(frame) for frame in frames] == messages

    @pytest.mark.parametrize("frame_type", MINIMAL)
    def test_ignores_unknown_fields(self, frame_type: str) -> None:
        """Spec: Ruling E22."""
        frame = MINIMAL[frame_type]

        assert read_client_message(frame | {"x": [1]}) == read_client_message(frame)

    @pytest.mark.parametrize(
        "frame", [[], [{"type": "ping"}], "ping", None, 42, 1.5, True], ids=repr
    )
    def test_refuses_a_frame_that_is_no_object(self, frame: object) -> None:
        """Sample w01. Spec: EMIT 9."""
        error = refusal_of(frame)

        assert error.code == "NOT_AN_OBJECT"
        assert error.details == {"allowed": 'an object with a "type"'}

    @pytest.mark.parametrize(
        "frame",
        [
            {},
            {"type": None},
            {"type": "card.add", "payload": {}},
            {"type": "pong"},
            {"type": "no.such.type"},
            {"type": "PING"},
            {"type": " ping"},
            {"type": ""},
            {"type": 1},
            {"type": ["ping"]},
            {"type": {"ping": 1}},
        ],
        ids=repr,
    )
    def test_refuses_an_unknown_type(self, frame: Frame) -> None:
        """Sample w01; a server's type is none of a client's. Spec: Ruling E22."""
        error = refusal_of(frame)

        assert error.code == "UNKNOWN_FRAME_TYPE"
        assert error.details == {"field": "type", "allowed": ", ".join(MINIMAL)}

    @pytest.mark.parametrize(("frame_type", "field"), REQUIRED_STRINGS)
    def test_names_a_required_field_that_is_missing(
        self, frame_type: str, field: str
    ) -> None:
        """Spec: EMIT 9; Ruling E22."""
        frame = {k: v for k, v in MINIMAL[frame_type].items() if k != field}

        error = refusal_of(frame)

        assert error.code == "MISSING_FIELD"
        assert error.details == {"field": field}

    @pytest.mark.parametrize("value", NO_STRING, ids=repr)
    @pytest.mark.parametrize(
        ("frame_type", "field"), REQUIRED_STRINGS + OPTIONAL_STRINGS
    )
    def test_takes_only_strings_as_strings(
        self, frame_type: str, field: str, value: object
    ) -> None:
        """No number is taken for its digits. Spec: EMIT 9; Ruling E22."""
        error = refusal_of(MINIMAL[frame_type] | {field: value})

        optional = (frame_type, field) in OPTIONAL_STRINGS
        assert error.code == "INVALID_FIELD"
        assert error.details == {
            "field": field,
            "allowed": "str | null" if optional else "str",
        }

    @pytest.mark.parametrize(("frame_type", "field"), REQUIRED_STRINGS)
    def test_refuses_null_for_a_required_field(
        self, frame_type: str, field: str
    ) -> None:
        """Spec: EMIT 9."""
        details = details_of(MINIMAL[frame_type] | {field: None})

        assert details == {"field": field, "allowed": "str"}

    @pytest.mark.parametrize(
        ("frame_type", "field"), [*OPTIONAL_STRINGS, *OBJECTS, *ANYTHING]
    )
    def test_takes_null_for_a_field_left_out(self, frame_type: str, field: str) -> None:
        """Spec: EMIT 9."""
        frame = MINIMAL[frame_type] | {"content": [TEXT_BLOCK]}

        message = read_client_message(frame | {field: None})

        assert getattr(message, field) is None

    @pytest.mark.parametrize(("frame_type", "field"), IDS)
    def test_takes_ids_up_to_128_characters(self, frame_type: str, field: str) -> None:
        """Spec: Ruling E22."""
        message = read_client_message(MINIMAL[frame_type] | {field: "x" * 128})

        assert getattr(message, field) == "x" * 128

    @pytest.mark.parametrize(
        ("value", "allowed"),
        [("", "str of length >= 1"), ("x" * 129, "str of length <= 128")],
        ids=["empty", "too-long"],
    )
    @pytest.mark.parametrize(("frame_type", "field"), IDS)
    def test_refuses_ids_of_other_lengths(
        self, frame_type: str, field: str, value: str, allowed: str
    ) -> None:
        """Spec: Ruling E22."""
        details = details_of(MINIMAL[frame_type] | {field: value})

        assert details == {"field": field, "allowed": allowed}

    @pytest.mark.parametrize(("frame_type", "field", "words"), WORDS)
    def test_takes_each_word_of_a_closed_set(
        self, frame_type: str, field: str, words: list[str]
    ) -> None:
        """Spec: EMIT 9; emit-tables 6."""
        frames = [MINIMAL[frame_type] | {field: word} for word in words]

        read = [getattr(read_client_message(frame), field) for frame in frames]

        assert read == words

    @pytest.mark.parametrize("value", ["", "no-such-word", "REACT", "x" * 100_000])
    @pytest.mark.parametrize(("frame_type", "field", "words"), WORDS)
    def test_names_the_words_of_a_closed_set(
        self, frame_type: str, field: str, words: list[str], value: str
    ) -> None:
        """What the client wrote is not repeated, however long. Spec: Ruling E22."""
        error = refusal_of(MINIMAL[frame_type] | {field: value})

        assert error.code == "INVALID_FIELD"
        assert error.details == {"field": field, "allowed": ", ".join(words)}
        assert len(error.message) < 200

    @pytest.mark.parametrize("value", NO_OBJECT, ids=repr)
    @pytest.mark.parametrize(("frame_type", "field"), OBJECTS)
    def test_takes_only_objects_as_objects(
        self, frame_type: str, field: str, value: object
    ) -> None:
        """Spec: EMIT 7.3, 9; Ruling E5."""
        details = details_of(MINIMAL[frame_type] | {field: value})

        assert details == {"field": field, "allowed": "object | null"}

    @pytest.mark.parametrize("value", [*NO_OBJECT, {"a": [10**40]}], ids=repr)
    @pytest.mark.parametrize(("frame_type", "field"), ANYTHING)
    def test_takes_any_json_where_any_is_meant(
        self, frame_type: str, field: str, value: object
    ) -> None:
        """Spec: EMIT 9."""
        message = read_client_message(MINIMAL[frame_type] | {field: value})

        assert getattr(message, field) == value

    @pytest.mark.parametrize("value", NO_BOOL, ids=repr)
    def test_takes_only_booleans_as_booleans(self, value: object) -> None:
        """Spec: Ruling E9."""
        frame = {"type": "session.interrupt", "clear_queue": value}

        assert details_of(frame) == {"field": "clear_queue", "allowed": "bool"}

    @given(
        st.sampled_from(sorted(MINIMAL)),
        st.dictionaries(
            st.sampled_from(FIELDS),
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats()
            | st.text(max_size=5)
            | st.lists(st.none() | st.just(TEXT_BLOCK) | st.just({"type": 1}))
            | st.dictionaries(st.sampled_from(["type", "text"]), st.text(max_size=5)),
        ),
    )
    def test_reads_or_refuses_whatever_the_fields_hold(
        self, frame_type: str, fields: Frame
    ) -> None:
        """Each violation is one invalid_input error. Spec: Ruling E22."""
        frame: Frame = {"type": frame_type} | fields

        try:
            outcome: object = read_client_message(frame)
        except RemoteProtocolError as refused:
            outcome = refused.error.details

        assert isinstance(outcome, ClientMessage) or (
            isinstance(outcome, dict) and outcome["field"]
        )


class TestPing:
    @pytest.mark.parametrize(
        "more",
        [{}, {"x": 10**40}, {"text": 1, "trace_id": None}, {"deep": [[[]]]}],
        ids=repr,
    )
    def test_is_a_ping_whatever_else_it_holds(self, more: Frame) -> None:
        """Sample w04. Spec: EMIT 2.3; Ruling E25."""
        assert read_client_message(MINIMAL["ping"] | more) == Ping()


class TestSessionCreate:
    def test_takes_an_id_of_the_client(self) -> None:
        """Sample w05. Spec: Ruling E1."""
        frame: Frame = {"type": "session.create", "session_id": "sess_lab_01"}

        assert read_client_message(frame) == SessionCreate(session_id="sess_lab_01")

    @pytest.mark.parametrize(
        "session_id", ["sess_实验", "sess lab", "../x", "a\n", "\ufffd"], ids=ascii
    )
    def test_refuses_an_id_of_other_characters(self, session_id: str) -> None:
        """Sample w05. Spec: Ruling E1."""
        error = refusal_of({"type": "session.create", "session_id": session_id})

        assert error.code == "INVALID_SESSION_ID"
        assert error.details == {
            "field": "session_id",
            "allowed": "1 to 128 of the characters A-Z a-z 0-9 . _ : -",
        }


class TestCheckSessionId:
    def test_lets_a_good_id_pass(self) -> None:
        """Spec: Ruling E1."""
        session_id = "x" * 128

        check_session_id(session_id)

        assert read_client_message(
            {"type": "session.create", "session_id": session_id}
        ) == SessionCreate(session_id=session_id)

    @pytest.mark.parametrize("session_id", ["", "x" * 129, "a/b"])
    def test_refuses_a_bad_one(self, session_id: str) -> None:
        """The id in the URL passes no decoder. Spec: Ruling E1."""
        with pytest.raises(RemoteProtocolError) as caught:
            check_session_id(session_id)

        assert caught.value.error.code == "INVALID_SESSION_ID"


class TestUserMessage:
    @pytest.mark.parametrize(
        "fields",
        [
            {"content": [TEXT_BLOCK]},
            {"content": TEXT_BLOCK},
            {"content": {"text": "Hi"}},
            {"content": [{"text": "Hi"}]},
            {"text": "Hi"},
            {"text": "Hi", "content": None},
        ],
        ids=["list", "object", "untyped-object", "untyped-block", "text", "null"],
    )
    def test_is_read_from_every_shorthand(self, fields: Frame) -> None:
        """Spec: EMIT 9, 14.1."""
        message = read_user_message({"type": "user.message"} | fields)

        assert blocks_of(message) == [ContentBlock(type="text", text="Hi")]

    @pytest.mark.parametrize(
        "fields", [{}, {"content": None}, {"content": []}, {"content": [], "text": "x"}]
    )
    def test_is_refused_without_a_block(self, fields: Frame) -> None:
        """Sample w01. Spec: EMIT 9."""
        error = refusal_of({"type": "user.message"} | fields)

        assert error.code == "EMPTY_MESSAGE"
        assert error.details == {"field": "content", "allowed": "at least one block"}

    @pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000"], ids=ascii)
    def test_is_refused_without_a_word(self, text: str) -> None:
        """Spec: EMIT 9."""
        error = refusal_of(user_message([{"type": "text", "text": text}] * 2))

        assert error.code == "EMPTY_MESSAGE"
        assert error.details == {
            "field": "content",
            "allowed": "at least one text block with text, or one with a file",
        }

    @pytest.mark.parametrize("content", ["Hi", "", *NUMBERS, True], ids=repr)
    def test_is_refused_with_bare_content(self, content: object) -> None:
        """Sample w01: no bare string. Spec: EMIT 9; Ruling E22."""
        details = details_of(user_message(content))

        assert details == {"field": "content", "allowed": "object | array | null"}

    @pytest.mark.parametrize("block", [None, 1, "Hi", [], True], ids=repr)
    def test_is_refused_with_a_block_that_is_no_object(self, block: object) -> None:
        """Spec: EMIT 9; Ruling E22."""
        details = details_of(user_message([TEXT_BLOCK, block]))

        assert details == {"field": "content[1]", "allowed": "object"}

    @pytest.mark.parametrize("block", [{"type": "text"}, {}], ids=repr)
    @pytest.mark.parametrize("text", [{}, {"text": None}], ids=["missing", "null"])
    def test_is_refused_with_a_text_block_without_text(
        self, block: Frame, text: Frame
    ) -> None:
        """Sample w01. Spec: EMIT 9; Ruling E22."""
        error = refusal_of(user_message([TEXT_BLOCK, block | text]))

        assert error.code == "MISSING_FIELD"
        assert error.details == {"field": "content[1].text"}

    @pytest.mark.parametrize("value", NO_STRING, ids=repr)
    @pytest.mark.parametrize("field", ["text", "name"])
    def test_names_a_field_of_a_block_that_is_no_string(
        self, field: str, value: object
    ) -> None:
        """Spec: Ruling E22."""
        details = details_of(user_message([TEXT_BLOCK, TEXT_BLOCK | {field: value}]))

        assert details == {"field": f"content[1].{field}", "allowed": "str | null"}

    @pytest.mark.parametrize("value", NO_STRING, ids=repr)
    @pytest.mark.parametrize(
        "field", ["type", "media_type", "data", "url", "path", "artifact_id"]
    )
    def test_names_a_field_of_a_source_that_is_no_string(
        self, field: str, value: object
    ) -> None:
        """Sample w06. Spec: Ruling E22."""
        block = TEXT_BLOCK | {"source": {field: value}}

        details = details_of(user_message([block]))

        assert details == {
            "field": f"content[0].source.{field}",
            "allowed": "str | null",
        }

    @pytest.mark.parametrize("source", [1, "path", [], True], ids=repr)
    def test_is_refused_with_a_source_that_is_no_object(self, source: object) -> None:
        """Spec: Ruling E22."""
        details = details_of(user_message(TEXT_BLOCK | {"source": source}))

        assert details == {"field": "content.source", "allowed": "object | null"}

    def test_may_have_256_blocks(self) -> None:
        message = read_user_message(user_message([TEXT_BLOCK] * MAX_BLOCKS))

        assert len(blocks_of(message)) == 256

    def test_is_refused_with_a_block_more(self) -> None:
        """Spec: Ruling E22."""
        error = refusal_of(user_message([TEXT_BLOCK] * (MAX_BLOCKS + 1)))

        assert error.code == "TOO_MANY_BLOCKS"
        assert error.details == {"field": "content", "allowed": "at most 256"}


class TestBlocksOf:
    def test_prefers_content_to_text(self) -> None:
        """Spec: EMIT 9."""
        message = UserMessage(content=[ContentBlock(text="a")], text="b")

        assert blocks_of(message) == [ContentBlock(text="a")]

    def test_gives_nothing_for_an_empty_message(self) -> None:
        assert blocks_of(UserMessage()) == []

    def test_keeps_the_order(self) -> None:
        message = UserMessage(content=[ContentBlock(text=t) for t in "cab"])

        assert [block.text for block in blocks_of(message)] == ["c", "a", "b"]


class TestTextOf:
    def test_joins_the_texts_by_blank_lines(self) -> None:
        """Spec: EMIT 9."""
        message = UserMessage(
            content=[
                ContentBlock(text="a"),
                ContentBlock(text=""),
                ContentBlock(type="image", text="alt"),
                ContentBlock(text="b"),
            ]
        )

        assert text_of(message) == "a\n\nb"

    def test_is_empty_without_text(self) -> None:
        assert text_of(UserMessage()) == ""


class TestUserInject:
    def test_is_refused_without_a_word(self) -> None:
        """Spec: EMIT 9."""
        details = details_of({"type": "user.inject", "text": ""})

        assert details == {"field": "text", "allowed": "str of length >= 1"}

    @pytest.mark.parametrize("block_type", ["image", "file", "pdf"])
    @pytest.mark.parametrize("is_list", [True, False])
    def test_is_refused_with_files(self, block_type: str, is_list: bool) -> None:
        """They would get lost unseen. Spec: Rulings E22, E23."""
        block = {"type": block_type}
        content = [TEXT_BLOCK, block] if is_list else block

        error = refusal_of({"type": "user.inject", "text": "Hi", "content": content})

        assert error.code == "UNSUPPORTED_FIELD"
        assert error.details == {
            "field": "content",
            "allowed": "text; files go with a user.message",
        }

    @pytest.mark.parametrize(
        "content", [None, [], [TEXT_BLOCK], TEXT_BLOCK, "x", 0, [[]], {"type": []}]
    )
    def test_may_hold_what_is_ignored(self, content: object) -> None:
        """Spec: Ruling E22."""
        frame: Frame = {"type": "user.inject", "text": "Hi", "content": content}

        message = read_client_message(frame)

        assert isinstance(message, UserInject)
        assert message.text == "Hi"


class TestPromptUserResponse:
    @pytest.mark.parametrize("decision", ["approved", "maybe", ""])
    def test_takes_any_word_as_decision(self, decision: str) -> None:
        """Which are legal depends on the prompt. Spec: EMIT 7.3; Ruling E16."""
        frame = MINIMAL["prompt.user_response"] | {"decision": decision}

        message = read_client_message(frame)

        assert message == PromptUserResponse(request_id="req_1", decision=decision)


class TestSessionResume:
    @pytest.mark.parametrize(
        "last_seq", [0, 1, 999_999, 2**31 - 1, 2**31, 2**32, 2**53 - 1]
    )
    def test_takes_whole_numbers_up_to_2_53(self, last_seq: int) -> None:
        """Sample w02. Spec: EMIT 2.4.1; Ruling E5."""
        frame = MINIMAL["session.resume"] | {"last_seq": last_seq}

        message = read_client_message(frame)

        assert message == SessionResume(trace_id="tr_1", last_seq=last_seq)

    def test_takes_a_missing_last_seq_as_zero(self) -> None:
        """Sample w02. Spec: Ruling E5."""
        message = read_client_message(MINIMAL["session.resume"])

        assert message == SessionResume(trace_id="tr_1", last_seq=0)

    @pytest.mark.parametrize("last_seq", [-1, -(2**31), -(2**63), -(2**64), -(10**40)])
    def test_refuses_negative_numbers(self, last_seq: int) -> None:
        """Sample w02. Spec: Ruling E22."""
        details = details_of(MINIMAL["session.resume"] | {"last_seq": last_seq})

        assert details == {"field": "last_seq", "allowed": "int >= 0"}

    @pytest.mark.parametrize("last_seq", [2**53, 2**63, 2**64, 10**40])
    def test_refuses_numbers_that_a_browser_cannot_count_to(
        self, last_seq: int
    ) -> None:
        """Spec: Ruling E22."""
        details = details_of(MINIMAL["session.resume"] | {"last_seq": last_seq})

        assert details == {"field": "last_seq", "allowed": "int <= 9007199254740991"}

    @pytest.mark.parametrize(
        "last_seq", ["3", "", 2.5, 3.0, 1e300, True, False, None, [], {}], ids=repr
    )
    def test_refuses_what_is_no_whole_number(self, last_seq: object) -> None:
        """Sample w02: nothing is coerced. Spec: Ruling E22."""
        details = details_of(MINIMAL["session.resume"] | {"last_seq": last_seq})

        assert details == {"field": "last_seq", "allowed": "int"}
