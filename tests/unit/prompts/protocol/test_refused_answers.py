"""What the user is told whose answer does not fit."""

from typing import Any

import pytest

from cards.protocol.errors import RemoteProtocolError
from cards.protocol.kinds import PromptKind
from prompts.protocol.answers import MAX_STEPS, MAX_TEXT_CHARS, check_answer
from tests.unit.prompts.protocol.prompts import (
    Answer,
    Inner,
    permission,
    plan_review,
    question,
)

ALLOW: dict[str, Any] = {"label": "Allow", "scope": "once", "allow": True}
DENY: dict[str, Any] = {"label": "Deny", "scope": "once", "allow": False}

#: An answer that does not fit, and what its user is told.
MISFITS: dict[str, tuple[PromptKind, str, Inner, Answer, str]] = {
    "no decision": (
        PromptKind.QUESTION,
        "maybe",
        question(),
        {},
        "Please approve or decline.",
    ),
    "a contradiction": (
        PromptKind.PERMISSION,
        "approved",
        permission(),
        {"approved": False},
        "Your answer says both yes and no; please approve or decline again.",
    ),
    "an allowance where there is none": (
        PromptKind.PERMISSION,
        "approved",
        permission(options=[DENY]),
        {},
        "This cannot be allowed here; please decline it.",
    ),
    "an allowance that is too wide": (
        PromptKind.PERMISSION,
        "approved",
        permission(options=[ALLOW]),
        {"scope": "session"},
        "It cannot be allowed for that long; please choose one of the options.",
    ),
    "a text that is too long": (
        PromptKind.PERMISSION,
        "denied",
        permission(),
        {"message": "x" * (MAX_TEXT_CHARS + 1)},
        "Please shorten your text to 100,000 characters.",
    ),
    "an answer beside a denial": (
        PromptKind.QUESTION,
        "denied",
        question(),
        {"custom_text": "no"},
        "Please either send your answer or decline without one.",
    ),
    "a text that is not wanted": (
        PromptKind.QUESTION,
        "approved",
        question(allow_custom=False),
        {"custom_text": "green"},
        "Please choose one of the options, without a text of your own.",
    ),
    "nothing": (
        PromptKind.QUESTION,
        "approved",
        question(),
        {},
        "Please choose an option or write an answer.",
    ),
    "nothing of what is offered": (
        PromptKind.QUESTION,
        "approved",
        question(allow_custom=False),
        {},
        "Please choose an option.",
    ),
    "no text": (
        PromptKind.QUESTION,
        "approved",
        {"question": "which?", "allow_custom": True},
        {},
        "Please write an answer.",
    ),
    "an option that was not offered": (
        PromptKind.QUESTION,
        "approved",
        question(),
        {"selected_options": ["pink"]},
        "Please choose among the options that are offered.",
    ),
    "an option twice": (
        PromptKind.QUESTION,
        "approved",
        question(multi=True),
        {"selected_options": ["red", "red"]},
        "Please choose each option only once.",
    ),
    "several options": (
        PromptKind.QUESTION,
        "approved",
        question(multi=False),
        {"selected_options": ["red", "blue"]},
        "Please choose only one of the options.",
    ),
    "too long a plan": (
        PromptKind.PLAN_REVIEW,
        "approved",
        plan_review(),
        {"updated_steps": [{"id": f"s{each}"} for each in range(MAX_STEPS + 1)]},
        "Please shorten the plan to 500 steps.",
    ),
}


class TestRefusal:
    """What does not fit is refused in words for its user. Spec: EMIT 12."""

    @pytest.mark.parametrize("name", MISFITS)
    def test_tells_the_user_what_to_do(self, name: str) -> None:
        kind, decision, inner, payload, words = MISFITS[name]

        with pytest.raises(RemoteProtocolError) as caught:
            check_answer(kind, inner, decision=decision, payload=payload)

        error = caught.value.error
        assert (error.code, error.user_message) == ("INVALID_ANSWER", words)
