"""Searches that an index answers, or that end after a stated number of rows."""

from typing import Any

from django.db import connection
from django.db.models import Max, Q, QuerySet

from cards.models import Session, Turn

#: Newest sessions whose titles are searched; titles have no index.
TITLE_SESSIONS = 20_000

#: Newest turns whose ids are searched; they have no index of their own.
TURN_WINDOW = 50_000

#: Sessions whose turns one search shows.
TURN_SESSIONS = 200

_HIGHEST = "\U0010ffff"


def begins_with(name: str, text: str) -> Q:
    """Return the condition that a field begins with `text`, for its index."""
    if connection.vendor == "sqlite":
        # LIKE knows no case there and so uses no index; bytes compare as they are.
        return Q(**{f"{name}__gte": text, f"{name}__lt": text + _HIGHEST})
    return Q(**{f"{name}__startswith": text})


def search_sessions(rows: QuerySet[Any], text: str) -> QuerySet[Any]:
    """Keep sessions by beginning of an id, by owner, or by a part of the title."""
    if not text:
        return rows
    newest = Session.objects.order_by("-last_activity_at", "-pk")[:TITLE_SESSIONS]
    titled = Session.objects.filter(
        pk__in=newest.values("pk"), title__icontains=text
    ).values("pk")
    return rows.filter(_id_begins_with(text) | Q(principal=text) | Q(pk__in=titled))


def search_turns(rows: QuerySet[Any], text: str) -> QuerySet[Any]:
    """Keep turns of sessions by beginning of an id, and turns by an id of theirs."""
    if not text:
        return rows
    sessions = Session.objects.filter(_id_begins_with(text))
    session_pks = list(sessions.values_list("pk", flat=True)[:TURN_SESSIONS])
    newest = Turn.objects.aggregate(newest=Max("pk"))["newest"] or 0
    own_id = Q(card_id=text) | Q(run_id=text) | Q(event_id=text)
    return rows.filter(
        Q(session_id__in=session_pks) | Q(own_id, pk__gt=newest - TURN_WINDOW)
    )


def _id_begins_with(text: str) -> Q:
    return begins_with("session_id", text) | begins_with("trace_id", text)
