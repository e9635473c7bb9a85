from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.protocol.envelope import (
    MAX_SAFE_INTEGER,
    BudgetAmount,
    Envelope,
    Hint,
    Metrics,
    format_timestamp,
)
from cards.protocol.kinds import CardKind, Role, Severity


def as_json(struct: msgspec.Struct) -> object:
    return msgspec.json.decode(msgspec.json.encode(struct))


class TestEnvelope:
    def test_leaves_out_what_is_not_set(self) -> None:
        """card_id and card_kind are "" on prompt and session. Spec: Ruling E6."""
        envelope = Envelope(
            event_id="evt_1",
            session_id="sess_1",
            trace_id="tr_1",
            card_id="",
            card_kind="",
            seq=1,
            timestamp="2026-05-07T10:00:00.000Z",
        )

        assert as_json(envelope) == {
            "event_id": "evt_1",
            "session_id": "sess_1",
            "trace_id": "tr_1",
            "card_id": "",
            "card_kind": "",
            "seq": 1,
            "timestamp": "2026-05-07T10:00:00.000Z",
        }

    def test_writes_every_field_under_its_wire_name(self) -> None:
        """Spec: EMIT 3.2."""
        envelope = Envelope(
            event_id="evt_1",
            session_id="sess_1",
            trace_id="tr_1",
            card_id="tool_1",
            parent_card_id="msg_1",
            card_kind=CardKind.TOOL,
            seq=42,
            timestamp="2026-05-07T10:00:00.000Z",
            agent_id="main",
            agent_role=Role.WORKER,
            agent_run_id="run_1",
            severity=Severity.WARN,
        )

        assert as_json(envelope) == {
            "event_id": "evt_1",
            "session_id": "sess_1",
            "trace_id": "tr_1",
            "card_id": "tool_1",
            "parent_card_id": "msg_1",
            "card_kind": "tool",
            "seq": 42,
            "timestamp": "2026-05-07T10:00:00.000Z",
            "agent_id": "main",
            "agent_role": "worker",
            "agent_run_id": "run_1",
            "severity": "warn",
        }

    def test_cannot_be_changed(self) -> None:
        envelope = Envelope(
            event_id="evt_1",
            session_id="sess_1",
            trace_id="tr_1",
            card_id="",
            card_kind="",
            seq=1,
            timestamp="2026-05-07T10:00:00.000Z",
        )

        with pytest.raises(AttributeError):
            envelope.seq = 2  # type: ignore[misc]


class TestHint:
    def test_writes_only_the_title_when_nothing_else_is_set(self) -> None:
        """Spec: EMIT 3.3; Ruling E6."""
        assert as_json(Hint(title="Bash")) == {"title": "Bash"}

    def test_writes_every_field_under_its_wire_name(self) -> None:
        """Spec: EMIT 3.3."""
        hint = Hint(
            title="Bash",
            summary="List",
            icon="tool",
            initial_state="collapsed",
            persona="Emma",
        )

        assert as_json(hint) == {
            "title": "Bash",
            "summary": "List",
            "icon": "tool",
            "initial_state": "collapsed",
            "persona": "Emma",
        }


class TestMetrics:
    def test_write_the_sample_of_the_source(self) -> None:
        """Spec: EMIT 3.4."""
        metrics = Metrics(
            duration_ms=50,
            tokens_in=120,
            tokens_out=80,
            cache_read_tokens=10000,
            cache_write_tokens=500,
            cost_usd=0.0023,
            model="claude-opus-4-7",
            budget_spent=BudgetAmount(tokens=12000, usd=0.05),
            budget_limit=BudgetAmount(tokens=50000, usd=1.0),
        )

        assert as_json(metrics) == {
            "duration_ms": 50,
            "tokens_in": 120,
            "tokens_out": 80,
            "cache_read_tokens": 10000,
            "cache_write_tokens": 500,
            "cost_usd": 0.0023,
            "model": "claude-opus-4-7",
            "budget_spent": {"tokens": 12000, "usd": 0.05},
            "budget_limit": {"tokens": 50000, "usd": 1.00},
        }

    def test_write_a_zero_that_was_set(self) -> None:
        assert as_json(Metrics(duration_ms=0)) == {"duration_ms": 0}


class TestMaxSafeInteger:
    def test_is_the_last_whole_number_that_a_double_counts_to(self) -> None:
        assert float(MAX_SAFE_INTEGER) == MAX_SAFE_INTEGER
        assert float(MAX_SAFE_INTEGER + 2) != MAX_SAFE_INTEGER + 2


FIRST_MS = -62_135_596_800_000
LAST_MS = 253_402_300_799_999


class TestFormatTimestamp:
    @pytest.mark.parametrize(
        ("unix_ms", "text"),
        [
            (0, "1970-01-01T00:00:00.000Z"),
            (1, "1970-01-01T00:00:00.001Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (1_778_148_000_000, "2026-05-07T10:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (FIRST_MS, "0001-01-01T00:00:00.000Z"),
            (LAST_MS, "9999-12-31T23:59:59.999Z"),
        ],
        ids=["epoch", "1ms", "before", "sample", "leap-day", "first", "last"],
    )
    def test_writes_milliseconds_and_z(self, unix_ms: int, text: str) -> None:
        """Also when the milliseconds are zero. Spec: EMIT 3.2; Ruling E6."""
        assert format_timestamp(unix_ms) == text

    @given(st.integers(min_value=FIRST_MS, max_value=LAST_MS))
    def test_loses_no_millisecond(self, unix_ms: int) -> None:
        moment = datetime.fromisoformat(format_timestamp(unix_ms))

        since_epoch = moment - datetime(1970, 1, 1, tzinfo=UTC)
        in_ms = (since_epoch.days * 86_400 + since_epoch.seconds) * 1000
        assert in_ms + since_epoch.microseconds // 1000 == unix_ms

    @pytest.mark.parametrize(
        "unix_ms",
        [FIRST_MS - 1, LAST_MS + 1, 2**63, 10**40],
        ids=["year-0", "year-10000", "2**63", "10**40"],
    )
    def test_refuses_years_that_have_no_four_digits(self, unix_ms: int) -> None:
        with pytest.raises(OverflowError):
            format_timestamp(unix_ms)
