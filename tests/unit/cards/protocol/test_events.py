import pytest
from msgspec import UNSET

from cards.protocol.events import (
    CardAdd,
    CardAppend,
    CardClose,
    CardSet,
    CardTick,
    Event,
    PromptReply,
    PromptUser,
    SessionEvent,
)
from cards.protocol.kinds import (
    Action,
    CardKind,
    Channel,
    CloseStatus,
    PromptKind,
    SessionEventKind,
    TickKind,
)
from cards.protocol.payloads import (
    AppendPayload,
    ClosePayload,
    PromptReplyPayload,
    PromptUserPayload,
    SessionEventPayload,
    StepPayload,
    TickPayload,
)
from tests.unit.cards.protocol.frames import (
    HINT,
    METRICS,
    PAYLOADS,
    SESSION_INNERS,
    TICK_INNERS,
    make_envelope,
    wire,
)

TOOL = make_envelope(CardKind.TOOL)

EVENTS: dict[Action, Event] = {
    Action.CARD_ADD: CardAdd(envelope=TOOL, hint=HINT, payload=PAYLOADS[CardKind.TOOL]),
    Action.CARD_SET: CardSet(
        envelope=make_envelope(CardKind.STEP), payload=StepPayload(status="running")
    ),
    Action.CARD_APPEND: CardAppend(
        envelope=make_envelope(CardKind.MESSAGE),
        payload=AppendPayload(channel=Channel.TEXT, chunk="Hello"),
    ),
    Action.CARD_TICK: CardTick(
        envelope=TOOL,
        payload=TickPayload(
            kind=TickKind.HEARTBEAT, inner=TICK_INNERS[TickKind.HEARTBEAT]
        ),
    ),
    Action.CARD_CLOSE: CardClose(
        envelope=TOOL, metrics=METRICS, payload=ClosePayload(status=CloseStatus.OK)
    ),
    Action.PROMPT_USER: PromptUser(
        envelope=make_envelope(),
        payload=PromptUserPayload(
            request_id="req_1", kind=PromptKind.QUESTION, inner={}, timeout_ms=0
        ),
    ),
    Action.PROMPT_REPLY: PromptReply(
        envelope=make_envelope(),
        payload=PromptReplyPayload(request_id="req_1", decision="approved"),
    ),
    Action.SESSION_EVENT: SessionEvent(
        envelope=make_envelope(),
        payload=SessionEventPayload(
            kind=SessionEventKind.OPENED, inner=SESSION_INNERS[SessionEventKind.OPENED]
        ),
    ),
}


class TestEvent:
    def test_exists_for_every_action(self) -> None:
        """Spec: EMIT 4."""
        types = {kind.__struct_config__.tag for kind in Event.__subclasses__()}

        assert types == set(Action)

    @pytest.mark.parametrize("action", Action)
    def test_writes_its_action_as_its_type(self, action: Action) -> None:
        """Spec: EMIT 3.1, 4."""
        assert wire(EVENTS[action])["type"] == action

    @pytest.mark.parametrize("action", Action)
    def test_writes_type_and_envelope_first(self, action: Action) -> None:
        """Spec: EMIT 3.1."""
        assert list(wire(EVENTS[action]))[:2] == ["type", "envelope"]

    @pytest.mark.parametrize("action", Action)
    def test_carries_hint_and_metrics_where_they_belong(self, action: Action) -> None:
        """Spec: EMIT 3.1, 3.3, 3.4."""
        parts = set(wire(EVENTS[action])) - {"type", "envelope", "payload"}

        expected = {Action.CARD_ADD: {"hint"}, Action.CARD_CLOSE: {"metrics"}}
        assert parts == expected.get(action, set())


class TestCardAdd:
    def test_writes_the_sample_of_the_source(self) -> None:
        """Spec: EMIT 6.1."""
        assert wire(EVENTS[Action.CARD_ADD]) == {
            "type": "card.add",
            "envelope": {
                "event_id": "evt_0a1b2c3d4e5f60718293",
                "session_id": "sess_1",
                "trace_id": "tr_0123456789abcdef01234567",
                "card_id": "tool_1",
                "card_kind": "tool",
                "seq": 1,
                "timestamp": "2026-05-07T10:00:00.000Z",
                "agent_id": "main",
                "agent_role": "persona",
                "severity": "info",
            },
            "hint": {"title": "Bash", "icon": "tool", "initial_state": "collapsed"},
            "payload": {
                "name": "bash",
                "target": "server",
                "intent": "List",
                "input": {"command": "ls -la"},
                "artifacts": [
                    {
                        "artifact_id": "art_a1b2",
                        "name": "mail.md",
                        "type": "file",
                        "size_bytes": 1240,
                    }
                ],
            },
        }


class TestCardSet:
    def test_writes_only_what_changes(self) -> None:
        """Spec: EMIT 6.2; Ruling E11."""
        assert wire(EVENTS[Action.CARD_SET])["payload"] == {"status": "running"}


class TestCardClose:
    def test_leaves_out_metrics_that_are_not_set(self) -> None:
        """Spec: EMIT 3.1, 3.4."""
        close = CardClose(envelope=TOOL, payload=ClosePayload(status=CloseStatus.OK))

        assert close.metrics is UNSET
        assert "metrics" not in wire(close)


class TestPromptUser:
    def test_belongs_to_no_card(self) -> None:
        """Spec: EMIT 3.2; Ruling E6."""
        envelope = wire(EVENTS[Action.PROMPT_USER])["envelope"]

        assert envelope["card_id"] == ""
        assert envelope["card_kind"] == ""
