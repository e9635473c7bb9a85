"""The page of a session's cards: one turn's, or all of a small session."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
from django.http import QueryDict

from cards.admin.addresses import cards_url, log_url, turn_url
from cards.admin.frames import pretty_json
from cards.admin.reads import (
    FOLD_BYTES,
    FOLD_FRAMES,
    FoldedRange,
    find_turn,
    first_seq_behind,
    fold_range,
    log_edges,
    pruned_part,
    turns_of,
)
from cards.admin.shown_text import shown, shown_size, shown_time
from cards.models import Turn
from cards.protocol.kinds import TRACKED_KINDS
from cards.protocol.snapshot import CardView, Fields

#: Frames up to which a session is shown as a whole.
WHOLE_FRAMES = 2000

#: Cards on a page.
PAGE_CARDS = 300

#: Turns in the list beside the cards.
PAGE_TURNS = 25

#: Characters of a card's payload and of each of its streams.
FIELD_CHARS = 1500

#: Characters of a title or a line of text.
LINE_CHARS = 120

#: Levels that are drawn; deeper cards stand under the last one.
_DRAWN_LEVELS = 8

_ALL_TURNS = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCard:
    """A card and where it stands in the tree; all text is safe to look at.

    Attributes:
        level: 0 for a root.
        status: "" for a kind that never closes.
        line: Beginning of what it says.
        fields: Names and texts of payload, streams and metrics.
    """

    card_id: str
    kind: str
    level: int
    status: str
    title: str
    line: str
    agent_id: str
    log_url: str
    fields: list[tuple[str, str]]


def in_tree_order(cards: list[CardView]) -> Iterator[tuple[CardView, int]]:
    """Return each card with its level, parents before their children.

    A card whose parent is not here, or came later, is a root.
    """
    children: dict[str | None, list[CardView]] = {}
    seen: set[str] = set()
    for card in cards:
        parent = card.parent_card_id if card.parent_card_id in seen else None
        children.setdefault(parent, []).append(card)
        seen.add(card.card_id)
    # A stack instead of recursion: how deep cards nest is the engine's choice.
    stack = [(card, 0) for card in reversed(children.get(None, []))]
    while stack:
        card, level = stack.pop()
        yield card, level
        nested = children.get(card.card_id, [])
        stack.extend((child, level + 1) for child in reversed(nested))


def cards_page(session_pk: int, query: QueryDict) -> dict[str, Any]:
    """Return what the template of the cards shows.

    Args:
        query: `turn` is a number or `all`; without it a small session is shown as a
            whole, a large one by its newest turn. `turns_before` pages the turns.
    """
    _, newest = log_edges(session_pk)
    pruned = pruned_part(session_pk)
    turns = turns_of(
        session_pk,
        before_no=_number(query.get("turns_before", "")),
        limit=PAGE_TURNS + 1,
    )
    wanted = query.get("turn", "")
    turn = _turn_to_show(session_pk, wanted, newest, turns)
    first_seq, last_seq = _range_of(turn, newest)
    folded = fold_range(session_pk, pruned, first_seq=first_seq, last_seq=last_seq)
    return {
        **_turn_list(session_pk, turns),
        **_folded(session_pk, folded),
        "pruned": pruned,
        "turn": turn,
        "turn_page_url": turn_url(turn.pk) if turn else None,
        "shows_all": turn is None,
        "all_url": cards_url(session_pk, turn=_ALL_TURNS),
        "range_url": log_url(session_pk, seq=first_seq),
        "first_seq": first_seq,
        "last_seq": last_seq,
        "has_range": first_seq <= last_seq,
        "is_unknown_turn": wanted not in {"", _ALL_TURNS} and turn is None,
    }


def _turn_to_show(
    session_pk: int, wanted: str, frame_count: int, turns: list[Turn]
) -> Turn | None:
    """Return the turn that is meant; None for the whole session."""
    number = _number(wanted)
    if number is not None:
        return find_turn(session_pk, number)
    if wanted == _ALL_TURNS or frame_count < WHOLE_FRAMES:
        return None
    return next((turn for turn in turns if turn.first_seq), None)


def _range_of(turn: Turn | None, newest: int) -> tuple[int, int]:
    """Return the first and last seq; an empty range for a turn without frames."""
    if turn is None:
        return 1, newest
    if turn.first_seq is None:
        return 1, 0
    behind = first_seq_behind(turn)
    return turn.first_seq, newest if behind is None else behind - 1


def _turn_list(session_pk: int, turns: list[Turn]) -> dict[str, Any]:
    page = turns[:PAGE_TURNS]
    return {
        "turns": [
            (
                each,
                cards_url(session_pk, turn=each.turn_no),
                shown_time(each.accepted_at),
            )
            for each in page
        ],
        "older_turns_url": cards_url(
            session_pk, turn=page[-1].turn_no, turns_before=page[-1].turn_no
        )
        if len(turns) > PAGE_TURNS
        else None,
    }


def _folded(session_pk: int, folded: FoldedRange) -> dict[str, Any]:
    return {
        "folded": folded,
        "unreadable": folded.unreadable[:20],
        "cards": [
            _shown_card(session_pk, card, level)
            for (card, level), _ in zip(
                in_tree_order(folded.cards), range(PAGE_CARDS), strict=False
            )
        ],
        "card_count": len(folded.cards),
        "page_cards": PAGE_CARDS,
        "fold_frames": f"{FOLD_FRAMES:,}",
        "fold_size": shown_size(FOLD_BYTES),
    }


def _shown_card(session_pk: int, card: CardView, level: int) -> ShownCard:
    is_tracked = card.card_kind in TRACKED_KINDS
    return ShownCard(
        card_id=shown(card.card_id, LINE_CHARS),
        kind=shown(card.card_kind, LINE_CHARS),
        level=min(level, _DRAWN_LEVELS),
        status=shown(card.status, LINE_CHARS) if is_tracked else "",
        title=shown(str(card.hint.get("title", "")), LINE_CHARS),
        line=shown(_line_of(card), LINE_CHARS),
        agent_id=shown(card.agent_id or "", LINE_CHARS),
        log_url=log_url(session_pk, card=card.card_id),
        fields=list(_fields_of(card)),
    )


def _line_of(card: CardView) -> str:
    for text in (*card.channels.values(), card.hint.get("summary")):
        if isinstance(text, str) and text:
            return " ".join(text[: 4 * LINE_CHARS].split())
    return ""


def _fields_of(card: CardView) -> Iterator[tuple[str, str]]:
    for channel, text in card.channels.items():
        yield f"stream {shown(channel, LINE_CHARS)}", shown(text, FIELD_CHARS)
    if card.payload:
        yield "payload", _json_text(card.payload)
    if card.metrics:
        yield "metrics", _json_text(card.metrics)


def _json_text(fields: Fields) -> str:
    return shown(pretty_json(msgspec.json.encode(fields)), FIELD_CHARS)


def _number(text: str) -> int | None:
    is_number = text.isascii() and text.isdecimal() and len(text) <= 9
    return int(text) if is_number else None
