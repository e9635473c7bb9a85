"""Reads of sessions, turns and the event log."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NotRequired, TypedDict

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Greatest, Length

from cards.models import Event, Injection, LogBase, Session, Turn
from cards.principals import Principal
from cards.protocol.ids import MAIN_AGENT
from cards.protocol.json_form import JSONValue
from cards.protocol.kinds import TRACKED_KINDS, CardKind
from cards.protocol.snapshot import CardFold, CardView, Fields, decode_stored
from cards.protocol.user_blocks import words_of

#: Rows and bytes that one page of the log may hold, whichever comes first; at
#: least one row.
PAGE_ROWS = 1000
PAGE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A session's row, without its database.

    Attributes:
        pk: Primary key, for the log.
        title: "" when nothing was said yet.
        owner: The worker that may write its log; "" for none.
    """

    pk: int
    session_id: str
    trace_id: str
    principal: Principal
    title: str
    created_at: datetime
    last_activity_at: datetime
    owner: str

    @classmethod
    def of(cls, row: Session) -> "SessionRecord":
        """Return the record of a row."""
        return cls(
            pk=row.pk,
            session_id=row.session_id,
            trace_id=row.trace_id,
            principal=Principal(row.principal),
            title=row.title,
            created_at=row.created_at,
            last_activity_at=row.last_activity_at,
            owner=row.owner,
        )


class AcceptedAnswer(TypedDict):
    """An answer to a prompt as it is stored with the turn that goes on with it."""

    kind: str
    request_id: str
    decision: str
    payload: dict[str, JSONValue]
    prompt: dict[str, JSONValue]


class AcceptedMessage(TypedDict):
    """A user message as it is stored with its turn.

    `text` is its words without its files; `content` names files by their artifacts.
    `fingerprint` is there only if files go with it, and tells it from another message;
    `continuation` only if an answer began the turn, and `carried_files`, blocks as in
    `content`, only if files went with the message before it.

    Spec: Rulings E8, E15, E28.
    """

    text: str
    content: list[dict[str, JSONValue]]
    coordinator_mode: Literal["react", "plan"] | None
    plan_confirmation: Literal["auto", "required"] | None
    fingerprint: NotRequired[str]
    continuation: NotRequired[AcceptedAnswer]
    carried_files: NotRequired[list[dict[str, JSONValue]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """A turn's row, without its database; see the model for the fields."""

    pk: int
    turn_no: int
    event_id: str
    card_id: str
    run_id: str
    state: str
    message: AcceptedMessage
    is_stopped: bool

    @classmethod
    def of(cls, row: Turn) -> "TurnRecord":
        """Return the record of a row."""
        return cls(
            pk=row.pk,
            turn_no=row.turn_no,
            event_id=row.event_id,
            card_id=row.card_id,
            run_id=row.run_id,
            state=row.state,
            message=row.message,
            is_stopped=row.is_stopped,
        )


@dataclass(frozen=True, slots=True)
class LogPage:
    """Frames in order of their seq, from `first_seq` on; empty at the end."""

    first_seq: int
    frames: list[bytes]

    @property
    def last_seq(self) -> int:
        """Seq of the last frame; first_seq - 1 when the page is empty."""
        return self.first_seq + len(self.frames) - 1


def find_session(session_id: str) -> SessionRecord | None:
    """Return the session of that public id, whoever owns it; None if there is none."""
    row = Session.objects.filter(session_id=session_id).first()
    return SessionRecord.of(row) if row else None


def find_own_session(session_id: str, principal: Principal) -> SessionRecord | None:
    """Return a session if the principal owns it; None otherwise. Spec: Ruling E27."""
    record = find_session(session_id)
    return record if record and record.principal == principal else None


def find_session_of_trace(trace_id: str, principal: Principal) -> str | None:
    """Return the id of the principal's session of that trace. Spec: Ruling E27."""
    rows = Session.objects.filter(trace_id=trace_id, principal=principal)
    return rows.values_list("session_id", flat=True).first()


def own_sessions(
    principal: Principal, *, before: tuple[datetime, int] | None, limit: int
) -> list[SessionRecord]:
    """Return a principal's sessions, newest activity first.

    Args:
        before: last_activity_at and pk of the last session of the previous page;
            None for the first page.
        limit: Most sessions to return.
    """
    rows: QuerySet[Session] = Session.objects.filter(principal=principal)
    if before is not None:
        moment, pk = before
        rows = rows.filter(last_activity_at__lte=moment).exclude(
            last_activity_at=moment, pk__gte=pk
        )
    return [
        SessionRecord.of(row)
        for row in rows.order_by("-last_activity_at", "-pk")[:limit]
    ]


@dataclass(frozen=True, slots=True)
class LogEnds:
    """Between which seqs a session's log lies.

    Attributes:
        base_seq: Seq of the last pruned frame; 0 when none was.
        newest_seq: Of the last frame, kept or pruned; 0 for none.
    """

    base_seq: int
    newest_seq: int


def log_ends(session_pks: list[int]) -> dict[int, LogEnds]:
    """Return where the logs of these sessions begin and end, in one query.

    Sessions that do not exist lack.
    """
    # A subquery that takes one row off the end of an index: MAX with GROUP BY would
    # walk all events of each session.
    events = Event.objects.filter(session_id=OuterRef("pk")).order_by("-seq")
    rows = (
        Session.objects.filter(pk__in=session_pks)
        .annotate(kept_seq=Subquery(events.values("seq")[:1]))
        .values_list("pk", "log_base__last_seq", "kept_seq")
    )
    return {
        pk: LogEnds(base_seq or 0, max(base_seq or 0, kept_seq or 0))
        for pk, base_seq, kept_seq in rows
    }


def newest_seqs(session_pks: list[int]) -> dict[int, int]:
    """Return the last seq of each of these sessions that exists; 0 for none."""
    return {pk: ends.newest_seq for pk, ends in log_ends(session_pks).items()}


def newest_seq(session_pk: int) -> int:
    """Return the seq of the last event of a session; 0 for none."""
    return newest_seqs([session_pk]).get(session_pk, 0)


def log_bounds(session_pk: int) -> tuple[int, int] | None:
    """Return the oldest and newest seq of a session's log; None without session.

    The oldest is newest + 1 when no event is kept. Spec: Rulings E2, E5.
    """
    ends = log_ends([session_pk]).get(session_pk)
    if ends is None:
        return None
    seqs = kept_events(session_pk).values_list("seq", flat=True)
    oldest = seqs.order_by("seq").first()
    return oldest or ends.newest_seq + 1, ends.newest_seq


def kept_events(session_pk: int, *, after_seq: int = 0) -> QuerySet[Event]:
    """Return the events behind a seq, without those that count as pruned.

    Rows at or below the log's base are on their way out. Spec: Ruling E5.
    """
    base = LogBase.objects.filter(session_id=session_pk).values("last_seq")
    # One bound: of two, SQLite may look up the lower one and walk from there.
    bound = Greatest(after_seq, Coalesce(Subquery(base), 0))
    return Event.objects.filter(session_id=session_pk, seq__gt=bound)


def running_sessions(session_pks: list[int]) -> set[int]:
    """Return those of these sessions that have an unfinished turn."""
    return set(
        Turn.objects.filter(session_id__in=session_pks)
        .exclude(state=Turn.State.ENDED)
        .values_list("session_id", flat=True)
    )


def read_page(
    session_pk: int,
    *,
    after_seq: int,
    up_to_seq: int | None = None,
    max_rows: int = PAGE_ROWS,
    max_bytes: int = PAGE_BYTES,
) -> LogPage:
    """Return the next kept events of a session, as the bytes that were stored.

    Args:
        after_seq: The page starts behind this seq; 0 for the beginning.
        up_to_seq: Highest seq wanted; None for the newest.
        max_rows: Most rows.
        max_bytes: The page ends with the row that reaches this many bytes.
    """
    rows = kept_events(session_pk, after_seq=after_seq)
    if up_to_seq is not None:
        rows = rows.filter(seq__lte=up_to_seq)
    span = seqs_within(rows, max_rows=max_rows, max_bytes=max_bytes)
    if span is None:
        return LogPage(after_seq + 1, [])
    events = Event.objects.filter(session_id=session_pk, seq__range=span)
    # Empty when it was pruned in between.
    page = list(events.order_by("seq").values_list("seq", "data"))
    first_seq = page[0][0] if page else after_seq + 1
    return LogPage(first_seq, [bytes(data) for _, data in page])


def seqs_within(
    rows: QuerySet[Event], *, max_rows: int, max_bytes: int
) -> tuple[int, int] | None:
    """Return the first seq, and that of the row that reaches either bound.

    Instead of the latter the last one, if none does; None when there are no rows.
    """
    # Sizes first: a page of huge frames must be cut before it is in memory.
    size = 0
    seqs: list[int] = []
    sizes = rows.order_by("seq").values_list("seq", Length("data"))[:max_rows]
    for seq, frame_bytes in sizes:
        seqs.append(seq)
        size += frame_bytes
        if size >= max_bytes:
            break
    return (seqs[0], seqs[-1]) if seqs else None


def fold_cards(session_pk: int, *, after_seq: int = 0) -> CardFold:
    """Return the cards that the log behind a seq amounts to.

    What was pruned comes out of the log's base, with all its cards even if the seq
    lies inside it.

    Spec: EMIT 15.2; Ruling E5.
    """
    fold, reached, base_seq = CardFold(), after_seq, -1
    while True:
        ends = log_ends([session_pk]).get(session_pk)
        if ends is None or ends.base_seq == base_seq:
            return fold
        base_seq = ends.base_seq
        if reached < base_seq:
            fold = fold_base(session_pk)
            reached = fold.last_seq
        reached = _fold_on(fold, session_pk, reached, ends.newest_seq)
        if reached >= ends.newest_seq:
            return fold
        # Frames are missing: they were pruned meanwhile, and a new base has them.


def _fold_on(fold: CardFold, session_pk: int, reached: int, newest: int) -> int:
    """Fold what follows, up to the newest or a gap; return the last seq folded."""
    while reached < newest:
        page = read_page(session_pk, after_seq=reached, up_to_seq=newest)
        if not page.frames or page.first_seq > reached + 1:
            break
        fold.apply_all(page.frames)
        reached = page.last_seq
    return reached


def fold_base(session_pk: int) -> CardFold:
    """Return the cards that the pruned beginning of a log amounts to."""
    bases = LogBase.objects.filter(session_id=session_pk)
    data = bases.values_list("cards", flat=True).first()
    return CardFold() if data is None else CardFold.decode(bytes(data))


def _all_frames(session_pk: int, after_seq: int) -> Iterator[bytes]:
    while True:
        page = read_page(session_pk, after_seq=after_seq)
        if not page.frames:
            return
        yield from page.frames
        after_seq = page.last_seq


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHistory:
    """What a session's next writer must know of its log.

    Attributes:
        newest_seq: 0 for an empty log.
        card_ids: Of all cards that were ever in the log.
        system_topics: Shown already.
        said: Role, text and turn_no of the newest turns, oldest first.
    """

    newest_seq: int
    card_ids: list[str]
    system_topics: list[str]
    said: list[tuple[str, str, int]]


#: Of a session whose log is empty.
NO_HISTORY = SessionHistory(newest_seq=0, card_ids=[], system_topics=[], said=[])


def read_history(session_pk: int, *, turns: int) -> SessionHistory:
    """Return what the log says to its next writer, who owns the session.

    Args:
        turns: How many of the newest ended turns `said` goes back.
    """
    ends = log_ends([session_pk]).get(session_pk)
    if ends is None or not ends.newest_seq:
        return NO_HISTORY
    base = fold_base(session_pk) if ends.base_seq else CardFold()
    card_ids: list[str] = []
    topics: list[str] = []
    for card_id, kind, payload in _added_cards(session_pk, base):
        card_ids.append(card_id)
        if kind == CardKind.SYSTEM:
            topics.append(str(payload.get("topic", "")))
    return SessionHistory(
        newest_seq=ends.newest_seq,
        card_ids=card_ids,
        system_topics=topics,
        said=_read_said(session_pk, base, ends.newest_seq, turns),
    )


def _added_cards(session_pk: int, base: CardFold) -> Iterator[tuple[str, str, Fields]]:
    """Return id, kind and payload of all cards that were ever in the log."""
    for card in base.cards():
        yield card.card_id, card.card_kind, card.payload
    for data in _all_frames(session_pk, base.last_seq):
        if data.startswith(_CARD_ADD):
            frame = decode_stored(data)
            yield frame.envelope.card_id, frame.envelope.card_kind, frame.payload


_CARD_ADD = b'{"type":"card.add"'

#: Frames and characters that are read back for an engine's history.
HISTORY_FRAMES = 20_000
HISTORY_CHARS = 20_000


def _read_said(
    session_pk: int, base: CardFold, newest: int, turns: int
) -> list[tuple[str, str, int]]:
    rows = Turn.objects.filter(
        session_id=session_pk,
        state=Turn.State.ENDED,
        first_seq__gt=max(0, newest - HISTORY_FRAMES),
    )
    first_seqs = list(
        rows.order_by("-turn_no").values_list("first_seq", flat=True)[:turns]
    )
    if not first_seqs:
        return []
    after_seq = (first_seqs[-1] or 1) - 1
    fold = base if after_seq < base.last_seq else CardFold()
    fold.apply_all(_all_frames(session_pk, max(after_seq, base.last_seq)))
    return list(_said(fold.cards(after_seq=after_seq)))


def _said(cards: list[CardView]) -> Iterator[tuple[str, str, int]]:
    # Turns never interleave, so what follows a turn's card belongs to it.
    turn_no = 0
    replies: list[str] = []
    for card in cards:
        if card.card_kind == CardKind.TURN:
            yield from _reply(replies, turn_no)
            replies = []
            turn_no = int(str(card.payload.get("turn_no", 0)))
            words = card.payload.get("input")
            if isinstance(words, dict):
                yield "user", _words_in(words)[:HISTORY_CHARS], turn_no
        elif _is_said_by(card, "assistant"):
            replies.append(card.channels.get("text", ""))
        elif _is_said_by(card, "user"):
            # Into the running turn, whose reply is one. Spec: Ruling E23.
            yield "user", card.channels.get("text", "")[:HISTORY_CHARS], turn_no
    yield from _reply(replies, turn_no)


def _words_in(user_input: Fields) -> str:
    content = user_input.get("content")
    blocks = content if isinstance(content, list) else []
    return words_of(block for block in blocks if isinstance(block, dict))


def _is_said_by(card: CardView, role: str) -> bool:
    return (
        card.card_kind == CardKind.MESSAGE
        and card.agent_id == MAIN_AGENT
        and card.payload.get("role") == role
    )


def _reply(replies: list[str], turn_no: int) -> Iterator[tuple[str, str, int]]:
    text = "\n\n".join(filter(None, replies))
    if text:
        yield "assistant", text[:HISTORY_CHARS], turn_no


def fold_turn(session_pk: int, turn_pk: int) -> list[CardView] | None:
    """Return the cards of a turn and all after it; None before it started."""
    first_seq = first_seq_of_turn(turn_pk)
    if first_seq is None:
        return None
    after_seq = first_seq - 1
    return fold_cards(session_pk, after_seq=after_seq).cards(after_seq=after_seq)


def first_seq_of_turn(turn_pk: int) -> int | None:
    """Return the seq of a turn's first frame; None before it started."""
    return Turn.objects.values_list("first_seq", flat=True).get(pk=turn_pk)


def is_accepted(session_pk: int, event_id: str) -> bool:
    """Tell whether a message of that event_id was stored. Spec: Ruling E8."""
    return Turn.objects.filter(session_id=session_pk, event_id=event_id).exists()


def unfinished_turns(session_pk: int) -> list[TurnRecord]:
    """Return the queued and running turns in order of acceptance."""
    rows = Turn.objects.filter(session_id=session_pk).exclude(state=Turn.State.ENDED)
    return [TurnRecord.of(row) for row in rows.order_by("turn_no")]


@dataclass(frozen=True, slots=True)
class WaitingInjection:
    """Words that wait for the turn they are meant for. Spec: Ruling E23."""

    pk: int
    turn_pk: int
    text: str


@dataclass(frozen=True, slots=True)
class SessionNews:
    """What was stored for a session's owner to act on, oldest first.

    Attributes:
        turns: The unfinished ones, with whether their user has stopped them.
    """

    turns: list[TurnRecord]
    injections: list[WaitingInjection]


def read_news(session_pk: int) -> SessionNews:
    """Return what the owner of a session has to act on. Spec: design.md 4."""
    turns = unfinished_turns(session_pk)
    injections = Injection.objects.filter(turn__in=[turn.pk for turn in turns])
    return SessionNews(
        turns,
        [
            WaitingInjection(row.pk, row.turn_id, row.text)
            for row in injections.order_by("pk")
        ],
    )


def sessions_with_news(session_pks: list[int]) -> set[int]:
    """Return those of these sessions whose owner has anything to act on.

    Cheap, because it is asked once a second for all that run.
    """
    turns = Turn.objects.filter(session_id__in=session_pks).filter(
        Q(state=Turn.State.QUEUED) | Q(state=Turn.State.RUNNING, is_stopped=True)
    )
    # Hardly any words wait anywhere.
    injected = Injection.objects.values_list("turn__session_id", flat=True)
    return {
        *turns.values_list("session_id", flat=True),
        *set(session_pks).intersection(injected),
    }


def sessions_at_work(worker_id: str, *, since: datetime) -> set[int]:
    """Return the sessions that another worker may have written to.

    Args:
        worker_id: Of the worker that asks.
        since: Turns that began or ended before this are known to it.
    """
    owned = Session.objects.exclude(owner__in=["", worker_id])
    active = Session.objects.filter(last_activity_at__gte=since)
    return {pk for rows in (owned, active) for pk in rows.values_list("pk", flat=True)}


def find_session_by_pk(session_pk: int) -> SessionRecord | None:
    """Return a session by its primary key; None if it is gone."""
    row = Session.objects.filter(pk=session_pk).first()
    return SessionRecord.of(row) if row else None


def count_open_cards(session_pk: int, turn_pk: int) -> int:
    """Return how many cards of a turn, and after it, wait for their close."""
    cards = fold_turn(session_pk, turn_pk)
    if cards is None:
        return 0
    return sum(
        card.status == "open" and CardKind(card.card_kind) in TRACKED_KINDS
        for card in cards
    )
