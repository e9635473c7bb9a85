from enum import StrEnum

import pytest

from cards.protocol.kinds import (
    CHANNELS_OF_KIND,
    DROPPABLE_TICKS,
    SEVERITY_OF_CLOSE,
    TRACKED_KINDS,
    Action,
    CardKind,
    Channel,
    CloseStatus,
    ErrorType,
    PromptKind,
    ResumeFailure,
    Role,
    SessionEventKind,
    Severity,
    TickKind,
)

WORDS: dict[type[StrEnum], str] = {
    Action: "card.add card.set card.append card.tick card.close prompt.user "
    "prompt.reply session.event",
    CardKind: "turn message tool agent plan step artifact thinking memory_op budget "
    "todo team system",
    TickKind: "progress heartbeat intent note escalation",
    Channel: "text tool_input thinking",
    ErrorType: "tool_timeout orphan_timeout rate_limit overloaded contract_fail "
    "dependency_fail user_aborted permission_denied max_turns context_exceeded "
    "model_error budget_exhausted invalid_input internal",
    Role: "persona orchestrator worker system",
    Severity: "info warn error",
    CloseStatus: "ok failed skipped cancelled",
    SessionEventKind: "opened updated error resumed resume_failed",
    ResumeFailure: "events_expired unknown_trace session_not_found not_implemented",
    PromptKind: "permission question plan_review step_decision",
}


class TestClosedSets:
    @pytest.mark.parametrize(
        ("kind", "words"), WORDS.items(), ids=lambda part: getattr(part, "__name__", "")
    )
    def test_hold_exactly_the_words_of_the_wire(
        self, kind: type[StrEnum], words: str
    ) -> None:
        """EMIT 17 lists them. Spec: EMIT 4, 5, 6, 7.1, 8, 12, 17."""
        assert [str(member) for member in kind] == words.split()


class TestTrackedKinds:
    def test_are_those_that_a_watchdog_knows(self) -> None:
        """The others never get a close. Spec: Ruling E13; EMIT 10.9."""
        expected = {"turn", "message", "tool", "agent", "plan", "step", "thinking"}

        assert expected == TRACKED_KINDS


class TestDroppableTicks:
    def test_are_progress_and_heartbeat(self) -> None:
        """Intent, note and escalation are never dropped. Spec: Ruling E20."""
        assert {"progress", "heartbeat"} == DROPPABLE_TICKS


class TestChannelsOfKind:
    def test_give_streams_to_message_and_thinking_only(self) -> None:
        """Spec: EMIT 6.3."""
        expected = {"message": ("text", "tool_input"), "thinking": ("thinking",)}

        assert expected == CHANNELS_OF_KIND


class TestSeverityOfClose:
    @pytest.mark.parametrize(
        ("status", "severity"),
        [
            (CloseStatus.OK, Severity.INFO),
            (CloseStatus.FAILED, Severity.ERROR),
            (CloseStatus.SKIPPED, Severity.WARN),
            (CloseStatus.CANCELLED, Severity.WARN),
        ],
        ids=str,
    )
    def test_is_louder_the_worse_it_ended(
        self, status: CloseStatus, severity: Severity
    ) -> None:
        """Spec: EMIT 3.2, 6.5; emit-tables 1."""
        assert SEVERITY_OF_CLOSE[status] is severity
