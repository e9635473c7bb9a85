"""The prompt book on the real database: SQLite, or PostgreSQL by TEST_DATABASE_URL."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import IntegrityError, connections, transaction

from cards.log.store import Entry, EntryRefused, LogStore, RowChange, open_store
from cards.models import Event, Session
from cards.models import Turn as TurnRow
from cards.ports import NewWait
from cards.protocol.client_messages import (
    PromptUserResponse,
    ToolResult,
    read_client_message,
)
from cards.protocol.codec import encode_event
from cards.protocol.errors import RemoteProtocolError
from cards.protocol.events import PromptUser
from cards.protocol.kinds import PromptKind
from cards.protocol.payloads import PromptUserPayload
from prompts.book import StoredPromptBook
from prompts.models import PendingWait, PermissionGrant, SettledPrompt
from tests.integration.cards.conftest import make_session
from tests.unit.cards.protocol.frames import PROMPT_INNERS, make_envelope

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
BEIJING = timezone(timedelta(hours=8))
FAR_PAST = datetime(1970, 1, 1, tzinfo=UTC)
FAR_FUTURE = datetime(9999, 12, 30, tzinfo=UTC)

BOOK = StoredPromptBook(time_to_live=15 * DAY)

PERMISSION_INNER: dict[str, Any] = {
    "tool_name": "Bash",
    "tool_input": "rm x",
    "options": [
        {"label": "Once", "scope": "once", "allow": True},
        {"label": "Session", "scope": "session", "allow": True},
        {"label": "No", "scope": "once", "allow": False},
    ],
    "permission_key": "Bash:rm x",
}

#: Times that end a wait, seen from NOW, in zones of any kind. Case FR-165.
IN_TIME: dict[str, dict[str, datetime | None]] = {
    "neither": {"expires_at": None, "deadline_at": None},
    "a second before": {"expires_at": NOW + SECOND},
    "a second before, in another zone": {
        "expires_at": (NOW + SECOND).astimezone(BEIJING)
    },
    "a second before its deadline": {"deadline_at": NOW + SECOND},
    "a fraction before": {"expires_at": NOW + timedelta(milliseconds=1)},
    "far away": {"expires_at": FAR_FUTURE, "deadline_at": FAR_FUTURE},
}
TOO_LATE: dict[str, dict[str, datetime | None]] = {
    "on the dot": {"expires_at": NOW},
    "a second after": {"expires_at": NOW - SECOND},
    "a second after, in another zone": {
        "expires_at": (NOW - SECOND).astimezone(BEIJING)
    },
    "a second after its deadline": {
        "expires_at": NOW + DAY,
        "deadline_at": NOW - SECOND,
    },
    "on the dot of its deadline": {"expires_at": None, "deadline_at": NOW},
    "long past": {"expires_at": FAR_PAST, "deadline_at": FAR_PAST},
}


def make_turn(
    session_id: str = "sess_1", state: str = "running", turn_no: int = 1
) -> TurnRow:
    session = Session.objects.filter(session_id=session_id).first()
    return TurnRow.objects.create(
        session=session or make_session(session_id),
        turn_no=turn_no,
        event_id=f"c{turn_no}",
        card_id=f"turn_c{turn_no}",
        run_id="run_1",
        state=state,
        message={"text": "hi", "content": []},
        accepted_at=NOW,
    )


@pytest.fixture(name="turn")
def _turn(db: None) -> TurnRow:
    return make_turn()


def frame_of(kind: str, request_id: str, inner: dict[str, Any] | None = None) -> bytes:
    if kind == "client_tool":
        return b""
    payload = PromptUserPayload(
        request_id=request_id,
        kind=PromptKind(kind),
        inner=PROMPT_INNERS[PromptKind(kind)] if inner is None else inner,
        timeout_ms=0,
    )
    return encode_event(PromptUser(envelope=make_envelope(), payload=payload))


def make_wait(
    turn: TurnRow,
    request_id: str = "req_1",
    *,
    kind: str = "question",
    inner: dict[str, Any] | None = None,
    **fields: Any,
) -> PendingWait:
    """Store a wait as it stands when its prompt was sent."""
    return PendingWait.objects.create(
        **{
            "request_id": request_id,
            "session_id": turn.session_id,
            "turn": turn,
            "kind": kind,
            "state": "pending",
            "frame": frame_of(kind, request_id, inner),
            "seq": 2,
            "created_at": NOW - DAY,
            "expires_at": NOW + 14 * DAY,
        }
        | fields
    )


def new_wait(turn: TurnRow, **fields: Any) -> NewWait:
    wait = NewWait(
        request_id="req_1",
        session_pk=turn.session_id,
        turn_pk=turn.pk,
        kind="question",
        created_at=NOW,
        timeout_ms=0,
    )
    return replace(wait, **fields)


def response(
    decision: str = "approved", request_id: str = "req_1", **payload: Any
) -> PromptUserResponse:
    return PromptUserResponse(
        request_id=request_id,
        decision=decision,
        payload=payload or {"custom_text": "this"},
    )


def claim(turn: TurnRow, answer: PromptUserResponse, **options: Any) -> None:
    BOOK.claim_answer(turn.session_id, answer, NOW, **options)


def code_of(caught: pytest.ExceptionInfo[RemoteProtocolError]) -> object:
    return caught.value.error.code


def the_wait() -> PendingWait:
    return PendingWait.objects.get()


class TestOpenWait:
    """Spec: Rulings E15, E17."""

    @pytest.mark.parametrize(
        ("days", "expires_at"),
        [
            (15, datetime(2026, 12, 16, 10, 0, tzinfo=UTC)),
            (0.5, datetime(2026, 12, 1, 22, 0, tzinfo=UTC)),
            (None, None),
        ],
    )
    def test_says_when_it_expires(
        self, turn: TurnRow, days: float | None, expires_at: datetime | None
    ) -> None:
        book = StoredPromptBook(
            time_to_live=None if days is None else timedelta(days=days)
        )

        book.open_wait(new_wait(turn))

        assert the_wait().expires_at == expires_at

    @pytest.mark.parametrize(
        ("timeout_ms", "deadline_at"),
        [
            (0, None),
            (50, NOW + timedelta(milliseconds=50)),
            (60_000, NOW + 60 * SECOND),
        ],
    )
    def test_says_when_it_lapses(
        self, turn: TurnRow, timeout_ms: int, deadline_at: datetime | None
    ) -> None:
        BOOK.open_wait(new_wait(turn, timeout_ms=timeout_ms))

        assert the_wait().deadline_at == deadline_at

    def test_counts_moments_whatever_their_zone(self, turn: TurnRow) -> None:
        """Case FR-165."""
        BOOK.open_wait(new_wait(turn, created_at=NOW.astimezone(BEIJING)))

        assert (the_wait().created_at, the_wait().expires_at) == (NOW, NOW + 15 * DAY)

    def test_is_seen_by_nobody_yet(self, turn: TurnRow) -> None:
        BOOK.open_wait(new_wait(turn))

        assert the_wait().state == "opening"
        assert BOOK.open_prompts(turn.session_id, NOW) == []
        assert BOOK.may_be_settled(turn.session_id, "req_1") is False
        with pytest.raises(RemoteProtocolError):
            claim(turn, response())

    def test_refuses_an_id_twice(self, turn: TurnRow) -> None:
        BOOK.open_wait(new_wait(turn))

        with pytest.raises(IntegrityError), transaction.atomic():
            BOOK.open_wait(new_wait(turn))

        assert PendingWait.objects.count() == 1

    def test_may_be_dropped(self, turn: TurnRow) -> None:
        BOOK.open_wait(new_wait(turn))
        BOOK.open_wait(new_wait(turn, request_id="req_2"))

        BOOK.wait_dropped("req_1")
        BOOK.wait_dropped("req_1")

        assert the_wait().request_id == "req_2"


@pytest.fixture(name="log")
def _log(transactional_db: None) -> Iterator[LogStore]:
    opened = open_store()
    yield opened
    opened.close()


def entry(turn: TurnRow, seq: int, *changes: RowChange) -> Entry:
    return Entry(turn.session_id, 0, seq, b"{}", changes)


class TestLogChanges:
    """What the log's writer does with its frames. Spec: Rulings E3, E15."""

    def test_show_a_wait(self, log: LogStore) -> None:
        turn = make_turn()
        BOOK.open_wait(new_wait(turn))
        frame = frame_of("question", "req_1")

        log.write([entry(turn, 7, BOOK.wait_shown("req_1", frame=frame, seq=7))])

        (prompt,) = BOOK.open_prompts(turn.session_id, NOW)
        assert (prompt.request_id, prompt.seq, prompt.frame) == ("req_1", 7, frame)
        assert BOOK.may_be_settled(turn.session_id, "req_1") is True

    @pytest.mark.parametrize("state", ["pending", "settled", None])
    def test_show_it_once(self, log: LogStore, state: str | None) -> None:
        turn = make_turn()
        if state:
            make_wait(turn, state=state)

        with pytest.raises(EntryRefused):
            log.write([entry(turn, 9, BOOK.wait_shown("req_1", frame=b"", seq=9))])

        assert not Event.objects.filter(seq=9).exists()
        assert not PendingWait.objects.filter(seq=9).exists()

    @pytest.mark.parametrize("state", ["opening", "pending", "settled"])
    def test_remove_a_wait_and_note_how_it_ended(
        self, log: LogStore, state: str
    ) -> None:
        turn = make_turn()
        make_wait(turn, state=state)
        make_wait(turn, "req_2")
        at = NOW.astimezone(BEIJING)

        removed = BOOK.wait_removed(turn.session_id, "req_1", "approved", at)
        log.write([entry(turn, 3, *removed)])

        assert the_wait().request_id == "req_2"
        note = SettledPrompt.objects.get()
        assert (note.session_id, note.request_id) == (turn.session_id, "req_1")
        assert (note.decision, note.settled_at) == ("approved", NOW)

    def test_remove_it_once(self, log: LogStore) -> None:
        turn = make_turn()
        make_wait(turn)
        removed = BOOK.wait_removed(turn.session_id, "req_1", "timeout", NOW)
        log.write([entry(turn, 3, *removed)])

        with pytest.raises(EntryRefused):
            log.write([entry(turn, 4, *removed)])

        assert list(Event.objects.values_list("seq", flat=True)) == [3]
        assert SettledPrompt.objects.count() == 1


class TestOpenPrompts:
    """Spec: EMIT 2.4.2; Rulings E1, E17."""

    def test_come_in_the_order_of_the_log(self, turn: TurnRow) -> None:
        for request_id, seq in (("req_a", 30), ("req_b", 4), ("req_c", 100)):
            make_wait(turn, request_id, seq=seq)

        prompts = BOOK.open_prompts(turn.session_id, NOW)

        assert [prompt.request_id for prompt in prompts] == ["req_b", "req_a", "req_c"]

    def test_are_the_stored_bytes(self, turn: TurnRow) -> None:
        """Spec: Ruling E3; case HC-22."""
        frame = frame_of("question", "req_1", {"question": "覆盖中文论文吗\\u0000？"})
        make_wait(turn, frame=frame)

        (prompt,) = BOOK.open_prompts(turn.session_id, NOW)

        assert prompt.frame == frame
        assert (prompt.session_pk, prompt.resent_at) == (turn.session_id, None)

    def test_are_those_of_the_session(self, turn: TurnRow) -> None:
        make_wait(make_turn("sess_2"))

        assert BOOK.open_prompts(turn.session_id, NOW) == []

    @pytest.mark.parametrize(
        "fields", [{"state": "opening"}, {"state": "settled"}, {"kind": "client_tool"}]
    )
    def test_are_none_that_cannot_be_answered(
        self, turn: TurnRow, fields: dict[str, Any]
    ) -> None:
        make_wait(turn, **fields)

        assert BOOK.open_prompts(turn.session_id, NOW) == []

    @pytest.mark.parametrize("times", IN_TIME.values(), ids=IN_TIME)
    @pytest.mark.parametrize("zone", [UTC, BEIJING], ids=["UTC", "+08:00"])
    def test_stay_within_their_time(
        self, turn: TurnRow, times: dict[str, Any], zone: timezone
    ) -> None:
        """Cases HC-26, FR-165."""
        make_wait(turn, **times)

        assert len(BOOK.open_prompts(turn.session_id, NOW.astimezone(zone))) == 1

    @pytest.mark.parametrize("times", TOO_LATE.values(), ids=TOO_LATE)
    @pytest.mark.parametrize("zone", [UTC, BEIJING], ids=["UTC", "+08:00"])
    def test_are_none_beyond_their_time(
        self, turn: TurnRow, times: dict[str, Any], zone: timezone
    ) -> None:
        """Cases HC-26, FR-165."""
        make_wait(turn, **times)

        assert BOOK.open_prompts(turn.session_id, NOW.astimezone(zone)) == []

    def test_of_an_old_session_live_by_their_own_age(self, turn: TurnRow) -> None:
        """Case FR-159."""
        Session.objects.update(created_at=NOW - 30 * DAY, last_activity_at=NOW)
        BOOK.open_wait(new_wait(turn))
        PendingWait.objects.update(state="pending")

        assert len(BOOK.open_prompts(turn.session_id, NOW + 14 * DAY)) == 1


class TestClaimAnswer:
    """Spec: EMIT 7.3; Rulings E15, E16."""

    def test_keeps_what_counts_of_the_answer(self, turn: TurnRow) -> None:
        make_wait(turn)

        claim(turn, response(custom_text=" this ", colour="red"), reason="by ann")

        (settled,) = BOOK.settlements([turn.session_id])
        assert (settled.request_id, settled.kind) == ("req_1", "question")
        assert (settled.session_pk, settled.turn_pk) == (turn.session_id, turn.pk)
        assert (settled.decision, settled.is_lapsed) == ("approved", False)
        assert settled.payload == {"selected_options": [], "custom_text": "this"}
        assert (settled.reason, settled.rejection) == ("by ann", "")
        assert settled.frame == frame_of("question", "req_1")
        assert the_wait().settled_at == NOW

    def test_keeps_why_an_edit_cannot_be_carried_out(self, turn: TurnRow) -> None:
        """Spec: Ruling E19; case HC-32."""
        make_wait(turn, kind="plan_review")
        twice = [{"id": "s1", "description": "look"}] * 2

        claim(turn, response(updated_steps=twice))

        (settled,) = BOOK.settlements([turn.session_id])
        assert settled.rejection == "Step 2 (s1) has the id of an earlier step."

    @pytest.mark.parametrize(
        ("decision", "payload"),
        [("maybe", {}), ("approved", {"custom_text": 5}), ("approved", {"x": 1})],
    )
    def test_leaves_a_prompt_open_for_an_answer_that_does_not_fit(
        self, turn: TurnRow, decision: str, payload: dict[str, Any]
    ) -> None:
        """Case FR-35."""
        make_wait(turn)

        with pytest.raises(RemoteProtocolError) as caught:
            claim(turn, response(decision, **payload))

        assert code_of(caught) in {"INVALID_ANSWER", "INVALID_FIELD"}
        assert the_wait().state == "pending"
        claim(turn, response())
        assert the_wait().state == "settled"

    def test_takes_the_first_answer_alone(self, turn: TurnRow) -> None:
        """Cases HC-19, FR-23."""
        make_wait(turn)
        make_wait(turn, "req_2")
        claim(turn, response(custom_text="first"))

        with pytest.raises(RemoteProtocolError) as caught:
            claim(turn, response("denied"))

        assert code_of(caught) == "UNKNOWN_REQUEST_ID"
        (settled,) = BOOK.settlements([turn.session_id])
        assert settled.payload["custom_text"] == "first"
        assert PendingWait.objects.get(request_id="req_2").state == "pending"

    @pytest.mark.parametrize(
        "fields",
        [
            {"state": "opening"},
            {"state": "settled"},
            {"kind": "client_tool"},
            {"request_id": "req_2"},
            *TOO_LATE.values(),
        ],
        ids=["opening", "settled", "client tool", "unknown", *TOO_LATE],
    )
    def test_knows_nothing_that_cannot_be_answered(
        self, turn: TurnRow, fields: dict[str, Any]
    ) -> None:
        """Cases HC-20, HC-26, FR-17."""
        wait = make_wait(turn, **fields)

        for _ in range(3):
            with pytest.raises(RemoteProtocolError) as caught:
                claim(turn, response())
            assert code_of(caught) == "UNKNOWN_REQUEST_ID"
            assert caught.value.error.retryable is False

        assert (the_wait().state, the_wait().answer) == (wait.state, None)

    def test_knows_nothing_of_another_session(self, turn: TurnRow) -> None:
        other = make_turn("sess_2")
        make_wait(turn)

        with pytest.raises(RemoteProtocolError) as caught:
            claim(other, response())

        assert code_of(caught) == "UNKNOWN_REQUEST_ID"
        assert the_wait().state == "pending"

    @pytest.mark.parametrize("times", IN_TIME.values(), ids=IN_TIME)
    def test_takes_an_answer_in_time(
        self, turn: TurnRow, times: dict[str, Any]
    ) -> None:
        make_wait(turn, **times)

        claim(turn, response())

        assert the_wait().state == "settled"

    @pytest.mark.parametrize("state", ["queued", "running", "ended"])
    def test_does_not_ask_what_became_of_the_turn(self, db: None, state: str) -> None:
        """Spec: Ruling E14: prompts survive the worker that asked."""
        turn = make_turn(state=state)
        make_wait(turn)

        claim(turn, response())

        assert the_wait().state == "settled"

    def test_takes_one_of_many_at_the_same_time(self, transactional_db: None) -> None:
        """Spec: Ruling E15: first answer wins."""
        turn = make_turn()
        make_wait(turn)
        together = threading.Barrier(4)

        def answer(number: int) -> bool:
            together.wait()
            try:
                with transaction.atomic():
                    claim(turn, response(custom_text=f"{number}"))
            except RemoteProtocolError:
                return False
            finally:
                connections.close_all()
            return True

        with ThreadPoolExecutor(4) as pool:
            is_taken = list(pool.map(answer, range(4)))

        assert is_taken.count(True) == 1
        (settled,) = BOOK.settlements([turn.session_id])
        assert settled.payload["custom_text"] == f"{is_taken.index(True)}"


class TestSampleOfInvalidAnswers:
    def test_lets_one_line_run_the_tool(self, turn: TurnRow) -> None:
        """Spec: samples/w03; case FR-29."""
        make_wait(turn, kind="permission", inner=PERMISSION_INNER)
        request = {"request_id": "req_1"}
        lines: list[dict[str, Any]] = [
            {},
            {"request_id": "req_0000000000000000", "decision": "approved"},
            request,
            request | {"decision": "maybe"},
            request | {"decision": True},
            request | {"decision": "approved", "payload": "yes"},
            request | {"decision": "approved", "payload": {"approved": False}},
            request
            | {
                "decision": "approved",
                "payload": {"approved": True, "scope": "galaxy"},
            },
            request
            | {"decision": "approved", "payload": {"approved": True, "scope": "once"}},
            request | {"decision": "denied", "payload": {"approved": False}},
        ]

        outcomes = [self._outcome(turn, line) for line in lines]

        assert outcomes == [
            "MISSING_FIELD",
            "UNKNOWN_REQUEST_ID",
            "MISSING_FIELD",
            "INVALID_ANSWER",
            "INVALID_FIELD",
            "INVALID_FIELD",
            "INVALID_ANSWER",
            "INVALID_ANSWER",
            "settled",
            "UNKNOWN_REQUEST_ID",
        ]
        (settled,) = BOOK.settlements([turn.session_id])
        assert (settled.decision, settled.payload["scope"]) == ("approved", "once")
        assert PermissionGrant.objects.count() == 0

    @staticmethod
    def _outcome(turn: TurnRow, line: dict[str, Any]) -> object:
        try:
            message = read_client_message({"type": "prompt.user_response"} | line)
            assert isinstance(message, PromptUserResponse)
            claim(turn, message)
        except RemoteProtocolError as error:
            return error.error.code
        return "settled"


def tool_result(
    status: Any = "success", tool_use_id: str = "tool_1", **fields: Any
) -> ToolResult:
    return ToolResult(tool_use_id=tool_use_id, status=status, **fields)


class TestClaimResult:
    """Spec: EMIT 9; Ruling E24."""

    @pytest.mark.parametrize(
        ("status", "decision"),
        [
            ("success", "success"),
            ("ok", "success"),
            ("error", "error"),
            ("denied", "denied"),
            ("timeout", "timeout"),
            ("cancelled", "cancelled"),
        ],
    )
    def test_keeps_what_the_client_gave(
        self, turn: TurnRow, status: str, decision: str
    ) -> None:
        make_wait(turn, "tool_1", kind="client_tool")
        given = tool_result(
            status, output={"a": "x\0"}, error="why", metadata={"n": 2**60}
        )

        BOOK.claim_result(turn.session_id, given, NOW)

        (settled,) = BOOK.settlements([turn.session_id])
        assert (settled.kind, settled.decision) == ("client_tool", decision)
        # A client that says `timeout` is no engine whose time has passed.
        assert settled.is_lapsed is False
        assert settled.payload == {
            "output": {"a": "x\ufffd"},
            "error": "why",
            "metadata": {"n": f"{2**60}"},
        }

    def test_keeps_that_it_gave_nothing(self, turn: TurnRow) -> None:
        make_wait(turn, "tool_1", kind="client_tool")

        BOOK.claim_result(turn.session_id, tool_result(), NOW)

        (settled,) = BOOK.settlements([turn.session_id])
        assert settled.payload == {"output": None, "error": None, "metadata": {}}

    def test_takes_the_first_result_alone(self, turn: TurnRow) -> None:
        make_wait(turn, "tool_1", kind="client_tool")
        BOOK.claim_result(turn.session_id, tool_result(output=1), NOW)

        with pytest.raises(RemoteProtocolError) as caught:
            BOOK.claim_result(turn.session_id, tool_result(output=2), NOW)

        assert code_of(caught) == "UNKNOWN_TOOL_USE_ID"
        (settled,) = BOOK.settlements([turn.session_id])
        assert settled.payload["output"] == 1

    @pytest.mark.parametrize("state", ["queued", "ended"])
    def test_takes_none_when_its_turn_does_not_run(self, db: None, state: str) -> None:
        """Its card was closed with the turn."""
        turn = make_turn(state=state)
        make_wait(turn, "tool_1", kind="client_tool")

        with pytest.raises(RemoteProtocolError) as caught:
            BOOK.claim_result(turn.session_id, tool_result(), NOW)

        assert code_of(caught) == "UNKNOWN_TOOL_USE_ID"
        assert the_wait().state == "pending"

    @pytest.mark.parametrize(
        "fields",
        [{"state": "opening"}, {"state": "settled"}, {"kind": "question"}],
        ids=["opening", "settled", "a prompt"],
    )
    def test_knows_nothing_else(self, turn: TurnRow, fields: dict[str, Any]) -> None:
        wait = make_wait(turn, "tool_1", **({"kind": "client_tool"} | fields))

        with pytest.raises(RemoteProtocolError):
            BOOK.claim_result(turn.session_id, tool_result(), NOW)

        assert (the_wait().state, the_wait().answer) == (wait.state, None)

    def test_knows_nothing_of_another_session(self, turn: TurnRow) -> None:
        make_wait(turn, "tool_1", kind="client_tool")
        other = make_turn("sess_2")

        with pytest.raises(RemoteProtocolError):
            BOOK.claim_result(other.session_id, tool_result(), NOW)

        assert the_wait().state == "pending"


class TestLapse:
    """Spec: Ruling E17."""

    @pytest.mark.parametrize("kind", ["question", "client_tool"])
    @pytest.mark.parametrize("deadline_at", [NOW, NOW - SECOND, FAR_PAST], ids=str)
    def test_settles_what_is_over(
        self, turn: TurnRow, kind: str, deadline_at: datetime
    ) -> None:
        make_wait(turn, kind=kind, deadline_at=deadline_at)

        assert BOOK.lapse("req_1", NOW) is True

        (settled,) = BOOK.settlements([turn.session_id])
        assert (settled.decision, settled.is_lapsed) == ("timeout", True)
        assert settled.payload == {}
        assert the_wait().settled_at == NOW

    @pytest.mark.parametrize(
        "fields",
        [
            {"deadline_at": NOW + timedelta(milliseconds=1)},
            {"deadline_at": (NOW + SECOND).astimezone(BEIJING)},
            {"deadline_at": None},
            # That is the sweep's business.
            {"deadline_at": None, "expires_at": NOW - DAY},
            {"deadline_at": NOW - SECOND, "state": "opening"},
            {"deadline_at": NOW - SECOND, "state": "settled"},
        ],
        ids=["in time", "other zone", "none", "expired", "opening", "settled"],
    )
    def test_leaves_everything_else(
        self, turn: TurnRow, fields: dict[str, Any]
    ) -> None:
        wait = make_wait(turn, **fields)

        assert BOOK.lapse("req_1", NOW) is False
        assert BOOK.lapse_due(NOW, limit=10) == 0

        assert (the_wait().state, the_wait().is_lapsed) == (wait.state, False)

    def test_keeps_an_answer_that_was_faster(self, turn: TurnRow) -> None:
        make_wait(turn, deadline_at=NOW + SECOND)
        claim(turn, response())

        assert BOOK.lapse("req_1", NOW + 2 * SECOND) is False

        (settled,) = BOOK.settlements([turn.session_id])
        assert settled.decision == "approved"

    def test_of_the_due_begins_with_the_oldest(self, turn: TurnRow) -> None:
        for number in (3, 1, 2):
            at = NOW - number * SECOND
            make_wait(turn, f"req_{number}", deadline_at=at)

        assert BOOK.lapse_due(NOW, limit=2) == 2
        assert settled_ids() == {"req_3", "req_2"}
        assert BOOK.lapse_due(NOW, limit=2) == 1
        assert BOOK.lapse_due(NOW, limit=2) == 0

    def test_of_the_expired_leaves_what_has_time(self, turn: TurnRow) -> None:
        """Case HC-26."""
        make_wait(turn, "req_old", expires_at=NOW)
        make_wait(turn, "req_older", expires_at=(NOW - DAY).astimezone(BEIJING))
        make_wait(turn, "req_young", expires_at=NOW + SECOND)
        make_wait(turn, "req_ever", expires_at=None)
        make_wait(turn, "req_unseen", expires_at=NOW - DAY, state="opening")
        make_wait(turn, "tool_1", expires_at=NOW - DAY, kind="client_tool")

        assert BOOK.lapse_expired(NOW, limit=1) == 1
        assert settled_ids() == {"req_older"}
        assert BOOK.lapse_expired(NOW, limit=10) == 1
        assert settled_ids() == {"req_older", "req_old"}
        assert BOOK.lapse_expired(NOW, limit=10) == 0

    def test_of_all_leaves_what_was_settled(self, turn: TurnRow) -> None:
        first, second = make_wait(turn), make_wait(turn, "req_2")
        claim(turn, response())

        assert BOOK.lapse_all([first.pk, second.pk], NOW) == [second.pk]

        decisions = {each.decision for each in BOOK.settlements([turn.session_id])}
        assert decisions == {"approved", "timeout"}


class TestExpire:
    """Spec: Ruling E17."""

    def test_settles_an_open_prompt_with_a_reason(self, turn: TurnRow) -> None:
        make_wait(turn)

        BOOK.expire(turn.session_id, "req_1", NOW, reason="expired by olga")

        (settled,) = BOOK.settlements([turn.session_id])
        assert (settled.decision, settled.is_lapsed) == ("timeout", True)
        assert settled.reason == "expired by olga"

    @pytest.mark.parametrize(
        "fields", [{"state": "settled"}, {"kind": "client_tool"}, {"expires_at": NOW}]
    )
    def test_knows_nothing_that_is_not_open(
        self, turn: TurnRow, fields: dict[str, Any]
    ) -> None:
        make_wait(turn, **fields)

        with pytest.raises(RemoteProtocolError) as caught:
            BOOK.expire(turn.session_id, "req_1", NOW, reason="why")

        assert code_of(caught) == "UNKNOWN_REQUEST_ID"
        assert the_wait().reason == ""


def settled_ids() -> set[str]:
    rows = PendingWait.objects.filter(state="settled")
    return set(rows.values_list("request_id", flat=True))


class TestSettlements:
    """Spec: Ruling E15."""

    def test_come_oldest_first(self, turn: TurnRow) -> None:
        for request_id, at in (("req_b", NOW), ("req_a", NOW - SECOND)):
            make_wait(turn, request_id, state="settled", settled_at=at)
        make_wait(turn, "req_open")

        settled = BOOK.settlements([turn.session_id])

        assert [each.request_id for each in settled] == ["req_a", "req_b"]

    def test_are_known_by_session_and_by_request(self, turn: TurnRow) -> None:
        other = make_turn("sess_2")
        make_wait(turn, "req_1", state="settled", settled_at=NOW)
        make_wait(other, "req_2")

        assert BOOK.has_settlements(turn.session_id) is True
        assert BOOK.has_settlements(other.session_id) is False
        assert BOOK.is_settled("req_1") is True
        assert BOOK.is_settled("req_2") is False
        assert BOOK.is_settled("req_3") is False
        assert BOOK.settlements([other.session_id]) == []
        assert BOOK.settlements([]) == []

    def test_say_which_sessions_have_something_to_do(self, db: None) -> None:
        turns = [make_turn(f"sess_{number}") for number in range(4)]
        for number, turn in enumerate(turns[1:]):
            for twin in "ab":
                request_id = f"req_{number}{twin}"
                make_wait(turn, request_id, state="settled", settled_at=NOW)

        pks = [turn.session_id for turn in turns]
        assert BOOK.sessions_with_settlements(limit=2) == pks[1:3]
        assert BOOK.sessions_with_settlements(limit=10) == pks[1:]

    def test_say_how_to_go_on(self, turn: TurnRow) -> None:
        make_wait(turn)
        claim(turn, response(custom_text="this"))

        (settled,) = BOOK.settlements([turn.session_id])

        assert BOOK.continuation_text(settled) == (
            'Your question was: "Which?"\n\nMy answer: this'
        )
        assert BOOK.prompt_of(settled) == PROMPT_INNERS[PromptKind.QUESTION]

    def test_that_lapsed_go_on_with_nothing(self, turn: TurnRow) -> None:
        make_wait(turn, deadline_at=NOW)
        BOOK.lapse("req_1", NOW)

        (settled,) = BOOK.settlements([turn.session_id])

        assert BOOK.continuation_text(settled) is None


class TestGrants:
    """Spec: Ruling E18; cases HC-28, FR-31."""

    def allow(self, turn: TurnRow, request_id: str, **payload: Any) -> None:
        make_wait(turn, request_id, kind="permission", inner=PERMISSION_INNER)
        claim(turn, response(request_id=request_id, **payload))

    def test_hold_for_the_session_alone(self, turn: TurnRow) -> None:
        other = make_turn("sess_2")

        self.allow(turn, "req_1", scope="session")

        assert BOOK.is_granted(turn.session_id, "Bash:rm x") is True
        assert BOOK.is_granted(turn.session_id, "Bash:rm") is False
        assert BOOK.is_granted(other.session_id, "Bash:rm x") is False

    def test_are_none_for_once(self, turn: TurnRow) -> None:
        self.allow(turn, "req_1", scope="once")

        assert BOOK.is_granted(turn.session_id, "Bash:rm x") is False

    def test_are_none_for_a_denial(self, turn: TurnRow) -> None:
        make_wait(turn, kind="permission", inner=PERMISSION_INNER)

        claim(turn, response("denied", scope="session"))

        assert PermissionGrant.objects.count() == 0

    def test_are_kept_once(self, turn: TurnRow) -> None:
        self.allow(turn, "req_1", scope="session")
        self.allow(turn, "req_2", scope="session")

        assert PermissionGrant.objects.count() == 1

    def test_go_with_the_session(self, turn: TurnRow) -> None:
        self.allow(turn, "req_1", scope="session")

        Session.objects.all().delete()
        again = make_turn()

        assert BOOK.is_granted(again.session_id, "Bash:rm x") is False
        assert PendingWait.objects.count() == 0

    def test_of_the_longest_keys_are_kept(self, turn: TurnRow) -> None:
        """An index of PostgreSQL takes no more than 2,704 bytes."""
        key = BOOK.permission_key("工" * 500, {"command": "具" * 100_000})
        inner = PERMISSION_INNER | {"permission_key": key}
        make_wait(turn, kind="permission", inner=inner)

        claim(turn, response(scope="session"))

        assert BOOK.is_granted(turn.session_id, key) is True


class TestResent:
    def test_are_those_that_an_operator_wished(self, turn: TurnRow) -> None:
        at = NOW.astimezone(BEIJING)
        wished: dict[str, dict[str, Any]] = {
            "req_b": {"seq": 5, "resent_at": at},
            "req_a": {"seq": 3, "resent_at": NOW + SECOND},
            "req_before": {"resent_at": NOW - SECOND},
            "req_never": {},
            "req_settled": {"resent_at": NOW, "state": "settled"},
        }
        for request_id, fields in wished.items():
            make_wait(turn, request_id, **{"expires_at": FAR_FUTURE} | fields)

        resent = BOOK.resent(NOW, NOW)

        assert [prompt.request_id for prompt in resent] == ["req_a", "req_b"]
        assert resent[1].resent_at == NOW

    @pytest.mark.parametrize("end", ["expires_at", "deadline_at"])
    def test_are_none_beyond_their_time(self, turn: TurnRow, end: str) -> None:
        """Spec: Ruling E17."""
        times: dict[str, Any] = {"expires_at": FAR_FUTURE, end: FAR_PAST}
        make_wait(turn, resent_at=NOW, **times)

        assert BOOK.resent(NOW, NOW) == []
