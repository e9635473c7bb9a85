"""The pages of a session's log: a list of frames, and one frame."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse, QueryDict

from cards.admin.addresses import frame_url, log_url, raw_frame_url
from cards.admin.frames import FrameRow, decode_cut, pretty_json
from cards.admin.reads import (
    HEAD_BYTES,
    frame_head,
    frame_heads,
    log_edges,
    pruned_part,
    whole_frame,
)
from cards.admin.shown_text import shown, shown_size
from cards.protocol.envelope import MAX_SAFE_INTEGER

#: Frames on a page.
PAGE_ROWS = 100

#: Frames that one search for a card looks at.
SCAN_ROWS = 5000

#: Bytes of bodies that the database may pass on the way to a page: SQLite reads a
#: body to cut its beginning off.
SCAN_BYTES = 512 * 1024 * 1024

#: Bytes of a frame up to which its page formats it; of a larger one it shows only
#: the beginning.
FORMAT_BYTES = 1024 * 1024

#: Characters of a frame on its page.
SHOWN_CHARS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlace:
    """What part of the log is wanted.

    Attributes:
        after: Frames behind this seq.
        before: Frames below this seq; None to read forwards.
        card: Only frames of this card; "" for all.
        marked: Seq that the operator jumped to; None for none.
    """

    after: int = 0
    before: int | None = None
    card: str = ""
    marked: int | None = None

    @classmethod
    def of(cls, query: QueryDict) -> "LogPlace":
        """Return the place that an address names; what makes no sense is ignored."""
        marked = _seq_of(query.get("seq", ""))
        after = _seq_of(query.get("after", "")) or 0
        return cls(
            after=after if marked is None else max(0, marked - 1),
            before=_seq_of(query.get("before", "")) if marked is None else None,
            card=query.get("card", "").strip(),
            marked=marked,
        )


def _seq_of(text: str) -> int | None:
    if not (text.isascii() and text.isdecimal() and len(text) <= 16):
        return None
    return min(int(text), MAX_SAFE_INTEGER)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart:
    """Some frames, in order of seq, and the range that was looked at for them.

    An empty range has `high_seq` below `low_seq`.
    """

    rows: list[FrameRow]
    low_seq: int
    high_seq: int

    @property
    def looked_at(self) -> int:
        """How many seqs the range has."""
        return self.high_seq - self.low_seq + 1


def read_part(session_pk: int, place: LogPlace) -> LogPart:
    """Return the frames at a place: one page, or what one search finds."""
    rows: list[FrameRow] = []
    seqs: list[int] = []
    passed_bytes = 0
    for head in frame_heads(
        session_pk,
        after_seq=place.after,
        before_seq=place.before,
        max_rows=SCAN_ROWS if place.card else PAGE_ROWS,
    ):
        row = FrameRow.of(head)
        seqs.append(head.seq)
        passed_bytes += head.size_bytes
        if place.card in {"", row.card_id}:
            rows.append(row)
        if len(rows) >= PAGE_ROWS or passed_bytes >= SCAN_BYTES:
            break
    if place.before is not None:
        rows.reverse()
    start = place.after + 1 if place.before is None else place.before
    return LogPart(
        rows=rows,
        low_seq=min(seqs, default=start),
        high_seq=max(seqs, default=start - 1),
    )


def log_page(session_pk: int, query: QueryDict) -> dict[str, Any]:
    """Return what the template of the log shows."""
    place = LogPlace.of(query)
    part = read_part(session_pk, place)
    oldest, newest = log_edges(session_pk)
    kept = {"card": place.card} if place.card else {}
    has_previous = part.low_seq > oldest
    has_next = max(part.high_seq, oldest - 1) < newest
    return {
        "rows": [
            (row, frame_url(session_pk, row.seq), _card_link(session_pk, row))
            for row in part.rows
        ],
        "part": part,
        "place": place,
        "shown_card": shown(place.card, 128),
        "oldest": oldest,
        "newest": newest,
        "pruned": pruned_part(session_pk),
        "all_url": log_url(session_pk),
        "first_url": log_url(session_pk, **kept) if has_previous else None,
        "previous_url": log_url(session_pk, before=part.low_seq, **kept)
        if has_previous
        else None,
        "next_url": log_url(session_pk, after=part.high_seq, **kept)
        if has_next
        else None,
        "last_url": log_url(session_pk, before=newest + 1, **kept)
        if has_next
        else None,
    }


def _card_link(session_pk: int, row: FrameRow) -> str | None:
    return log_url(session_pk, card=row.card_id) if row.card_id else None


def frame_page(session_pk: int, seq: int) -> dict[str, Any] | None:
    """Return what the template of a frame shows; None if there is no such frame."""
    head = frame_head(session_pk, seq, HEAD_BYTES)
    if head is None:
        return None
    row = FrameRow.of(head)
    is_whole = head.size_bytes <= FORMAT_BYTES
    text = _frame_text(session_pk, seq, is_whole)
    oldest, newest = log_edges(session_pk)
    return {
        "row": row,
        "card_url": _card_link(session_pk, row),
        "text": shown(text[:SHOWN_CHARS]),
        "is_formatted": is_whole,
        "is_cut": not is_whole or len(text) > SHOWN_CHARS,
        "shown_chars": f"{SHOWN_CHARS:,}",
        "format_limit": shown_size(FORMAT_BYTES),
        "raw_url": raw_frame_url(session_pk, seq),
        "place_url": log_url(session_pk, seq=seq),
        "previous_url": frame_url(session_pk, seq - 1) if seq > oldest else None,
        "next_url": frame_url(session_pk, seq + 1) if seq < newest else None,
    }


def _frame_text(session_pk: int, seq: int, is_whole: bool) -> str:
    if is_whole:
        return pretty_json(whole_frame(session_pk, seq) or b"")
    # No character has more than four bytes.
    head = frame_head(session_pk, seq, 4 * SHOWN_CHARS)
    return decode_cut(head.head) if head else ""


def raw_frame(session_pk: int, seq: int) -> HttpResponse | None:
    """Return a frame's bytes as a download; None if there is no such frame."""
    data = whole_frame(session_pk, seq)
    if data is None:
        return None
    return HttpResponse(
        data,
        content_type="application/json",
        headers={
            "Content-Disposition": (
                f'attachment; filename="session-{session_pk}-frame-{seq}.json"'
            ),
            "Content-Security-Policy": "sandbox",
            "X-Content-Type-Options": "nosniff",
        },
    )
