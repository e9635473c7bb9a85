"""Writes of sessions and turns."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from django.db import connections

from cards.models import Session, Turn
from cards.operations import (
    MessageConflict,
    NewTurn,
    QueueFull,
    SessionTaken,
    accept_message,
    open_session,
)
from cards.principals import Principal
from cards.queries import AcceptedMessage, TurnRecord
from tests.integration.cards.conftest import NOW

HELLO = AcceptedMessage(
    text="hello",
    content=[{"type": "text", "text": "hello"}],
    coordinator_mode=None,
    plan_confirmation=None,
)


def accept(session: Session, event_id: str, **changes: Any) -> tuple[TurnRecord, bool]:
    queue_limit = changes.pop("queue_limit", 8)
    turn = replace(new_turn(event_id), **changes)
    accepted = accept_message(
        session_pk=session.pk, turn=turn, queue_limit=queue_limit, me=None
    )
    return accepted.turn, accepted.is_new


def new_turn(event_id: str) -> NewTurn:
    return NewTurn(
        event_id=event_id,
        card_id=f"turn_{event_id}",
        run_id="run_1",
        message=HELLO,
        title="hello",
        accepted_at=NOW,
    )


class TestOpenSession:
    def open(self, principal: str, trace_id: str = "tr_new") -> str:
        opened = open_session(
            session_id="sess_1",
            trace_id=trace_id,
            principal=Principal(principal),
            now=NOW,
            session_limit=0,
        )
        return opened.record.trace_id

    def test_makes_the_row_once(self, transactional_db: None) -> None:
        """Spec: Rulings E1, E2."""
        assert self.open("user:1", "tr_1") == "tr_1"
        assert self.open("user:1", "tr_2") == "tr_1"

    def test_refuses_another_principal(self, transactional_db: None) -> None:
        """Spec: Ruling E27."""
        self.open("user:1")

        with pytest.raises(SessionTaken):
            self.open("user:2")

    def test_stores_a_first_turn_only_with_a_new_session(
        self, transactional_db: None
    ) -> None:
        def open_with(event_id: str) -> TurnRecord | None:
            return open_session(
                session_id="sess_1",
                trace_id="tr_1",
                principal=Principal("user:1"),
                now=NOW,
                session_limit=0,
                first_turn=new_turn(event_id),
            ).turn

        first, second = open_with("a"), open_with("b")

        assert first is not None
        assert (first.turn_no, first.event_id, second) == (1, "a", None)
        assert Session.objects.get().title == "hello"


class TestAcceptMessage:
    def test_titles_the_session_with_its_first_message(
        self, session_row: Session
    ) -> None:
        """Spec: Ruling E29."""
        accept(session_row, "a")
        accept(session_row, "b", title="other")

        session_row.refresh_from_db()
        assert session_row.title == "hello"

    def test_numbers_turns_in_order(self, session_row: Session) -> None:
        numbers = [accept(session_row, name)[0].turn_no for name in "abc"]

        assert numbers == [1, 2, 3]

    def test_accepts_an_event_id_once(self, session_row: Session) -> None:
        """Spec: Ruling E8."""
        first, was_new = accept(session_row, "a")
        again, is_new = accept(session_row, "a", card_id="turn_other")

        assert (was_new, is_new) == (True, False)
        assert again == first

    def test_refuses_another_message_under_the_same_id(
        self, session_row: Session
    ) -> None:
        """Spec: Ruling E8."""
        accept(session_row, "a")

        with pytest.raises(MessageConflict):
            accept(session_row, "a", message=HELLO | {"text": "other"})

    def test_refuses_more_than_may_wait(self, session_row: Session) -> None:
        """Spec: Ruling E9."""
        for name in "abc":
            accept(session_row, name, queue_limit=2)

        with pytest.raises(QueueFull):
            accept(session_row, "d", queue_limit=2)

    def test_lets_one_of_many_racers_win(self, session_row: Session) -> None:
        """Spec: Ruling E8; on the real database, from several connections."""

        def race(_: int) -> tuple[TurnRecord, bool]:
            try:
                return accept(session_row, "a")
            finally:
                connections.close_all()

        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(race, range(16)))

        assert sum(is_new for _, is_new in results) == 1
        assert len({turn.pk for turn, _ in results}) == 1
        assert Turn.objects.count() == 1
