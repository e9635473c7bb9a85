"""What a prompt of each kind shows."""

from typing import Any

import jsonschema
import msgspec
import pytest

from cards.protocol.events import PromptUser
from cards.protocol.kinds import PromptKind
from cards.protocol.payloads import PromptUserPayload
from cards.protocol.prompts import (
    INNER_OF_PROMPT,
    MAX_STEP_ID_CHARS,
    PermissionInner,
    PermissionOption,
    PlanReviewInner,
    PromptInner,
    QuestionInner,
    QuestionOption,
    ReviewedStep,
    StepDecisionInner,
    mint_request_id,
)
from cards.protocol.wire_schema import wire_schema
from tests.unit.cards.protocol.frames import make_envelope, wire

validator = jsonschema.Draft202012Validator(wire_schema())

#: Each shape in full, as EMIT 7.1 shows it, and at its least.
SHAPES: dict[str, tuple[PromptInner, dict[str, Any]]] = {
    "permission": (
        PermissionInner(
            tool_name="Bash",
            tool_input="rm -rf /x",
            message="Allow shell?",
            is_read_only=True,
            options=[
                PermissionOption(label="Allow once", scope="once", allow=True),
                PermissionOption(label="Deny", scope="once", allow=False),
            ],
            permission_key="Bash:rm",
        ),
        {
            "tool_name": "Bash",
            "tool_input": "rm -rf /x",
            "message": "Allow shell?",
            "is_read_only": True,
            "options": [
                {"label": "Allow once", "scope": "once", "allow": True},
                {"label": "Deny", "scope": "once", "allow": False},
            ],
            "permission_key": "Bash:rm",
        },
    ),
    "permission, least": (
        PermissionInner(tool_name="Bash", options=[]),
        {"tool_name": "Bash", "options": []},
    ),
    "question": (
        QuestionInner(
            question="Which?",
            options=[QuestionOption(label="是"), QuestionOption(label="否")],
            multi=True,
            allow_custom=True,
        ),
        {
            "question": "Which?",
            "options": [{"label": "是"}, {"label": "否"}],
            "multi": True,
            "allow_custom": True,
        },
    ),
    "question, least": (QuestionInner(question="Why?"), {"question": "Why?"}),
    "plan_review": (
        PlanReviewInner(
            plan_id="pln_x",
            goal="a report",
            rationale="why",
            steps=[
                ReviewedStep(id="s1", description="look", subagent_type="researcher"),
                ReviewedStep(
                    id="s2", description="write", prompt="well", depends_on=["s1"]
                ),
            ],
            available_subagents=["researcher", "writer"],
            rejection_reason="Step 1 (s1) depends on itself.",
        ),
        {
            "plan_id": "pln_x",
            "goal": "a report",
            "rationale": "why",
            "steps": [
                {"id": "s1", "description": "look", "subagent_type": "researcher"},
                {
                    "id": "s2",
                    "description": "write",
                    "prompt": "well",
                    "depends_on": ["s1"],
                },
            ],
            "available_subagents": ["researcher", "writer"],
            "rejection_reason": "Step 1 (s1) depends on itself.",
        },
    ),
    "plan_review, least": (
        PlanReviewInner(plan_id="pln_x", goal="", steps=[ReviewedStep(id="s1")]),
        {"plan_id": "pln_x", "goal": "", "steps": [{"id": "s1"}]},
    ),
    "step_decision": (
        StepDecisionInner(
            scope="step",
            step_id="s2",
            step_description="write",
            reason="rate limit",
            attempts=3,
            allow_retry=True,
        ),
        {
            "scope": "step",
            "step_id": "s2",
            "step_description": "write",
            "reason": "rate limit",
            "attempts": 3,
            "allow_retry": True,
        },
    ),
    "step_decision, least": (
        StepDecisionInner(scope="plan", reason="busy"),
        {"scope": "plan", "reason": "busy"},
    ),
}

#: What the shape of each kind refuses: a field, and what it may not be.
MALFORMED: list[tuple[str, str, Any]] = [
    ("permission", "tool_name", None),
    ("permission", "tool_input", {"command": "ls"}),
    ("permission", "is_read_only", 1),
    ("permission", "options", None),
    ("permission", "options", ["Yes"]),
    ("permission", "options", [{"label": "Yes", "scope": "once"}]),
    ("permission", "options", [{"label": "Yes", "scope": "ever", "allow": True}]),
    ("question", "question", 1),
    ("question", "options", ["red"]),
    ("question", "multi", "yes"),
    ("plan_review", "plan_id", 1),
    ("plan_review", "steps", [{"description": "look"}]),
    ("plan_review", "steps", [{"id": "x" * (MAX_STEP_ID_CHARS + 1)}]),
    ("plan_review", "steps", [{"id": "s1", "depends_on": "s0"}]),
    ("step_decision", "scope", "turn"),
    ("step_decision", "reason", None),
    ("step_decision", "attempts", "3"),
    ("step_decision", "allow_retry", "no"),
]

REQUIRED = [
    ("permission", "tool_name"),
    ("permission", "options"),
    ("question", "question"),
    ("plan_review", "plan_id"),
    ("plan_review", "goal"),
    ("plan_review", "steps"),
    ("step_decision", "scope"),
    ("step_decision", "reason"),
]


def kind_of(name: str) -> PromptKind:
    return PromptKind(name.partition(",")[0])


def frame_of(kind: PromptKind, inner: dict[str, Any]) -> dict[str, Any]:
    payload = PromptUserPayload(
        request_id="req_1", kind=kind, inner=inner, timeout_ms=60_000
    )
    return wire(PromptUser(envelope=make_envelope(), payload=payload))


class TestPromptInner:
    """Spec: EMIT 7.1; Ruling E6."""

    @pytest.mark.parametrize("name", SHAPES)
    def test_is_written_without_what_is_empty(self, name: str) -> None:
        shape, written = SHAPES[name]

        assert msgspec.to_builtins(shape) == written

    @pytest.mark.parametrize("name", SHAPES)
    def test_is_read_as_it_was_written(self, name: str) -> None:
        shape, written = SHAPES[name]

        assert msgspec.convert(written, INNER_OF_PROMPT[kind_of(name)]) == shape

    @pytest.mark.parametrize("name", SHAPES)
    def test_fits_the_wire_schema(self, name: str) -> None:
        """Spec: interfaces.md, /v1/wire.schema.json."""
        _, written = SHAPES[name]

        assert validator.is_valid(frame_of(kind_of(name), written))

    @pytest.mark.parametrize("kind", PromptKind)
    def test_is_that_of_its_kind(self, kind: PromptKind) -> None:
        others = [each for each in PromptKind if each is not kind]
        _, written = SHAPES[f"{kind}, least"]

        assert [each for each in others if validator.is_valid(frame_of(each, written))
                ] == []  # fmt: skip

    @pytest.mark.parametrize(("kind", "field", "value"), MALFORMED)
    def test_refuses_another_value(self, kind: str, field: str, value: Any) -> None:
        _, written = SHAPES[kind]
        malformed = written | {field: value}

        assert not validator.is_valid(frame_of(PromptKind(kind), malformed))
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(malformed, INNER_OF_PROMPT[PromptKind(kind)])

    @pytest.mark.parametrize(("kind", "field"), REQUIRED)
    def test_refuses_to_be_without(self, kind: str, field: str) -> None:
        _, written = SHAPES[kind]
        lacking = {name: value for name, value in written.items() if name != field}

        assert not validator.is_valid(frame_of(PromptKind(kind), lacking))
        with pytest.raises(msgspec.ValidationError, match=f"`{field}`"):
            msgspec.convert(lacking, INNER_OF_PROMPT[PromptKind(kind)])


class TestRequestId:
    def test_has_sixteen_hex_digits(self) -> None:
        """Spec: Ruling E7."""
        assert mint_request_id(lambda count: "ab" * count) == "req_" + "ab" * 8
