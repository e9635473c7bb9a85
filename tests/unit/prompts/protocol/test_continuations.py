"""Question and answer in words."""

import pytest

from cards.protocol.json_form import JSONValue
from cards.protocol.kinds import PromptKind
from prompts.protocol.continuations import continuation_text
from tests.unit.prompts.protocol.prompts import (
    Answer,
    Inner,
    permission,
    plan_review,
    question,
    step_decision,
)

EDITED: list[JSONValue] = [
    {"id": "s1", "description": "look", "subagent_type": "researcher"},
    {
        "id": "s2",
        "description": "write",
        "prompt": "Write it well.",
        "depends_on": ["s0", "s1"],
    },
]

TEXTS: dict[str, tuple[PromptKind, Inner, str, Answer, str]] = {
    "question": (
        PromptKind.QUESTION,
        question(),
        "approved",
        {"selected_options": ["red", "blue"], "custom_text": "dark"},
        'Your question was: "Which?"\n\nMy answer: red; blue; dark',
    ),
    "question answered freely": (
        PromptKind.QUESTION,
        question(),
        "approved",
        {"selected_options": [], "custom_text": "none of them"},
        'Your question was: "Which?"\n\nMy answer: none of them',
    ),
    "question answered by choice": (
        PromptKind.QUESTION,
        question(),
        "approved",
        {"selected_options": ["red"], "custom_text": ""},
        'Your question was: "Which?"\n\nMy answer: red',
    ),
    "question declined": (
        PromptKind.QUESTION,
        question(),
        "denied",
        {"selected_options": [], "custom_text": ""},
        'Your question was: "Which?"\n\nI do not want to answer it.',
    ),
    "permission": (
        PromptKind.PERMISSION,
        permission(),
        "approved",
        {"scope": "once", "message": ""},
        "You asked to be allowed to use Bash: rm x\n\nI allow it this once.",
    ),
    "permission for the session": (
        PromptKind.PERMISSION,
        permission(),
        "approved",
        {"scope": "session", "message": "carefully"},
        "You asked to be allowed to use Bash: rm x\n\n"
        "I allow it, for the rest of this session.\n\nMy remark: carefully",
    ),
    "permission refused": (
        PromptKind.PERMISSION,
        permission(),
        "denied",
        {"scope": "once", "message": "too risky"},
        "You asked to be allowed to use Bash: rm x\n\n"
        "I do not allow it. Find another way, or stop.\n\nMy remark: too risky",
    ),
    "permission without input": (
        PromptKind.PERMISSION,
        {"tool_name": "Camera", "options": []},
        "approved",
        {"scope": "once", "message": ""},
        "You asked to be allowed to use Camera\n\nI allow it this once.",
    ),
    "plan": (
        PromptKind.PLAN_REVIEW,
        plan_review(),
        "approved",
        {"reason": "go"},
        'You proposed a plan: "a report"\n\n'
        "I approve it as it is. Carry out its steps:\n"
        "1. s1: look\n2. s2: write (after s1)\n\nMy remark: go",
    ),
    "plan edited": (
        PromptKind.PLAN_REVIEW,
        plan_review(),
        "approved",
        {"reason": "", "updated_steps": EDITED},
        'You proposed a plan: "a report"\n\n'
        "I have edited it. Carry out exactly these steps:\n"
        "1. s1: look (by researcher)\n"
        "2. s2: write (after s0, s1)\n   Write it well.",
    ),
    "plan declined": (
        PromptKind.PLAN_REVIEW,
        plan_review(),
        "denied",
        {"reason": "too long"},
        'You proposed a plan: "a report"\n\nI decline it.\n\nMy reason: too long',
    ),
    "plan declined without reason": (
        PromptKind.PLAN_REVIEW,
        plan_review(),
        "denied",
        {"reason": ""},
        'You proposed a plan: "a report"\n\nI decline it.',
    ),
    "step to be left": (
        PromptKind.STEP_DECISION,
        step_decision(step_description="write", attempts=3),
        "continue",
        {"note": ""},
        'Step s2 ("write") failed after 3 attempts: rate limit\n\n'
        "Go on with what there is; do not try it again.",
    ),
    "step to be tried again": (
        PromptKind.STEP_DECISION,
        step_decision(),
        "retry",
        {"note": "slowly"},
        "Step s2 failed: rate limit\n\nTry it again.\n\nMy remark: slowly",
    ),
    "step without name": (
        PromptKind.STEP_DECISION,
        {"scope": "step", "reason": "busy"},
        "cancel",
        {"note": ""},
        "Step failed: busy\n\nStop here; do not go on with the plan.",
    ),
    "plan that failed": (
        PromptKind.STEP_DECISION,
        {"scope": "plan", "step_id": "s2", "reason": "busy"},
        "cancel",
        {"note": ""},
        "The plan failed: busy\n\nStop here; do not go on with the plan.",
    ),
}


class TestContinuationText:
    """Spec: Ruling E15."""

    @pytest.mark.parametrize("name", TEXTS)
    def test_states_question_and_answer(self, name: str) -> None:
        kind, inner, decision, payload, text = TEXTS[name]

        assert (
            continuation_text(kind, inner, decision=decision, payload=payload) == text
        )
