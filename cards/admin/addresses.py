"""The addresses of the pages that belong to a session."""

from urllib.parse import urlencode

from django.urls import reverse


def session_url(session_pk: int) -> str:
    """Return the address of a session's page."""
    return reverse("admin:cards_session_change", args=[session_pk])


def owners_sessions_url(principal: str) -> str:
    """Return the address of the list of a principal's sessions."""
    return reverse("admin:cards_session_changelist") + _query(q=principal)


def turn_url(turn_pk: int) -> str:
    """Return the address of a turn's page."""
    return reverse("admin:cards_turn_change", args=[turn_pk])


def turns_url(session_pk: int) -> str:
    """Return the address of the list of a session's turns."""
    address = reverse("admin:cards_turn_changelist")
    return address + _query(session__id__exact=session_pk)


def log_url(session_pk: int, **parameters: str | int) -> str:
    """Return the address of a part of the log; see `LogPlace` for the parameters."""
    return reverse("admin:cards_session_log", args=[session_pk]) + _query(**parameters)


def frame_url(session_pk: int, seq: int) -> str:
    """Return the address of a frame's page."""
    return reverse("admin:cards_session_frame", args=[session_pk, seq])


def raw_frame_url(session_pk: int, seq: int) -> str:
    """Return the address of a frame's bytes."""
    return reverse("admin:cards_session_frame_raw", args=[session_pk, seq])


def cards_url(session_pk: int, **parameters: str | int) -> str:
    """Return the address of a session's cards; see `cards_page` for parameters."""
    return reverse("admin:cards_session_cards", args=[session_pk]) + _query(
        **parameters
    )


def _query(**parameters: str | int) -> str:
    return "?" + urlencode(parameters) if parameters else ""
