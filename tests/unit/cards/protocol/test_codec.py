import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.protocol.client_messages import (
    ClientMessage,
    FrameLimits,
    Ping,
    SessionResume,
    UserMessage,
)
from cards.protocol.codec import (
    PONG,
    decode_client_message,
    decode_json,
    encode_event,
    name_message,
)
from cards.protocol.errors import ErrorInfo, LocalProtocolError, RemoteProtocolError
from cards.protocol.events import CardAppend, CardSet
from cards.protocol.json_form import MAX_DEPTH
from cards.protocol.kinds import CardKind, Channel, ErrorType
from cards.protocol.payloads import AppendPayload, ToolPayload
from tests.unit.cards.protocol.frames import make_envelope, wire

BOM = "\ufeff"


def refusal_of(text: str) -> ErrorInfo:
    with pytest.raises(RemoteProtocolError) as caught:
        decode_client_message(text)
    error = caught.value.error
    assert error.type is ErrorType.INVALID_INPUT
    assert not caught.value.closes_connection
    return error


def append(text: str) -> CardAppend:
    return CardAppend(
        envelope=make_envelope(CardKind.MESSAGE),
        payload=AppendPayload(channel=Channel.TEXT, chunk=text),
    )


class TestPong:
    def test_has_no_envelope(self) -> None:
        """Spec: EMIT 2.3; Ruling E25."""
        assert json.loads(PONG) == {"type": "pong"}


class TestEncodeEvent:
    def test_writes_utf8_with_nothing_escaped_that_need_not_be(self) -> None:
        """Spec: Ruling E6."""
        data = encode_event(append("列目录 <b>&\u2028\U0001f600"))

        assert "列目录 <b>&\u2028\U0001f600".encode() in data

    def test_writes_one_line_without_blanks(self) -> None:
        data = encode_event(append("a\nb"))

        assert data.startswith(b'{"type":"card.append","envelope":{"event_id":')
        assert data.endswith(b'"payload":{"channel":"text","chunk":"a\\nb"}}')

    @pytest.mark.parametrize("half", ["\ud83d", "a\ude00"], ids=ascii)
    def test_refuses_text_that_utf8_cannot_carry(self, half: str) -> None:
        """A bug on our side. Spec: EMIT 3.1."""
        with pytest.raises(LocalProtocolError, match="cannot be encoded"):
            encode_event(append(half))

    @given(st.text(st.characters(codec="utf-8")))
    def test_loses_no_character(self, text: str) -> None:
        """Spec: EMIT 3.1; Ruling E6."""
        assert wire(append(text))["payload"]["chunk"] == text

    @given(st.integers(0, MAX_DEPTH))
    def test_writes_a_payload_of_any_depth(self, levels: int) -> None:
        value: Any = 1
        for _ in range(levels):
            value = {"a": [value]}

        event = CardSet(
            envelope=make_envelope(CardKind.TOOL), payload=ToolPayload(output=value)
        )

        assert wire(event)["payload"]["output"] == value


class TestDecodeClientMessage:
    @pytest.mark.parametrize(
        "text",
        [
            '{"type":"ping"}',
            ' \t\r\n{"type":"ping"} \t\r\n',
            '{ "type" : "ping" }',
            '{"type":"\\u0070ing"}',
            '{"type":"ping","n":123456789012345678901234567890}',
            '{"type":"ping","x":1e308}',
            '{"type":"ping","text":"\\ud83d\\ude00"}',
        ],
        ids=["plain", "blanks", "inside", "escape", "huge-int", "float", "pair"],
    )
    def test_reads_odd_but_strict_json(self, text: str) -> None:
        """Samples w01, w04. Spec: EMIT 2.3; Rulings E22, E25."""
        assert decode_client_message(text) == Ping()

    @pytest.mark.parametrize(
        "text",
        [
            "",
            " ",
            '{"type":"ping"',
            '{"type":"ping"}{"type":"ping"}',
            '{"type":"ping"} x',
            "{'type':'ping'}",
            '{"type":"ping",}',
            "{type:1}",
            '{"type":"ping","x":01}',
            '{"type":"ping","x":+1}',
            '{"type":"ping","x":.5}',
            '{"type":"ping","x":0x1}',
            '{"type":"ping","x":"\n"}',
            '{"type":"ping","x":"\\x41"}',
            '{"type":"ping","x":"\\u12"}',
            '{"type":"ping"/*no*/}',
            "[1,]",
            "True",
            "\u00a0{}",
            "\x00",
            BOM + '{"type":"ping"}',
            "\ud800",
        ],
        ids=ascii,
    )
    def test_refuses_what_is_no_json(self, text: str) -> None:
        """Samples w01, w04. Spec: Ruling E22."""
        error = refusal_of(text)

        assert error.code == "INVALID_JSON"
        assert error.details == {"allowed": "one JSON object per text frame"}

    @pytest.mark.parametrize(
        "number",
        ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 401, "1" * 5000],
        ids=lambda number: number[:12] + f"-{len(number)}",
    )
    def test_refuses_numbers_that_are_none(self, number: str) -> None:
        """Sample w04. Spec: Ruling E22."""
        error = refusal_of(f'{{"type":"ping","x":[{number}]}}')

        assert error.code == "INVALID_NUMBER"
        assert error.details == {"allowed": "finite numbers"}

    @pytest.mark.parametrize(
        ("text", "field"),
        [
            ('{"type":"ping","x":1,"x":2}', "x"),
            ('{"type":"ping","x":1,"x":1}', "x"),
            ('{"type":"ping","type":"ping"}', "type"),
            ('{"type":"ping","a":[{"b":1,"c":2,"b":3}]}', "b"),
            ('{"type":"ping","x":1,"\\u0078":2}', "x"),
            ('{"a\\u0000":1,"a\\u0000":2}', "a\ufffd"),
            ('{"a\\u0000":1,"a\\ufffd":2}', "a\ufffd"),
            ('{"\\ud800":1,"\\ud800":2}', "\ufffd"),
            (f'{{"{"k" * 500}":1,"{"k" * 500}":2}}', "k" * 200),
        ],
        ids=[
            "twice",
            "equal",
            "type",
            "inside",
            "escaped",
            "nul",
            "nul-and-its-replacement",
            "half-pair",
            "long",
        ],
    )
    def test_refuses_a_key_that_is_given_twice(self, text: str, field: str) -> None:
        """Sample w04; also after NUL was replaced. Spec: Ruling E22."""
        error = refusal_of(text)

        assert error.code == "DUPLICATE_KEY"
        assert error.details == {"field": field, "allowed": "each key once"}

    @pytest.mark.parametrize(
        ("text", "field"),
        [
            (
                '{"type":"user.message","content":[{"type":"text","text":"\\ud83d"}]}',
                "content[0].text",
            ),
            ('{"type":"ping","x":"\\ude00\\ud83d"}', "x"),
            ('{"type":"ping","x":"\ud83d"}', "x"),
            ('{"a":{"b":["",["\\ud800"]]}}', "a.b[1][0]"),
            ('{"type":"ping","\\ud800":1}', "\ufffd"),
            ('{"a":[{"\\ud800":1}]}', "a[0].\ufffd"),
            ('{"a\\u0000":"\\ud800"}', "a\ufffd"),
            (f'{{"{"k" * 500}":"\\ud800"}}', "k" * 200),
            (
                f'{{"{"k" * 150}":{{"{"k" * 150}":"\\ud800"}}}}',
                "k" * 150 + "." + 49 * "k",
            ),
        ],
        ids=[
            "w04",
            "wrong-order",
            "raw",
            "deep",
            "key",
            "deep-key",
            "nul",
            "long",
            "long-path",
        ],
    )
    def test_refuses_half_of_a_surrogate_pair(self, text: str, field: str) -> None:
        """Sample w04; in values and in keys. Spec: Ruling E22."""
        error = refusal_of(text)

        assert error.code == "INVALID_UNICODE"
        assert error.details == {"field": field, "allowed": "whole Unicode characters"}

    def test_names_no_field_when_the_frame_is_the_string(self) -> None:
        """Spec: Ruling E22."""
        assert refusal_of('"\\ud800"').details == {
            "allowed": "whole Unicode characters"
        }

    def test_replaces_nul_before_the_message_is_read(self) -> None:
        """Spec: Ruling E22."""
        message = decode_client_message(
            '{"type":"session.resume","trace_id":"a\\u0000","message_cursors":'
            '{"k\\u0000":["v\\u0000"]}}'
        )

        assert message == SessionResume(
            trace_id="a\ufffd", message_cursors={"k\ufffd": ["v\ufffd"]}
        )

    @pytest.mark.parametrize(
        ("opening", "closing"), [("[", "]"), ('{"a":', "}")], ids=["arrays", "objects"]
    )
    def test_reads_64_levels(self, opening: str, closing: str) -> None:
        """The frame's own object is one of them. Spec: Ruling E22."""
        levels = MAX_DEPTH - 1
        text = f'{{"type":"ping","deep":{opening * levels}1{closing * levels}}}'

        assert decode_client_message(text) == Ping()

    @pytest.mark.parametrize("levels", [MAX_DEPTH, 900, 20_000])
    @pytest.mark.parametrize(
        ("opening", "closing"), [("[", "]"), ('{"a":', "}")], ids=["arrays", "objects"]
    )
    def test_refuses_more_levels(self, opening: str, closing: str, levels: int) -> None:
        """Spec: Ruling E22."""
        text = f'{{"type":"ping","deep":{opening * levels}1{closing * levels}}}'

        error = refusal_of(text)

        assert error.code == "TOO_DEEP"
        assert error.details == {"allowed": "at most 64 levels"}

    @pytest.mark.parametrize("text", ["[" * 20_000, '{"a":' * 20_000, "[{" * 20_000])
    def test_refuses_levels_without_an_end(self, text: str) -> None:
        """Spec: Ruling E22."""
        assert refusal_of(text).code in {"TOO_DEEP", "INVALID_JSON"}

    def test_reads_many_values_below_a_long_key(self) -> None:
        """The path to each of them is not built at full length. Spec: Ruling E22."""
        text = f'{{"type":"ping","{"k" * 2_000_000}":[{"0," * 1_000_000}0]}}'

        assert decode_client_message(text) == Ping()


TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**60), 10**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(
                st.characters(codec="utf-8", exclude_characters="\0"),
                max_size=4,
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)

#: Pieces of JSON, right and wrong, that fuzzed frames are made of.
PIECES = st.lists(
    st.sampled_from(
        [
            *'{}[]",:\\ \n-+.eE0é\x00\ud800\ufeff',
            *('"type"', '"ping"', '"session.resume"', '"trace_id"', '"user.message"'),
            *('"content"', '"text"', "null", "true", "12", "NaN", "1e999"),
            *("\\u0000", "\\ud83d"),
        ]
    ),
    max_size=30,
).map("".join)


class TestDecodeJson:
    @pytest.mark.parametrize(
        "text", ["null", "true", "42", '"a"', "[]", "{}", "1.5", "-0"], ids=str
    )
    def test_reads_any_json_value(self, text: str) -> None:
        assert decode_json(text) == json.loads(text)

    def test_keeps_every_digit_of_a_huge_integer(self) -> None:
        """Sample w04. Spec: Ruling E22."""
        assert decode_json("9" * 400) == int("9" * 400)

    @given(TREES, st.booleans())
    def test_gives_back_what_was_written(self, tree: Any, escaped: bool) -> None:
        """Spec: EMIT 3.1; Ruling E22."""
        assert decode_json(json.dumps(tree, ensure_ascii=escaped)) == tree

    @given(TREES)
    def test_gives_back_what_our_encoder_wrote(self, tree: Any) -> None:
        """Spec: EMIT 3.1."""
        assert decode_json(msgspec.json.encode(tree).decode()) == tree


class TestAnyText:
    @given(
        st.text(st.characters(exclude_categories=()))
        | PIECES
        | PIECES.map(lambda pieces: f'{{"type":"session.resume",{pieces}}}')
        | PIECES.map(lambda pieces: f'{{"type":"user.message","content":[{pieces}]}}')
    )
    def test_is_read_or_refused_with_an_error_that_can_be_sent(self, text: str) -> None:
        """No other exception, whatever the text. Spec: Ruling E22."""
        try:
            outcome: ClientMessage | ErrorInfo = decode_client_message(text)
        except RemoteProtocolError as refused:
            outcome = refused.error

        encoded = msgspec.json.encode(outcome)
        assert isinstance(outcome, ClientMessage | ErrorInfo)
        assert b"\\u0000" not in encoded


class TestLimits:
    """What the operator decided. Spec: Ruling E22."""

    def test_of_depth(self) -> None:
        limits = FrameLimits(depth=3)

        assert decode_client_message('{"type":"ping","x":[[]]}', limits) == Ping()
        with pytest.raises(RemoteProtocolError) as refusal:
            decode_client_message('{"type":"ping","x":[[[]]]}', limits)
        assert refusal.value.error.code == "TOO_DEEP"
        assert refusal.value.error.details == {"allowed": "at most 3 levels"}

    def test_of_blocks(self) -> None:
        text = '{"type":"user.message","content":[{"text":"a"},{"text":"b"}]}'

        message = decode_client_message(text, FrameLimits(blocks=2))
        assert isinstance(message, UserMessage)
        with pytest.raises(RemoteProtocolError) as refusal:
            decode_client_message(text, FrameLimits(blocks=1))
        assert refusal.value.error.code == "TOO_MANY_BLOCKS"
        assert refusal.value.error.details == {
            "field": "content",
            "allowed": "at most 1",
        }


MESSAGE = '"type":"user.message","event_id":"m1"'
NAMED = {
    "whole": f'{{{MESSAGE},"text":"hi"}}',
    "empty": f"{{{MESSAGE}}}",
    "wrong-field": f'{{{MESSAGE},"text":5,"content":{{}}}}',
    "nan": f'{{{MESSAGE},"x":NaN}}',
    "too-large-a-number": f'{{{MESSAGE},"x":1e999}}',
    "half-a-pair": f'{{{MESSAGE},"text":"\\ud800"}}',
    "key-twice": f'{{{MESSAGE},"text":"a","text":"b"}}',
    "too-deep": f'{{{MESSAGE},"x":{"[" * 300}{"]" * 300}}}',
}
NAMELESS = {
    "none": '{"type":"user.message","text":"hi"}',
    "null": '{"type":"user.message","event_id":null}',
    "number": '{"type":"user.message","event_id":5}',
    "blank": '{"type":"user.message","event_id":""}',
    "too-long": f'{{"type":"user.message","event_id":"{"x" * 129}"}}',
    "no-type": '{"event_id":"m1"}',
    "odd-type": '{"type":["user.message"],"event_id":"m1"}',
    "other-type": '{"type":"user.inject","event_id":"m1"}',
    "other-id": '{"type":"user.message","request_id":"r1"}',
    "no-json": '{"type":"user.message","event_id":"m1"',
    "no-object": '["user.message"]',
    "far-too-deep": f'{{{MESSAGE},"x":{"[" * 20_000}{"]" * 20_000}}}',
    "no-text": "\ud800",
    "odd-and-long": f'{{{MESSAGE},"x":NaN,"text":"{"x" * 1024 * 1024}"}}',
    "binary": "",
}


class TestNameMessage:
    """A client must know which of its messages had no effect. Spec: EMIT 9, 12."""

    @pytest.mark.parametrize("text", NAMED.values(), ids=NAMED)
    def test_finds_the_id_whatever_else_is_wrong(self, text: str) -> None:
        assert name_message(text) == {"event_id": "m1"}

    @pytest.mark.parametrize("text", NAMELESS.values(), ids=NAMELESS)
    def test_finds_none_where_none_is_clear(self, text: str) -> None:
        assert name_message(text) == {}

    def test_knows_answers_by_their_own_ids(self) -> None:
        answer = '{"type":"prompt.user_response","request_id":"r1","event_id":"m1"}'
        result = '{"type":"tool.result","tool_use_id":"t1","request_id":"r1"}'

        assert name_message(answer) == {"request_id": "r1"}
        assert name_message(result) == {"tool_use_id": "t1"}

    def test_gives_it_in_the_form_in_which_it_is_stored(self) -> None:
        text = '{"type":"user.message","event_id":"a\\u0000b\\ud800"}'

        assert name_message(text) == {"event_id": "a\ufffdb\ufffd"}
