"""What a prompt asks, in a line."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.protocol.codec import encode_event
from cards.protocol.events import PromptUser
from cards.protocol.kinds import PromptKind
from cards.protocol.payloads import PromptUserPayload
from prompts.protocol.summaries import summary_of
from tests.unit.cards.protocol.frames import make_envelope
from tests.unit.prompts.protocol.prompts import (
    permission,
    plan_review,
    question,
    step_decision,
)

SUMMARIES: dict[str, tuple[PromptKind, dict[str, Any], str]] = {
    "question": (PromptKind.QUESTION, question(), "Which?"),
    "question with quotes": (
        PromptKind.QUESTION,
        question(question='"Which\\?"\n'),
        '"Which\\?"\n',
    ),
    "permission": (PromptKind.PERMISSION, permission(), "Bash: rm x"),
    "permission with a tool's name in it": (
        PromptKind.PERMISSION,
        permission(tool_input='{"tool_name":"ls"}'),
        'Bash: {"tool_name":"ls"}',
    ),
    "permission without input": (
        PromptKind.PERMISSION,
        {"tool_name": "Camera", "options": []},
        "Camera",
    ),
    "plan": (PromptKind.PLAN_REVIEW, plan_review(), "a report"),
    "step": (PromptKind.STEP_DECISION, step_decision(), "s2: rate limit"),
    "failed plan": (
        PromptKind.STEP_DECISION,
        {"scope": "plan", "reason": "busy"},
        "busy",
    ),
}


def frame_of(kind: PromptKind, inner: dict[str, Any]) -> bytes:
    payload = PromptUserPayload(
        request_id="req_1", kind=kind, inner=inner, timeout_ms=0
    )
    return encode_event(PromptUser(envelope=make_envelope(), payload=payload))


class TestSummaryOf:
    @pytest.mark.parametrize("name", SUMMARIES)
    def test_tells_what_is_asked(self, name: str) -> None:
        kind, inner, summary = SUMMARIES[name]

        assert summary_of(kind, frame_of(kind, inner)) == summary

    @pytest.mark.parametrize("kind", ["client_tool", "quiz", ""])
    def test_tells_nothing_of_other_kinds(self, kind: str) -> None:
        frame = frame_of(PromptKind.QUESTION, question())

        assert summary_of(kind, frame) == ""

    @given(text=st.text(), cut=st.integers(0, 40))
    def test_tells_as_much_as_there_is(self, text: str, cut: int) -> None:
        frame = frame_of(PromptKind.QUESTION, {"question": text})
        begin = frame.index(b'"question":"') + len(b'"question":"')

        beginning = summary_of(PromptKind.QUESTION, frame[: begin + cut])

        encoded = msgspec.json.encode(text)[1:-1]
        if cut > len(encoded):
            assert beginning == text
        elif b"\\" not in encoded:
            assert text.startswith(beginning)
            assert len(text) - len(beginning) <= len(encoded) - cut
