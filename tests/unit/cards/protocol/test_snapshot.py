import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.protocol.codec import encode_event
from cards.protocol.events import (
    CardAdd,
    CardAppend,
    CardClose,
    CardSet,
    CardTick,
    Event,
    PromptReply,
    SessionEvent,
)
from cards.protocol.kinds import (
    CardKind,
    Channel,
    CloseStatus,
    SessionEventKind,
    TickKind,
)
from cards.protocol.payloads import (
    AppendPayload,
    ClosePayload,
    MessagePayload,
    PromptReplyPayload,
    SessionEventPayload,
    StepPayload,
    TickPayload,
    ToolPayload,
)
from cards.protocol.snapshot import CardFold, CardView, decode_stored
from tests.unit.cards.protocol.frames import (
    ERROR,
    HINT,
    METRICS,
    PAYLOADS,
    SESSION_INNERS,
    TICK_INNERS,
    make_envelope,
)

MESSAGE = make_envelope(CardKind.MESSAGE)
TOOL = make_envelope(CardKind.TOOL)
STEP = make_envelope(CardKind.STEP)


def added(kind: CardKind) -> CardAdd:
    return CardAdd(envelope=make_envelope(kind), hint=HINT, payload=PAYLOADS[kind])


def append(
    text: str, *, channel: Channel = Channel.TEXT, index: int | None = None
) -> CardAppend:
    is_json = channel is Channel.TOOL_INPUT
    return CardAppend(
        envelope=MESSAGE,
        payload=AppendPayload(
            channel=channel,
            index=msgspec.UNSET if index is None else index,
            chunk=msgspec.UNSET if is_json else text,
            partial_json=text if is_json else msgspec.UNSET,
        ),
    )


def fold(*events: Event) -> CardFold:
    folded = CardFold()
    folded.apply_all(encode_event(event) for event in events)
    return folded


def only_card(*events: Event) -> CardView:
    (card,) = fold(*events).cards()
    return card


def as_json(struct: msgspec.Struct) -> Any:
    return msgspec.json.decode(msgspec.json.encode(struct))


class TestDecodeStored:
    def test_reads_what_folding_needs(self) -> None:
        frame = decode_stored(encode_event(added(CardKind.TOOL)))

        assert frame.type == "card.add"
        assert frame.envelope.card_id == "tool_1"
        assert frame.payload["name"] == "bash"
        assert frame.metrics is None

    @pytest.mark.parametrize(
        "data",
        [b"", b"{}", b"[]", b'{"type":"pong"}', b'{"type":"card.add","payload":{}}'],
        ids=["empty", "no-fields", "list", "pong", "no-envelope"],
    )
    def test_refuses_what_is_no_frame_of_ours(self, data: bytes) -> None:
        with pytest.raises(msgspec.DecodeError):
            decode_stored(data)


class TestCardAdd:
    def test_opens_a_card_with_its_payload_and_hint(self) -> None:
        """Spec: EMIT 15.1, 15.2."""
        card = only_card(added(CardKind.TOOL))

        assert as_json(card) == {
            "card_id": "tool_1",
            "card_kind": "tool",
            "parent_card_id": None,
            "agent_id": "main",
            "status": "open",
            "hint": as_json(HINT),
            "payload": as_json(PAYLOADS[CardKind.TOOL]),
            "channels": {},
            "metrics": None,
        }

    def test_keeps_the_parent(self) -> None:
        """Spec: EMIT 15.2."""
        envelope = msgspec.structs.replace(TOOL, parent_card_id="msg_1")

        card = only_card(
            CardAdd(envelope=envelope, hint=HINT, payload=PAYLOADS[CardKind.TOOL])
        )

        assert card.parent_card_id == "msg_1"

    def test_shows_cards_in_the_order_of_their_coming(self) -> None:
        kinds = [CardKind.TURN, CardKind.MESSAGE, CardKind.TOOL, CardKind.TODO]

        cards = fold(*(added(kind) for kind in kinds)).cards()

        assert [card.card_kind for card in cards] == kinds

    def test_does_without_a_hint(self) -> None:
        frame = json.loads(encode_event(added(CardKind.TOOL)))
        del frame["hint"]
        folded = CardFold()

        folded.apply_all([json.dumps(frame).encode()])

        assert folded.cards()[0].hint == {}


class TestCardSet:
    def test_changes_only_the_fields_it_carries(self) -> None:
        """Spec: EMIT 6.2, 15.2; Ruling E11."""
        card = only_card(
            added(CardKind.STEP),
            CardSet(envelope=STEP, payload=StepPayload(status="running", attempts=1)),
        )

        assert card.payload == {
            "step_id": "s1",
            "status": "running",
            "input_summary": "Search",
            "attempts": 1,
        }


class TestCardAppend:
    def test_joins_the_pieces_of_a_channel(self) -> None:
        """Spec: EMIT 6.3, 14.1."""
        card = only_card(added(CardKind.MESSAGE), append("Hello"), append(" World!"))

        assert card.channels == {"text": "Hello World!"}

    def test_joins_partial_json_of_tool_input(self) -> None:
        """Spec: EMIT 6.3, 14.2."""
        card = only_card(
            added(CardKind.MESSAGE),
            append('{"command":', channel=Channel.TOOL_INPUT),
            append("text"),
            append('"ls -la"}', channel=Channel.TOOL_INPUT),
        )

        assert card.channels == {"tool_input": '{"command":"ls -la"}', "text": "text"}

    def test_joins_blocks_in_order_of_their_index(self) -> None:
        """A missing index is 0. Spec: EMIT 15.1, 15.2."""
        card = only_card(
            added(CardKind.MESSAGE),
            append("c", index=10),
            append("b", index=2),
            append("a"),
            append("B", index=2),
            append("A", index=0),
        )

        assert card.channels == {"text": "aAbBc"}

    @pytest.mark.parametrize(
        "payload",
        [
            {"chunk": "x"},
            {"channel": "text", "chunk": 1},
            {"channel": 1, "chunk": "x"},
            {"channel": "text", "chunk": "x", "index": "1"},
        ],
        ids=["no-channel", "chunk-number", "channel-number", "index-text"],
    )
    def test_skips_a_piece_that_it_cannot_place(self, payload: dict[str, Any]) -> None:
        """What a later version may log never breaks the snapshot."""
        frame = json.loads(encode_event(append("x")))
        folded = fold(added(CardKind.MESSAGE))

        folded.apply_all([json.dumps(frame | {"payload": payload}).encode()])

        assert folded.cards()[0].channels == {}

    def test_goes_on_after_the_cards_were_looked_at(self) -> None:
        folded = fold(added(CardKind.MESSAGE), append("Hello"))
        folded.cards()

        folded.apply_all([encode_event(append(" World!"))])

        assert folded.cards()[0].channels == {"text": "Hello World!"}

    @given(
        st.lists(st.tuples(st.integers(0, 3), st.text("ab", min_size=1)), max_size=12)
    )
    def test_gives_what_the_reducer_of_a_client_gives(
        self, pieces: list[tuple[int, str]]
    ) -> None:
        """Spec: EMIT 15.2."""
        card = only_card(
            added(CardKind.MESSAGE),
            *(append(text, index=index or None) for index, text in pieces),
        )

        by_index: dict[int, str] = {}
        for index, text in pieces:
            by_index[index] = by_index.get(index, "") + text
        whole = "".join(by_index[index] for index in sorted(by_index))
        assert card.channels == ({"text": whole} if pieces else {})


class TestCardClose:
    @pytest.mark.parametrize("status", CloseStatus)
    def test_gives_the_card_its_status(self, status: CloseStatus) -> None:
        """Spec: EMIT 6.5, 15.2."""
        card = only_card(
            added(CardKind.MESSAGE),
            CardClose(envelope=MESSAGE, payload=ClosePayload(status=status)),
        )

        assert card.status == status
        assert card.metrics is None

    def test_adds_inner_to_the_payload_and_keeps_the_rest(self) -> None:
        """A close blanks nothing. Spec: EMIT 15.2; Ruling E11."""
        payload = ClosePayload(
            status=CloseStatus.OK, inner=ToolPayload(output="done", intent="Listed")
        )

        card = only_card(
            added(CardKind.TOOL),
            CardClose(envelope=TOOL, metrics=METRICS, payload=payload),
        )

        assert card.payload["name"] == "bash"
        assert card.payload["intent"] == "Listed"
        assert card.payload["output"] == "done"
        assert card.metrics == as_json(METRICS)

    def test_puts_the_error_into_the_payload(self) -> None:
        """Spec: EMIT 15.2."""
        payload = ClosePayload(status=CloseStatus.FAILED, error=ERROR)

        card = only_card(
            added(CardKind.TOOL), CardClose(envelope=TOOL, payload=payload)
        )

        assert card.payload["error"] == as_json(ERROR)


CARDLESS: list[Event] = [
    PromptReply(
        envelope=make_envelope(),
        payload=PromptReplyPayload(request_id="req_1", decision="approved"),
    ),
    SessionEvent(
        envelope=make_envelope(),
        payload=SessionEventPayload(
            kind=SessionEventKind.UPDATED,
            inner=SESSION_INNERS[SessionEventKind.UPDATED],
        ),
    ),
]


class TestCardFold:
    def test_starts_empty(self) -> None:
        folded = CardFold()

        assert folded.cards() == []
        assert folded.last_seq == 0

    @pytest.mark.parametrize(
        "event",
        [
            CardSet(envelope=MESSAGE, payload=MessagePayload(model="x")),
            append("x"),
            CardClose(envelope=MESSAGE, payload=ClosePayload(status=CloseStatus.OK)),
            *CARDLESS,
        ],
        ids=["set", "append", "close", "prompt.reply", "session.event"],
    )
    def test_lets_frames_of_unknown_cards_change_nothing(self, event: Event) -> None:
        """Spec: EMIT 15.2."""
        assert fold(event).cards() == []

    def test_lets_ticks_change_nothing(self) -> None:
        """Ticks are momentary. Spec: EMIT 6.4."""
        tick = CardTick(
            envelope=TOOL,
            payload=TickPayload(
                kind=TickKind.PROGRESS, inner=TICK_INNERS[TickKind.PROGRESS]
            ),
        )

        after = fold(added(CardKind.TOOL), tick).cards()

        assert as_json(after[0]) == as_json(only_card(added(CardKind.TOOL)))

    @pytest.mark.parametrize("event", [append("x"), *CARDLESS], ids=lambda _: "")
    def test_counts_the_seq_of_every_frame(self, event: Event) -> None:
        """A client resumes after it. Spec: Ruling E5."""
        frame = json.loads(encode_event(event))
        frame["envelope"]["seq"] = 7
        folded = fold(added(CardKind.TOOL))

        folded.apply_all([json.dumps(frame).encode()])

        assert folded.last_seq == 7

    def test_keeps_cards_apart(self) -> None:
        cards = fold(
            added(CardKind.MESSAGE), added(CardKind.TOOL), append("Hello")
        ).cards()

        assert [card.channels for card in cards] == [{"text": "Hello"}, {}]


def at(seq: int, event: Event, **changes: object) -> bytes:
    """Return a frame with another seq, and another card or run if wanted."""
    frame = json.loads(encode_event(event))
    frame["envelope"] |= {"seq": seq, **changes}
    return json.dumps(frame).encode()


class TestCardsOfARange:
    @pytest.mark.parametrize(
        ("after_seq", "up_to_seq", "expected"),
        [
            (0, None, ["a", "b", "c"]),
            (1, None, ["b", "c"]),
            (1, 2, ["b"]),
            (0, 0, []),
            (3, None, []),
        ],
    )
    def test_are_those_added_in_it(
        self, after_seq: int, up_to_seq: int | None, expected: list[str]
    ) -> None:
        folded = CardFold()
        folded.apply_all(
            at(seq, added(CardKind.TOOL), card_id=card_id)
            for seq, card_id in enumerate("abc", 1)
        )

        cards = folded.cards(after_seq=after_seq, up_to_seq=up_to_seq)

        assert [card.card_id for card in cards] == expected


CARD_IDS = st.sampled_from(["a", "b", "c"])

#: Any frame of a card, whether it was added or not.
FRAMES: st.SearchStrategy[tuple[Event, str]] = st.tuples(
    st.one_of(
        st.sampled_from([added(kind) for kind in CardKind]),
        st.builds(
            append,
            st.text('aé\U0001f9ea"', min_size=1),
            channel=st.sampled_from(Channel),
            index=st.none() | st.integers(-1, 2),
        ),
        st.just(CardSet(envelope=STEP, payload=StepPayload(attempts=2))),
        st.sampled_from(
            [
                CardClose(
                    envelope=TOOL,
                    metrics=METRICS,
                    payload=ClosePayload(
                        status=CloseStatus.FAILED,
                        error=ERROR,
                        inner=ToolPayload(output={"of": [1, 0.1, 1e300, None]}),
                    ),
                ),
                *CARDLESS,
            ]
        ),
    ),
    CARD_IDS,
)


class TestEncodedFold:
    """A fold that was put away goes on as if it had not been. Spec: Ruling E5."""

    @given(st.lists(FRAMES, max_size=20), st.integers(0, 20), st.booleans())
    def test_goes_on_like_the_whole(
        self, events: list[tuple[Event, str]], cut: int, was_looked_at: bool
    ) -> None:
        frames = [
            at(seq, event, card_id=card_id, agent_run_id=f"run_{seq}")
            for seq, (event, card_id) in enumerate(events, 1)
        ]
        whole = CardFold()
        whole.apply_all(frames)
        first = CardFold()
        first.apply_all(frames[:cut])
        if was_looked_at:
            first.cards()

        second = CardFold.decode(first.encode())
        assert second.last_seq == first.last_seq
        second.apply_all(frames[cut:])

        assert second.cards() == whole.cards()
        assert second.cards(after_seq=cut) == whole.cards(after_seq=cut)
        assert second.last_seq == whole.last_seq
        for card_id in "abc":
            assert second.agent_run_id(card_id) == whole.agent_run_id(card_id)

    def test_leaves_the_fold_as_it_was(self) -> None:
        folded = fold(added(CardKind.MESSAGE), append("Hel"), append("lo"))
        folded.encode()

        folded.apply_all([encode_event(append(" World!"))])

        assert folded.cards()[0].channels == {"text": "Hello World!"}

    def test_takes_an_index_that_is_a_boolean(self) -> None:
        """What a later version may log never breaks the pruning."""
        frame = json.loads(encode_event(append("x")))
        frame["payload"]["index"] = True
        folded = fold(added(CardKind.MESSAGE))
        folded.apply_all([json.dumps(frame).encode()])

        (card,) = CardFold.decode(folded.encode()).cards()

        assert card.channels == {"text": "x"}

    @pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"last_seq":1}'])
    def test_is_not_read_from_anything_else(self, data: bytes) -> None:
        with pytest.raises(msgspec.DecodeError):
            CardFold.decode(data)


class TestAgentRunId:
    def test_is_the_one_of_the_cards_frames(self) -> None:
        """Spec: EMIT 3.2."""
        envelope = msgspec.structs.replace(TOOL, agent_run_id="run_1")

        folded = fold(
            CardAdd(envelope=envelope, hint=HINT, payload=PAYLOADS[CardKind.TOOL])
        )

        assert folded.agent_run_id("tool_1") == "run_1"

    @pytest.mark.parametrize("card_id", ["tool_1", "nobody"], ids=["without", "gone"])
    def test_is_none_where_there_is_none(self, card_id: str) -> None:
        assert fold(added(CardKind.TOOL)).agent_run_id(card_id) is None
