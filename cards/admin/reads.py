"""Bounded reads of the admin: none costs more because a session is long.

Sizes and beginnings come from the database, so that bodies stay there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec
from django.db.models import (
    BigIntegerField,
    BinaryField,
    OuterRef,
    QuerySet,
    Subquery,
    TextField,
)
from django.db.models.functions import Cast, Length, Substr

from cards.models import Event, LogBase, Session, Turn
from cards.protocol.snapshot import CardFold, CardView, decode_stored
from cards.queries import fold_base, kept_events, log_bounds, newest_seqs, read_page

#: Bytes of a frame that a list reads: its type, its envelope and some more.
HEAD_BYTES = 2048

#: Frames and bytes that are folded for one page, whichever comes first.
FOLD_FRAMES = 20_000
FOLD_BYTES = 8 * 1024 * 1024

#: Characters of a turn's message that are read.
MESSAGE_CHARS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """Where a session stands.

    Attributes:
        newest_seq: 0 for an empty log.
        newest_turn_no: 0 before the first turn.
        state: `running`, `queued` or `idle`.
    """

    newest_seq: int = 0
    newest_turn_no: int = 0
    state: str = "idle"


def session_statuses(session_pks: Sequence[int]) -> dict[int, SessionStatus]:
    """Return where each of these sessions stands, with three queries for all."""
    # A subquery that takes one row off the end of an index, as in `log_ends`.
    turns = Turn.objects.filter(session_id=OuterRef("pk")).order_by("-turn_no")
    rows = Session.objects.filter(pk__in=session_pks).annotate(
        newest_turn_no=Subquery(turns.values("turn_no")[:1])
    )
    seqs = newest_seqs(list(session_pks))
    states = _unfinished_states(session_pks)
    return {
        pk: SessionStatus(
            newest_seq=seqs.get(pk, 0),
            newest_turn_no=turn_no or 0,
            state=states.get(pk, "idle"),
        )
        for pk, turn_no in rows.values_list("pk", "newest_turn_no")
    }


def _unfinished_states(session_pks: Sequence[int]) -> dict[int, str]:
    rows = Turn.objects.filter(session_id__in=session_pks).exclude(
        state=Turn.State.ENDED
    )
    states: dict[int, str] = {}
    for pk, state in rows.values_list("session_id", "state"):
        if states.get(pk) != Turn.State.RUNNING:
            states[pk] = state
    return states


def log_edges(session_pk: int) -> tuple[int, int]:
    """Return the oldest and newest seq of a session's log; (1, 0) when empty.

    The oldest is newest + 1 when all of it was pruned.
    """
    return log_bounds(session_pk) or (1, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedPart:
    """The beginning of a log that is no longer there.

    Attributes:
        last_seq: Of its frames; the log goes on behind it. 0 when nothing was pruned.
        size_bytes: Of the cards that are kept of it.
        pruned_at: None when nothing was pruned.
    """

    last_seq: int = 0
    size_bytes: int = 0
    pruned_at: datetime | None = None


def pruned_part(session_pk: int) -> PrunedPart:
    """Return what was pruned of a session's log."""
    rows = LogBase.objects.filter(session_id=session_pk).values_list(
        "last_seq", Length("cards", output_field=BigIntegerField()), "pruned_at"
    )
    for last_seq, size_bytes, pruned_at in rows:
        return PrunedPart(last_seq=last_seq, size_bytes=size_bytes, pruned_at=pruned_at)
    return PrunedPart()


@dataclass(frozen=True, slots=True)
class FrameHead:
    """The beginning of a stored frame.

    Attributes:
        size_bytes: Of the whole frame.
        head: At most HEAD_BYTES of it; a character may be cut in two.
    """

    seq: int
    size_bytes: int
    head: bytes


def frame_heads(
    session_pk: int, *, after_seq: int, before_seq: int | None, max_rows: int
) -> Iterator[FrameHead]:
    """Read the beginnings of frames as they are asked for.

    Args:
        after_seq: Frames behind it in order; without meaning with `before_seq`.
        before_seq: Frames below it, newest first; None to read forwards.
        max_rows: Most frames.
    """
    if before_seq is None:
        rows = kept_events(session_pk, after_seq=after_seq).order_by("seq")
    else:
        rows = kept_events(session_pk).filter(seq__lt=before_seq).order_by("-seq")
    yield from _heads(rows[:max_rows], HEAD_BYTES)


def frame_head(session_pk: int, seq: int, head_bytes: int) -> FrameHead | None:
    """Return the first `head_bytes` of a frame; None if there is no such frame."""
    rows = kept_events(session_pk).filter(seq=seq)
    return next(_heads(rows, head_bytes), None)


def _heads(rows: QuerySet[Event], head_bytes: int) -> Iterator[FrameHead]:
    columns = rows.values_list(
        "seq",
        Length("data", output_field=BigIntegerField()),
        Substr("data", 1, head_bytes, output_field=BinaryField()),
    )
    for seq, size, head in columns.iterator(chunk_size=100):
        # SQLite's substr makes NULL of an empty body.
        yield FrameHead(seq, size, bytes(head or b""))


def whole_frame(session_pk: int, seq: int) -> bytes | None:
    """Return a frame as it was sent; None if there is no such frame."""
    rows = kept_events(session_pk).filter(seq=seq)
    stored = rows.values_list("data", flat=True).first()
    return None if stored is None else bytes(stored)


def message_head(turn_pk: int) -> tuple[str, int]:
    """Return the beginning of a turn's message as JSON text, and its whole length.

    The beginning has at most MESSAGE_CHARS characters.
    """
    text = Cast("message", TextField())
    head, length = Turn.objects.values_list(
        Substr(text, 1, MESSAGE_CHARS), Length(text)
    ).get(pk=turn_pk)
    return head, length


def turns_of(session_pk: int, *, before_no: int | None, limit: int) -> list[Turn]:
    """Return a session's turns without their messages, newest first.

    Args:
        before_no: Only turns with a lower number; None for the newest.
        limit: Most turns.
    """
    rows = Turn.objects.filter(session_id=session_pk).defer("message")
    if before_no is not None:
        rows = rows.filter(turn_no__lt=before_no)
    return list(rows.order_by("-turn_no")[:limit])


def find_turn(session_pk: int, turn_no: int) -> Turn | None:
    """Return that turn of a session without its message; None if there is none."""
    rows = Turn.objects.filter(session_id=session_pk, turn_no=turn_no)
    return rows.defer("message").first()


def first_seq_behind(turn: Turn) -> int | None:
    """Return the first seq of the next turn that started; None if none did."""
    rows = Turn.objects.filter(
        session_id=turn.session_id, turn_no__gt=turn.turn_no, first_seq__isnull=False
    )
    return rows.order_by("turn_no").values_list("first_seq", flat=True).first()


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedRange:
    """The cards that a range of the log amounts to.

    Attributes:
        last_seq: Where folding stopped.
        is_whole: Whether the end of the range was reached.
        unreadable: Seqs of frames that could not be folded.
        lacks_pruned: Whether cards of the pruned part are missing: they are too many.
    """

    cards: list[CardView]
    last_seq: int
    is_whole: bool
    unreadable: list[int]
    lacks_pruned: bool


def fold_range(
    session_pk: int, pruned: PrunedPart, *, first_seq: int, last_seq: int
) -> FoldedRange:
    """Fold frames from `first_seq` to `last_seq`, as far as the bounds allow.

    At least one frame is folded. What was pruned of the range comes out of the cards
    that are kept of it. Spec: EMIT 15.2.
    """
    after_seq = max(first_seq - 1, pruned.last_seq)
    begins_pruned = first_seq <= pruned.last_seq
    is_foldable = pruned.size_bytes <= FOLD_BYTES
    fold = fold_base(session_pk) if begins_pruned and is_foldable else CardFold()
    reach = _seq_within_bounds(session_pk, after_seq + 1, last_seq)
    unreadable: list[int] = []
    while after_seq < reach:
        page = read_page(session_pk, after_seq=after_seq, up_to_seq=reach)
        if not page.frames:
            break
        for seq, data in enumerate(page.frames, page.first_seq):
            if not _fold_frame(fold, data):
                unreadable.append(seq)
        after_seq = page.last_seq
    return FoldedRange(
        cards=fold.cards(after_seq=first_seq - 1, up_to_seq=last_seq),
        last_seq=min(reach, last_seq),
        is_whole=reach >= last_seq,
        unreadable=unreadable,
        lacks_pruned=begins_pruned and not is_foldable,
    )


def _seq_within_bounds(session_pk: int, first_seq: int, last_seq: int) -> int:
    rows = kept_events(session_pk, after_seq=first_seq - 1)
    sizes = rows.filter(seq__lte=last_seq).order_by("seq")
    reach = first_seq - 1
    total = 0
    columns = sizes.values_list("seq", Length("data", output_field=BigIntegerField()))
    for seq, size in columns[:FOLD_FRAMES]:
        total += size
        if total > FOLD_BYTES and reach >= first_seq:
            return reach
        reach = seq
    return reach


def _fold_frame(fold: CardFold, data: bytes) -> bool:
    try:
        fold.apply(decode_stored(data))
    except (msgspec.DecodeError, KeyError, RecursionError):
        return False
    return True
