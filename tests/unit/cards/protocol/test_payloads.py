from typing import Any

import msgspec
import pytest

from cards.protocol.json_form import JSONValue
from cards.protocol.kinds import (
    CardKind,
    Channel,
    CloseStatus,
    PromptKind,
    SessionEventKind,
    TickKind,
)
from cards.protocol.payloads import (
    INNER_OF_SESSION_EVENT,
    INNER_OF_TICK,
    PAYLOAD_OF_KIND,
    REQUIRED_ON_ADD,
    AppendPayload,
    ClosePayload,
    Payload,
    PromptReplyPayload,
    PromptUserPayload,
    SessionEventPayload,
    TickPayload,
    ToolPayload,
)
from tests.unit.cards.protocol.frames import (
    ARTIFACT_REF,
    ERROR,
    PAYLOADS,
    SESSION_INNERS,
    TICK_INNERS,
)

Json = dict[str, Any]

REF: Json = {
    "artifact_id": "art_a1b2",
    "name": "intern-schedule-email.md",
    "type": "file",
    "mime_type": "text/markdown",
    "size_bytes": 1240,
    "description": "...",
    "role": "draft_email",
}

#: Every field of each kind, as EMIT 10 shows it; ours are marked.
SAMPLES: dict[CardKind, Json] = {
    CardKind.TURN: {
        "turn_no": 1,
        "channel": "voice",
        # Ruling E28.
        "input": {
            "event_id": "c1",
            "text": "Hi",
            "content": [{"type": "text", "text": "Hi"}],
        },
    },
    CardKind.MESSAGE: {
        "role": "assistant",
        "model": "claude-opus-4-7",
        "stop_reason": "end_turn",
    },
    CardKind.TOOL: {
        "name": "Bash",
        "target": "client",
        "intent": "列目录",
        "input": {"command": "ls -la"},
        "output": "...",
        "render_hint": "terminal",
        "language": "go",
        "file_path": "/tmp/x.go",  # noqa: S108
        "artifacts": [REF],
        "details": {"rows": [1, None]},
        "metadata": {"exit": 0},
        "phase": "executing",
        "phase_hint": "…",
    },
    CardKind.AGENT: {
        "name": "researcher",
        "agent_type": "async",
        "subagent_type": "researcher",
        "parent_agent_id": "main",
        "task_prompt": "Search",
        "output_summary": "...",
        "num_turns": 3,
        "denied_tools": ["WebFetch"],
        "artifacts": [REF],
    },
    CardKind.PLAN: {
        "plan_id": "pln_xxx",
        "goal": "...",
        "strategy": "mixed",
        "rationale": "...",
        "steps": [
            {
                "step_id": "s1",
                "subagent_type": "researcher",
                "depends_on": [],
                "user_facing_title": "...",
                "user_facing_summary": "...",
            }
        ],
    },
    CardKind.STEP: {
        "step_id": "s1",
        "subagent_type": "researcher",
        "status": "running",
        "input_summary": "...",
        "output_summary": "...",
        "attempts": 1,
        "deliverables": ["art_a1b2"],
        "artifacts": [REF],
    },
    CardKind.ARTIFACT: {
        **REF,
        "uri": "file:///tmp/x.md",
        "version": 1,
        "thumbnail": "iVBORw==",
    },
    CardKind.THINKING: {"length": 120},
    CardKind.MEMORY_OP: {"op": "compact", "subject": "history", "bytes": 4096},
    CardKind.BUDGET: {
        "kind": "warning",
        "spent": {"tokens": 9000, "usd": 0.5, "calls": 3},
        "limit": {"tokens": 10000},
    },
    CardKind.TODO: {
        "subject": "Tidy up",
        "status": "in_progress",
        "owner": "main",
        "active_form": "Tidying up",
    },
    CardKind.TEAM: {"team_name": "t", "members": ["a", "b"]},
    CardKind.SYSTEM: {
        "topic": "search_capability_gap",
        "summary": "No search",
        "action_hint": "去设置页，搜索配置，配置相关服务",
    },
}

TICK_SAMPLES: dict[TickKind, Json] = {
    TickKind.PROGRESS: {
        "stage": "fetching",
        "progress_pct": 0.4,
        "items_processed": 12,
        "items_total": 30,
        "unit": "pages",
        "eta_ms": 18000,
    },
    TickKind.HEARTBEAT: {
        "stage": "running_tools",
        "uptime_ms": 8500,
        "active_tool_card_id": "tool_x",
    },
    TickKind.INTENT: {"intent": "正在搜索 vLLM 论文"},
    TickKind.NOTE: {"text": "skipped cache, fresh fetch", "severity": "info"},
    TickKind.ESCALATION: {"from_mode": "react", "to_mode": "plan", "reason": "复杂度"},
}

SESSION_SAMPLES: dict[SessionEventKind, Json] = {
    SessionEventKind.OPENED: {
        "protocol_version": "2.0",
        "model": "claude-opus-4-7",
        "capabilities": {"streaming": True, "tools": True},
        "trace_id": "tr_xxx",
        "last_seq": 0,
    },
    SessionEventKind.UPDATED: {
        "title": "Papers",
        "model": "echo",
        "turn_card_id": "turn_c1",
        "state": "running",
        "queue": [{"event_id": "c2", "text": "Next"}],
    },
    SessionEventKind.ERROR: {
        "error": {
            "type": "invalid_input",
            "message": "wrong",
            "user_message": "There is a problem with the input.",
            "retryable": False,
        }
    },
    SessionEventKind.RESUMED: {"trace_id": "tr_xxx", "from_seq": 43, "to_seq": 68},
    SessionEventKind.RESUME_FAILED: {"trace_id": "tr_xxx", "reason": "unknown_trace"},
}


def as_json(struct: msgspec.Struct) -> Json:
    fields: Json = msgspec.json.decode(msgspec.json.encode(struct))
    return fields


class TestPayloadOfKind:
    def test_knows_every_kind(self) -> None:
        """Spec: EMIT 5, 10."""
        assert set(PAYLOAD_OF_KIND) == set(CardKind)

    @pytest.mark.parametrize("kind", CardKind)
    def test_has_exactly_the_fields_of_the_source(self, kind: CardKind) -> None:
        """Spec: EMIT 10; emit-tables 7; Ruling E28."""
        assert list(PAYLOAD_OF_KIND[kind].__struct_fields__) == list(SAMPLES[kind])

    @pytest.mark.parametrize("kind", CardKind)
    def test_writes_the_sample_of_the_source(self, kind: CardKind) -> None:
        """Spec: EMIT 10."""
        payload = msgspec.convert(SAMPLES[kind], PAYLOAD_OF_KIND[kind])

        assert as_json(payload) == SAMPLES[kind]

    @pytest.mark.parametrize("kind", CardKind)
    def test_leaves_out_what_is_not_set(self, kind: CardKind) -> None:
        """A patch carries only the fields it changes. Spec: Rulings E6, E11."""
        assert as_json(PAYLOAD_OF_KIND[kind]()) == {}

    @pytest.mark.parametrize(
        ("kind", "field", "words"),
        [
            (CardKind.TURN, "channel", "chat voice api"),
            (CardKind.MESSAGE, "role", "assistant user"),
            (CardKind.TOOL, "target", "server client"),
            (CardKind.AGENT, "agent_type", "sync async"),
            (CardKind.PLAN, "strategy", "sequential parallel mixed"),
            (CardKind.STEP, "status", "queued running"),
            (CardKind.MEMORY_OP, "op", "read write compact"),
            (CardKind.BUDGET, "kind", "warning exhausted reset"),
            (CardKind.TODO, "status", "pending in_progress completed cancelled"),
        ],
        ids=str,
    )
    def test_takes_only_the_words_of_a_closed_set(
        self, kind: CardKind, field: str, words: str
    ) -> None:
        """Spec: EMIT 10; emit-tables 6."""
        shape = PAYLOAD_OF_KIND[kind]

        for word in words.split():
            assert as_json(msgspec.convert({field: word}, shape)) == {field: word}
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({field: "no-such-word"}, shape)


class TestToolPayload:
    @pytest.mark.parametrize(
        "output", [None, "", 0, False, [], {}, "text", {"rows": [1, None]}], ids=repr
    )
    def test_writes_any_output_that_was_set(self, output: JSONValue) -> None:
        """An output is whatever the tool gave, empty or not. Spec: EMIT 10."""
        assert as_json(ToolPayload(output=output)) == {"output": output}


class TestRequiredOnAdd:
    def test_knows_every_kind(self) -> None:
        """Spec: EMIT 10."""
        assert set(REQUIRED_ON_ADD) == set(CardKind)

    @pytest.mark.parametrize("kind", CardKind)
    def test_names_fields_of_the_payload(self, kind: CardKind) -> None:
        """Spec: EMIT 10."""
        assert set(REQUIRED_ON_ADD[kind]) <= set(SAMPLES[kind])

    @pytest.mark.parametrize("kind", CardKind)
    def test_is_met_by_the_payload_of_a_new_card(self, kind: CardKind) -> None:
        """Spec: EMIT 6.1, 10."""
        assert set(REQUIRED_ON_ADD[kind]) <= set(as_json(PAYLOADS[kind]))


class TestArtifactRef:
    def test_leaves_out_what_is_not_set(self) -> None:
        """Spec: EMIT 10, ArtifactRef; Ruling E6."""
        assert as_json(ARTIFACT_REF) == {
            "artifact_id": "art_a1b2",
            "name": "mail.md",
            "type": "file",
            "size_bytes": 1240,
        }


class TestAppendPayload:
    def test_writes_text_as_a_chunk(self) -> None:
        """Spec: EMIT 6.3."""
        payload = AppendPayload(channel=Channel.TEXT, chunk="Hello")

        assert as_json(payload) == {"channel": "text", "chunk": "Hello"}

    def test_writes_tool_input_as_partial_json(self) -> None:
        """Spec: EMIT 6.3."""
        payload = AppendPayload(
            channel=Channel.TOOL_INPUT, index=1, partial_json='{"command":'
        )

        assert as_json(payload) == {
            "channel": "tool_input",
            "index": 1,
            "partial_json": '{"command":',
        }


class TestInnerOfTick:
    def test_knows_every_kind(self) -> None:
        """Spec: EMIT 11."""
        assert set(INNER_OF_TICK) == set(TickKind)

    @pytest.mark.parametrize("kind", TickKind)
    def test_writes_the_sample_of_the_source(self, kind: TickKind) -> None:
        """Spec: EMIT 11."""
        inner = msgspec.convert(TICK_SAMPLES[kind], INNER_OF_TICK[kind])

        assert as_json(inner) == TICK_SAMPLES[kind]


class TestTickPayload:
    @pytest.mark.parametrize("kind", TickKind)
    def test_writes_kind_and_inner(self, kind: TickKind) -> None:
        """Spec: EMIT 6.4."""
        inner = TICK_INNERS[kind]

        payload = TickPayload(kind=kind, inner=inner)

        assert as_json(payload) == {"kind": str(kind), "inner": as_json(inner)}


class TestClosePayload:
    def test_writes_only_the_status_of_a_plain_end(self) -> None:
        """Spec: EMIT 6.5, 14.1."""
        assert as_json(ClosePayload(status=CloseStatus.OK)) == {"status": "ok"}

    def test_writes_the_error_and_the_patch_of_a_failure(self) -> None:
        """Spec: EMIT 6.5."""
        payload = ClosePayload(
            status=CloseStatus.FAILED, error=ERROR, inner=ToolPayload(output="cut")
        )

        assert as_json(payload) == {
            "status": "failed",
            "error": as_json(ERROR),
            "inner": {"output": "cut"},
        }


class TestPromptUserPayload:
    @pytest.mark.parametrize("timeout_ms", [0, 60000])
    def test_always_writes_its_timeout(self, timeout_ms: int) -> None:
        """0 means none. Spec: EMIT 7.1; Ruling E6."""
        payload = PromptUserPayload(
            request_id="req_1",
            kind=PromptKind.QUESTION,
            inner={"question": "Which?", "multi": False},
            timeout_ms=timeout_ms,
        )

        assert as_json(payload) == {
            "request_id": "req_1",
            "kind": "question",
            "inner": {"question": "Which?", "multi": False},
            "timeout_ms": timeout_ms,
        }


class TestPromptReplyPayload:
    @pytest.mark.parametrize(
        "decision",
        ["approved", "denied", "continue", "retry", "cancelled", "timeout"],
    )
    def test_takes_each_way_a_prompt_ends(self, decision: str) -> None:
        """Spec: EMIT 7.2; Ruling E15."""
        reply = {"request_id": "req_1", "decision": decision}

        assert as_json(msgspec.convert(reply, PromptReplyPayload)) == reply

    @pytest.mark.parametrize("decision", ["cancel", "maybe", "", None, True])
    def test_takes_no_other_decision(self, decision: object) -> None:
        """`cancel` is echoed as `cancelled`. Spec: Ruling E15."""
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(
                {"request_id": "req_1", "decision": decision}, PromptReplyPayload
            )


class TestInnerOfSessionEvent:
    def test_knows_every_kind(self) -> None:
        """Spec: EMIT 8."""
        assert set(INNER_OF_SESSION_EVENT) == set(SessionEventKind)

    @pytest.mark.parametrize("kind", SessionEventKind)
    def test_writes_the_sample_of_the_source(self, kind: SessionEventKind) -> None:
        """Spec: EMIT 8; Rulings E1, E5, E8, E9, E10, E29."""
        sample = SESSION_SAMPLES[kind]

        inner: Payload = msgspec.convert(sample, INNER_OF_SESSION_EVENT[kind])

        assert as_json(inner) == sample


class TestSessionEventPayload:
    @pytest.mark.parametrize("kind", SessionEventKind)
    def test_writes_kind_and_inner(self, kind: SessionEventKind) -> None:
        """Spec: EMIT 8."""
        inner = SESSION_INNERS[kind]

        payload = SessionEventPayload(kind=kind, inner=inner)

        assert as_json(payload) == {"kind": str(kind), "inner": as_json(inner)}
