"""A session's log as its owner writes it: turns begun, ended and lost.

The log is the truth. What a lost turn left open is found by folding its frames,
because some of what was emitted may never have been stored.

Spec: EMIT 14; Rulings E9, E11, E14, E28; design.md 1, 4.
"""

from collections.abc import Callable, Sequence

from cards.builder import Builder
from cards.clock import Entropy, utc_of
from cards.database import run_in_database
from cards.engine.block import close_open_below
from cards.log.changes import session_active, turn_ended, turn_started
from cards.log.committer import Committer
from cards.log.store import RowChange
from cards.log.writer import SessionWriter
from cards.protocol.card_tree import Card, CardTree
from cards.protocol.envelope import Metrics
from cards.protocol.errors import ErrorInfo
from cards.protocol.hints import MAX_SUMMARY_CHARS, default_hint, shorten
from cards.protocol.ids import MAIN_AGENT
from cards.protocol.kinds import CardKind, CloseStatus, SessionEventKind, Severity
from cards.protocol.mentions import KnownArtifacts
from cards.protocol.payloads import ErrorInner, TurnPayload, UserInput
from cards.protocol.snapshot import CardView
from cards.protocol.user_blocks import words_of
from cards.queries import (
    SessionHistory,
    SessionRecord,
    TurnRecord,
    fold_turn,
    read_history,
    read_page,
)

Committed = Callable[[Sequence[bytes]], None]


class SessionLog:
    """Writer, tree and builder of one session, for as long as this worker owns it.

    Args:
        fence: Of the hold; goes with every frame.
        history: What the log holds already.
        on_committed: Told of frames that became durable, in order.
        on_failed: Told once when frames could not be stored.
        known: The files that messages may mention; None for none.
    """

    def __init__(
        self,
        session: SessionRecord,
        *,
        fence: int,
        history: SessionHistory,
        committer: Committer,
        tick_interval_ms: int,
        now_ms: Callable[[], int],
        on_committed: Committed,
        on_failed: Callable[[Exception], None],
        known: KnownArtifacts | None = None,
    ) -> None:
        self._session = session
        self._fence = fence
        self._committer = committer
        self._tick_interval_ms = tick_interval_ms
        self._now_ms = now_ms
        self._known = known
        self._on_committed = on_committed
        self._on_failed = on_failed
        self._entropy = Entropy()
        self._begin(history)

    def _begin(self, history: SessionHistory) -> None:
        self.tree = CardTree(history.card_ids)
        self.writer = SessionWriter(
            session_pk=self._session.pk,
            fence=self._fence,
            newest_seq=history.newest_seq,
            committer=self._committer,
            on_committed=self._on_committed,
            on_failed=self._on_failed,
        )
        self.builder = Builder(
            session_id=self._session.session_id,
            trace_id=self._session.trace_id,
            writer=self.writer,
            tree=self.tree,
            now_ms=self._now_ms,
            entropy=self._entropy,
            tick_interval_ms=self._tick_interval_ms,
            known=self._known,
        )

    @property
    def fence(self) -> int:
        """The fence that the writer names."""
        return self._fence

    def hold_again(self, fence: int) -> None:
        """Go on under a new fence; nobody else wrote since the last one."""
        self._fence = self.writer.fence = fence

    def open_turn(self, record: TurnRecord) -> Card:
        """Begin a turn: its card, and its row running. Spec: EMIT 14; Ruling E28."""
        payload = TurnPayload(
            turn_no=record.turn_no, channel="chat", input=user_input(record)
        )
        # A card of the engine's may have taken the id since the message came.
        card_id = self.builder.free_card_id(CardKind.TURN, record.card_id)
        return self.builder.add(
            CardKind.TURN,
            payload,
            card_id=card_id,
            parent=None,
            agent_run_id=record.run_id,
            hint=default_hint(
                CardKind.TURN,
                payload,
                summary=shorten(words_of(record.message["content"]), MAX_SUMMARY_CHARS),
            ),
            changes=(
                turn_started(
                    turn_pk=record.pk,
                    card_id=card_id,
                    first_seq=self.writer.next_seq,
                ),
                self._activity(),
            ),
        )

    def end_turn(
        self,
        card: Card,
        record: TurnRecord,
        status: CloseStatus,
        error: ErrorInfo | None,
        *,
        metrics: Metrics | None = None,
    ) -> None:
        """Close everything that is open of a turn, and say what went wrong.

        Spec: Rulings E10, E11.
        """
        close_open_below(self.builder, card, status, error)
        self.builder.close(
            card,
            status,
            error=error if status is CloseStatus.FAILED else None,
            metrics=metrics,
            changes=(
                turn_ended(turn_pk=record.pk),
                self._activity(),
            ),
        )
        if error is not None:
            self.builder.session_event(
                SessionEventKind.ERROR, ErrorInner(error=error), severity=Severity.ERROR
            )
        self.tree.forget_turn()

    def _activity(self) -> RowChange:
        now = utc_of(self._now_ms())
        return session_active(session_pk=self._session.pk, now=now)

    async def restart(self) -> None:
        """Begin anew behind what is really stored, after frames were lost.

        Raises:
            django.db.Error: The log cannot be read yet.
        """
        history = await run_in_database(read_history, self._session.pk, turns=0)
        await self._deliver_stored(self.writer.committed_seq, history.newest_seq)
        self.builder.stop()
        self._begin(history)

    async def _deliver_stored(self, after_seq: int, newest: int) -> None:
        # A commit whose answer got lost is in the log although it "failed".
        while after_seq < newest:
            page = await run_in_database(
                read_page,
                self._session.pk,
                after_seq=after_seq,
                up_to_seq=newest,
            )
            if not page.frames:
                return
            self._on_committed(page.frames)
            after_seq = page.last_seq

    async def close_lost_turn(self, record: TurnRecord, error: ErrorInfo) -> int:
        """Close in the log what a turn left open that nobody runs any more.

        Returns:
            How many cards were closed; 0 if another did it before.

        Raises:
            django.db.Error: The log cannot be read.
            LogWriteFailed: It cannot be written.

        Spec: Ruling E14.
        """
        fold = await run_in_database(fold_turn, self._session.pk, record.pk)
        if fold is None:
            card: Card | None = self.open_turn(record)
        else:
            card = self._adopt(fold)
        if card is None:
            return 0
        count = 1 + len(self.builder.open_below(card))
        self.end_turn(card, record, CloseStatus.FAILED, error)
        await self.writer.flush()
        return count

    def _adopt(self, cards: Sequence[CardView]) -> Card | None:
        """Enter folded cards into the tree; return the turn's if it is open."""
        turn_card: Card | None = None
        for view in cards:
            kind = CardKind(view.card_kind)
            card = Card(
                card_id=view.card_id,
                kind=kind,
                parent_card_id=view.parent_card_id,
                agent_id=view.agent_id or MAIN_AGENT,
                agent_run_id=None,
                opened_ms=self._now_ms(),
                is_open=view.status == "open",
            )
            self.tree.adopt(card)
            if kind is CardKind.TURN:
                turn_card = card if card.is_open else None
        return turn_card


def user_input(record: TurnRecord) -> UserInput:
    """Return the user's words as the log shows them. Spec: Ruling E28."""
    return UserInput(
        event_id=record.event_id,
        text=record.message["text"],
        content=record.message["content"],
    )
