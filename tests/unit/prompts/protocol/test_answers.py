"""Which answers fit a prompt."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.protocol.client_messages import PromptUserResponse, read_client_message
from cards.protocol.errors import ErrorInfo, RemoteProtocolError
from cards.protocol.json_form import JSONValue, json_form
from cards.protocol.kinds import ErrorType, PromptKind
from cards.protocol.prompts import MAX_STEP_ID_CHARS, ReviewedStep
from prompts.protocol.answers import (
    MAX_STEPS,
    MAX_TEXT_CHARS,
    CheckedAnswer,
    check_answer,
)
from prompts.protocol.plan_edits import fault_of
from tests.unit.prompts.protocol.prompts import (
    OPTIONS,
    Inner,
    permission,
    plan_review,
    question,
    step_decision,
)

INNERS: dict[PromptKind, Inner] = {
    PromptKind.PERMISSION: permission(),
    PromptKind.QUESTION: question(),
    PromptKind.PLAN_REVIEW: plan_review(),
    PromptKind.STEP_DECISION: step_decision(),
}
YES_OR_NO = [kind for kind in PromptKind if kind is not PromptKind.STEP_DECISION]

LONG = "x" * (MAX_TEXT_CHARS + 1)


def check(
    kind: PromptKind, decision: str, inner: Inner | None = None, /, **payload: JSONValue
) -> CheckedAnswer:
    return check_answer(
        kind, INNERS[kind] if inner is None else inner, decision=decision,
        payload=payload,
    )  # fmt: skip


def refused(
    kind: PromptKind, decision: str, inner: Inner | None = None, /, **payload: JSONValue
) -> ErrorInfo:
    with pytest.raises(RemoteProtocolError) as caught:
        check(kind, decision, inner, **payload)
    assert caught.value.error.type is ErrorType.INVALID_INPUT
    assert not caught.value.closes_connection
    return caught.value.error


def outcome(kind: PromptKind, decision: str, payload: Any) -> CheckedAnswer | ErrorInfo:
    """Return what an answer comes to; nothing but these two may happen."""
    try:
        return check_answer(kind, INNERS[kind], decision=decision, payload=payload)
    except RemoteProtocolError as error:
        return error.error


def field_of(error: ErrorInfo) -> JSONValue:
    assert isinstance(error.details, dict)
    return error.details["field"]


class TestPermission:
    """Spec: EMIT 7.1, 7.3; Rulings E16, E18."""

    @pytest.mark.parametrize(
        ("payload", "scope", "key"),
        [
            ({}, "once", ""),
            ({"scope": "once"}, "once", ""),
            ({"scope": ""}, "once", ""),
            ({"scope": None, "approved": None, "message": None}, "once", ""),
            ({"scope": "session"}, "session", "Bash:rm x"),
            ({"scope": "session", "approved": True}, "session", "Bash:rm x"),
        ],
    )
    def test_is_allowed_as_far_as_it_was_asked(
        self, payload: dict[str, JSONValue], scope: str, key: str
    ) -> None:
        checked = check(PromptKind.PERMISSION, "approved", **payload)

        assert checked == CheckedAnswer(
            decision="approved",
            payload={"scope": scope, "message": ""},
            granted_key=key,
        )

    @pytest.mark.parametrize("scope", ["once", "session", "galaxy"])
    def test_that_is_denied_is_remembered_nowhere(self, scope: str) -> None:
        checked = check(
            PromptKind.PERMISSION, "denied", scope=scope, message="no\0", approved=False
        )

        assert checked == CheckedAnswer(
            decision="denied", payload={"scope": "once", "message": "no\ufffd"}
        )

    def test_without_a_key_is_remembered_nowhere(self) -> None:
        inner: Inner = {"tool_name": "Bash", "options": OPTIONS}

        checked = check(PromptKind.PERMISSION, "approved", inner, scope="session")

        assert (checked.payload["scope"], checked.granted_key) == ("session", "")

    @pytest.mark.parametrize(
        ("offered", "scope", "allowed"),
        [
            ([("once", True), ("once", False)], "session", "once"),
            # A scope that only a denial has is none to allow for.
            ([("once", True), ("session", False)], "session", "once"),
            ([("session", True)], "once", "session"),
            ([("session", True)], "", "session"),
            ([("session", True), ("once", True)], "galaxy", "once, session"),
            ([], "session", "once"),
        ],
    )
    def test_is_never_wider_than_offered(
        self, offered: list[tuple[str, bool]], scope: str, allowed: str
    ) -> None:
        options: list[JSONValue] = [
            {"label": f"{place}", "scope": scope, "allow": allow}
            for place, (scope, allow) in enumerate(offered)
        ]

        error = refused(
            PromptKind.PERMISSION, "approved", permission(options=options), scope=scope
        )

        assert error.code == "INVALID_ANSWER"
        assert error.details == {"field": "payload.scope", "allowed": allowed}

    def test_that_offers_denial_alone_cannot_be_given(self) -> None:
        options: list[JSONValue] = [{"label": "No", "scope": "once", "allow": False}]
        inner = permission(options=options)

        error = refused(PromptKind.PERMISSION, "approved", inner)

        assert error.details == {"field": "decision", "allowed": "denied"}
        assert check(PromptKind.PERMISSION, "denied", inner).decision == "denied"

    def test_that_offers_nothing_is_given_once(self) -> None:
        inner = permission(options=[])

        assert check(PromptKind.PERMISSION, "approved", inner).payload == {
            "scope": "once",
            "message": "",
        }

    @pytest.mark.parametrize(
        ("payload", "field"),
        [
            ({"approved": "yes"}, "payload.approved"),
            ({"approved": 1}, "payload.approved"),
            ({"scope": ["once"]}, "payload.scope"),
            ({"message": 1}, "payload.message"),
            ({"message": LONG}, "payload.message"),
        ],
        ids=lambda given: given if isinstance(given, str) else next(iter(given)),
    )
    def test_refuses_malformed_fields(
        self, payload: dict[str, JSONValue], field: str
    ) -> None:
        assert field_of(refused(PromptKind.PERMISSION, "denied", **payload)) == field


class TestQuestion:
    """Spec: EMIT 7.1, 7.3; Ruling E16."""

    @pytest.mark.parametrize(
        ("inner", "payload", "selected", "words"),
        [
            (question(), {"selected_options": ["red"]}, ["red"], ""),
            (question(), {"custom_text": " pink\0 "}, [], "pink\ufffd"),
            (
                question(),
                {"selected_options": ["blue"], "custom_text": "dark"},
                ["blue"],
                "dark",
            ),
            (
                question(multi=True, allow_custom=False),
                {"selected_options": ["blue", "red"], "approved": True},
                ["red", "blue"],
                "",
            ),
            (
                {"question": "Why?", "allow_custom": True},
                {"selected_options": None, "custom_text": "so"},
                [],
                "so",
            ),
        ],
    )
    def test_is_answered_as_offered(
        self,
        inner: Inner,
        payload: dict[str, JSONValue],
        selected: list[str],
        words: str,
    ) -> None:
        checked = check(PromptKind.QUESTION, "approved", inner, **payload)

        assert checked == CheckedAnswer(
            decision="approved",
            payload={"selected_options": [*selected], "custom_text": words},
        )

    @pytest.mark.parametrize(
        "payload", [{}, {"selected_options": [], "custom_text": "  "}]
    )
    def test_may_be_declined(self, payload: dict[str, JSONValue]) -> None:
        checked = check(PromptKind.QUESTION, "denied", **payload)

        assert checked == CheckedAnswer(
            decision="denied", payload={"selected_options": [], "custom_text": ""}
        )

    @pytest.mark.parametrize(
        ("decision", "inner", "payload", "field"),
        [
            ("denied", question(), {"selected_options": ["red"]}, "decision"),
            ("denied", question(), {"custom_text": "pink"}, "decision"),
            ("approved", question(), {}, "payload.selected_options"),
            (
                "approved",
                question(multi=True),
                {"selected_options": [], "custom_text": ""},
                "payload.selected_options",
            ),
            (
                "approved",
                question(),
                {"selected_options": ["green"]},
                "payload.selected_options",
            ),
            (
                "approved",
                {"question": "Why?", "allow_custom": True},
                {"selected_options": ["red"], "custom_text": "so"},
                "payload.selected_options",
            ),
            (
                "approved",
                question(multi=True),
                {"selected_options": ["red", "red"]},
                "payload.selected_options",
            ),
            (
                "approved",
                question(),
                {"selected_options": ["red", "blue"]},
                "payload.selected_options",
            ),
            (
                "approved",
                question(allow_custom=False),
                {"selected_options": ["red"], "custom_text": "dark"},
                "payload.custom_text",
            ),
            ("approved", question(), {"custom_text": LONG}, "payload.custom_text"),
            (
                "approved",
                question(),
                {"selected_options": [1]},
                "payload.selected_options[0]",
            ),
            (
                "approved",
                question(),
                {"selected_options": "red"},
                "payload.selected_options",
            ),
        ],
    )
    def test_refuses_what_does_not_fit(
        self,
        decision: str,
        inner: Inner,
        payload: dict[str, JSONValue],
        field: str,
    ) -> None:
        """Case FR-33."""
        error = refused(PromptKind.QUESTION, decision, inner, **payload)

        assert field_of(error) == field

    def test_tells_no_label_that_was_not_offered(self) -> None:
        error = refused(
            PromptKind.QUESTION, "approved", selected_options=["a secret" * 1000]
        )

        assert "secret" not in error.message


class TestPlanReview:
    """Spec: EMIT 7.3; Ruling E19; cases HC-31, HC-32, FR-39."""

    @pytest.mark.parametrize(
        "payload",
        [
            {},
            {"updated_steps": None},
            # EMIT 7.3: the plan as proposed.
            {"updated_steps": []},
            {"updated_steps": plan_review()["steps"]},
            {
                "updated_steps": [
                    {"id": " s1 ", "description": "look\n"},
                    {"id": "s2", "description": "write", "depends_on": [" s1 "]},
                ]
            },
        ],
        ids=["nothing", "null", "empty", "the same", "the same in other spaces"],
    )
    def test_approves_the_plan_as_it_is(self, payload: dict[str, JSONValue]) -> None:
        checked = check(PromptKind.PLAN_REVIEW, "approved", reason="go", **payload)

        assert checked == CheckedAnswer(decision="approved", payload={"reason": "go"})

    def test_takes_an_edit(self) -> None:
        checked = check(
            PromptKind.PLAN_REVIEW,
            "approved",
            approved=True,
            updated_steps=[
                {"id": "a", "description": "look\0 ", "prompt": "", "depends_on": []},
                {
                    "id": " b",
                    "description": "write",
                    "subagent_type": "writer",
                    "prompt": "well",
                    "depends_on": ["a "],
                    "colour": "red",
                },
            ],
        )

        assert checked == CheckedAnswer(
            decision="approved",
            payload={
                "reason": "",
                "updated_steps": [
                    {"id": "a", "description": "look\ufffd"},
                    {
                        "id": "b",
                        "description": "write",
                        "subagent_type": "writer",
                        "prompt": "well",
                        "depends_on": ["a"],
                    },
                ],
            },
        )

    @pytest.mark.parametrize(
        ("steps", "fault"),
        [
            (
                [
                    {"id": "a", "description": "x", "depends_on": ["b"]},
                    {"id": "b", "description": "x", "depends_on": ["a"]},
                ],
                "Step 1 (a) depends on b, which comes later.",
            ),
            ([{"id": "a"}], "Step 1 (a) says nothing of what is to be done."),
            ([{"id": " ", "description": "x"}], "Step 1 () has no id."),
            (
                [{"id": "a", "description": "x", "subagent_type": "hacker"}],
                "Step 1 (a) is for hacker, which is none of writer.",
            ),
        ],
    )
    def test_says_why_an_edit_cannot_be_carried_out(
        self, steps: list[JSONValue], fault: str
    ) -> None:
        inner = plan_review(available_subagents=["writer"])

        checked = check(PromptKind.PLAN_REVIEW, "approved", inner, updated_steps=steps)

        assert (checked.decision, checked.rejection) == ("approved", fault)
        assert checked.granted_key == ""

    def test_leaves_a_proposed_plan_with_other_sub_agents_alone(self) -> None:
        steps: list[JSONValue] = [
            {"id": "s1", "description": "look", "subagent_type": "x"}
        ]
        inner = plan_review(steps=steps, available_subagents=["writer"])

        checked = check(PromptKind.PLAN_REVIEW, "approved", inner, updated_steps=steps)

        assert checked.rejection == ""

    def test_declines_whatever_was_edited(self) -> None:
        checked = check(
            PromptKind.PLAN_REVIEW,
            "denied",
            approved=False,
            updated_steps=[{"id": ""}],
            reason="too long",
        )

        assert checked == CheckedAnswer(
            decision="denied", payload={"reason": "too long"}
        )

    @pytest.mark.parametrize(
        ("payload", "field"),
        [
            ({"updated_steps": {}}, "payload.updated_steps"),
            ({"updated_steps": [1]}, "payload.updated_steps[0]"),
            ({"updated_steps": [{}]}, "payload.updated_steps[0].id"),
            (
                {"updated_steps": [{"id": "x" * (MAX_STEP_ID_CHARS + 1)}]},
                "payload.updated_steps[0].id",
            ),
            (
                {"updated_steps": [{"id": "a", "depends_on": [1]}]},
                "payload.updated_steps[0].depends_on[0]",
            ),
            (
                {"updated_steps": [{"id": "a", "description": LONG}]},
                "payload.updated_steps",
            ),
            (
                {"updated_steps": [{"id": "a", "depends_on": [LONG]}]},
                "payload.updated_steps",
            ),
            (
                {"updated_steps": [{"id": f"{n}"} for n in range(MAX_STEPS + 1)]},
                "payload.updated_steps",
            ),
            ({"reason": 1}, "payload.reason"),
            ({"reason": LONG}, "payload.reason"),
        ],
        ids=range(10),
    )
    def test_refuses_malformed_fields(
        self, payload: dict[str, JSONValue], field: str
    ) -> None:
        error = refused(PromptKind.PLAN_REVIEW, "approved", **payload)

        assert field_of(error) == field


class TestStepDecision:
    """Spec: EMIT 7.3; Ruling E16; cases HC-38, HC-40, HC-41."""

    @pytest.mark.parametrize(
        ("decision", "allows_retry", "counts"),
        [
            ("continue", True, "continue"),
            ("continue", False, "continue"),
            ("retry", True, "retry"),
            ("retry", False, "cancel"),
            ("cancel", True, "cancel"),
            ("banana", True, "cancel"),
            ("approved", True, "cancel"),
            ("Retry", True, "cancel"),
            ("", True, "cancel"),
        ],
    )
    def test_takes_every_word_but_two_for_cancel(
        self, decision: str, allows_retry: bool, counts: str
    ) -> None:
        inner = step_decision(allow_retry=allows_retry)

        assert check(PromptKind.STEP_DECISION, decision, inner).decision == counts

    def test_of_a_prompt_that_says_nothing_of_retries_has_none(self) -> None:
        inner: Inner = {"scope": "plan", "reason": "busy"}

        assert check(PromptKind.STEP_DECISION, "retry", inner).decision == "cancel"

    def test_keeps_the_note_and_nothing_else(self) -> None:
        checked = check(
            PromptKind.STEP_DECISION, "retry", note="slowly\0", decision="cancel"
        )

        assert checked == CheckedAnswer(
            decision="retry", payload={"note": "slowly\ufffd"}
        )

    @pytest.mark.parametrize("note", [1, ["a"], LONG], ids=["number", "list", "long"])
    def test_refuses_a_malformed_note(self, note: JSONValue) -> None:
        error = refused(PromptKind.STEP_DECISION, "continue", note=note)

        assert field_of(error) == "payload.note"


TEXTS = st.text() | st.sampled_from(["", "a\0b", "once", "session", "red", "s1", "s2"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(TEXTS, inside, max_size=3)
    ),
    max_leaves=8,
)
STEPS = st.lists(
    st.fixed_dictionaries(
        {"id": TEXTS},
        optional={
            "description": TEXTS,
            "subagent_type": TEXTS,
            "prompt": TEXTS,
            "depends_on": st.lists(TEXTS, max_size=2),
        },
    ),
    max_size=3,
)
#: Fields as they should be as often as anything else.
PAYLOADS = st.none() | st.dictionaries(TEXTS, JSON, max_size=3) | st.fixed_dictionaries(
    {},
    optional={
        "approved": st.booleans() | JSON,
        "scope": TEXTS | JSON,
        "message": TEXTS | JSON,
        "selected_options": st.lists(TEXTS, max_size=2) | JSON,
        "custom_text": TEXTS | JSON,
        "updated_steps": STEPS | JSON,
        "reason": TEXTS | JSON,
        "note": TEXTS | JSON,
    },
)  # fmt: skip
DECISIONS = st.sampled_from(["approved", "denied", "continue", "retry"]) | st.text()


class TestCheckAnswer:
    """Spec: EMIT 7.3; Ruling E16."""

    @pytest.mark.parametrize("kind", YES_OR_NO)
    @pytest.mark.parametrize(
        "decision", ["maybe", "", "Approved", "approved ", "continue", "cancel", "true"]
    )
    def test_knows_two_decisions(self, kind: PromptKind, decision: str) -> None:
        error = refused(kind, decision)

        assert error.code == "INVALID_ANSWER"
        assert error.details == {"field": "decision", "allowed": "approved, denied"}

    @pytest.mark.parametrize("kind", YES_OR_NO)
    @pytest.mark.parametrize(("decision", "said"), [("approved", False), ("denied", 1)])
    def test_takes_no_side_in_a_contradiction(
        self, kind: PromptKind, decision: str, said: int
    ) -> None:
        error = refused(kind, decision, approved=bool(said))

        assert field_of(error) == "payload.approved"

    @pytest.mark.parametrize("kind", PromptKind)
    def test_needs_no_payload(self, kind: PromptKind) -> None:
        checked = check_answer(kind, INNERS[kind], decision="denied", payload=None)

        assert checked == check(kind, "denied")

    @given(kind=st.sampled_from(PromptKind), decision=DECISIONS, payload=PAYLOADS)
    def test_gives_clean_answers_or_one_error(
        self, kind: PromptKind, decision: str, payload: Any
    ) -> None:
        checked = outcome(kind, decision, payload)
        if isinstance(checked, ErrorInfo):
            assert checked.type is ErrorType.INVALID_INPUT
            assert str(field_of(checked)).startswith(("decision", "payload"))
            return

        encoded = msgspec.json.encode(checked.payload)
        assert msgspec.json.decode(encoded) == json_form(checked.payload)
        assert checked.payload == json_form(checked.payload)
        assert b"\\u0000" not in encoded

    @given(decision=DECISIONS, payload=PAYLOADS)
    def test_allows_for_the_session_only_what_says_so(
        self, decision: str, payload: Any
    ) -> None:
        """Spec: Ruling E18; case FR-29."""
        checked = outcome(PromptKind.PERMISSION, decision, payload)
        if isinstance(checked, ErrorInfo):
            return

        is_session = (
            decision == "approved" and (payload or {}).get("scope") == "session"
        )
        assert checked.granted_key == ("Bash:rm x" if is_session else "")

    @given(steps=STEPS)
    def test_lets_through_what_can_be_carried_out(self, steps: Any) -> None:
        """Spec: Ruling E19."""
        inner = plan_review(available_subagents=["s1"])
        checked = check_answer(
            PromptKind.PLAN_REVIEW,
            inner,
            decision="approved",
            payload={"updated_steps": steps},
        )

        edited = msgspec.convert(
            checked.payload.get("updated_steps", []), list[ReviewedStep]
        )
        assert checked.rejection == fault_of(edited, available=["s1"])


#: samples/w03: answers to one open permission; the field that is at fault.
W03: dict[int, tuple[dict[str, JSONValue], str]] = {
    1: ({}, "request_id"),
    3: ({"request_id": "req_1"}, "decision"),
    4: ({"request_id": "req_1", "decision": "maybe"}, "decision"),
    5: ({"request_id": "req_1", "decision": True}, "decision"),
    6: ({"request_id": "req_1", "decision": "approved", "payload": "yes"}, "payload"),
    7: (
        {
            "request_id": "req_1",
            "decision": "approved",
            "payload": {"approved": False},
        },
        "payload.approved",
    ),
    8: (
        {
            "request_id": "req_1",
            "decision": "approved",
            "payload": {"approved": True, "scope": "galaxy"},
        },
        "payload.scope",
    ),
}


class TestInvalidAnswers:
    """Spec: samples/w03; case FR-29."""

    @pytest.mark.parametrize("line", W03)
    def test_are_refused_by_the_field_at_fault(self, line: int) -> None:
        frame, field = W03[line]

        with pytest.raises(RemoteProtocolError) as caught:
            read_and_check(frame | {"type": "prompt.user_response"})

        assert field_of(caught.value.error) == field

    @pytest.mark.parametrize(
        ("decision", "payload"),
        [
            ("approved", {"approved": True, "scope": "once"}),
            ("denied", {"approved": False}),
        ],
        ids=["line 9", "line 10"],
    )
    def test_are_not_those_that_fit(
        self, decision: str, payload: dict[str, JSONValue]
    ) -> None:
        checked = read_and_check(
            {
                "type": "prompt.user_response",
                "request_id": "req_1",
                "decision": decision,
                "payload": payload,
            }
        )

        assert checked.decision == decision
        assert checked.payload == {"scope": "once", "message": ""}


def read_and_check(frame: dict[str, JSONValue]) -> CheckedAnswer:
    message = read_client_message(frame)
    assert isinstance(message, PromptUserResponse)
    return check_answer(
        PromptKind.PERMISSION,
        permission(),
        decision=message.decision,
        payload=message.payload,
    )
