"""Sessions, with their log and cards as pages of their own."""

from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from cards.admin.addresses import (
    cards_url,
    log_url,
    owners_sessions_url,
    session_url,
    turn_url,
    turns_url,
)
from cards.admin.card_pages import cards_page
from cards.admin.keyset import KeysetChangeList
from cards.admin.log_pages import frame_page, log_page, raw_frame
from cards.admin.read_only import ReadOnlyAdmin, may_view, reads_only
from cards.admin.reads import SessionStatus, session_statuses, turns_of
from cards.admin.searching import TITLE_SESSIONS, search_sessions
from cards.admin.shown_text import shown, shown_time
from cards.models import Session
from cards.protocol.envelope import MAX_SAFE_INTEGER

#: Turns on a session's page.
NEWEST_TURNS = 10

_STATUS = "_admin_status"


class SessionList(KeysetChangeList):
    """Sessions, newest activity first."""

    keyset = ("last_activity_at", "pk")

    def get_results(self, request: HttpRequest) -> None:
        """Read a page, then where its sessions stand, for all at once."""
        super().get_results(request)
        statuses = session_statuses([row.pk for row in self.result_list])
        for row in self.result_list:
            vars(row)[_STATUS] = statuses.get(row.pk, SessionStatus())


def _status_of(session: Session) -> SessionStatus:
    kept = vars(session).get(_STATUS)
    if not isinstance(kept, SessionStatus):
        kept = session_statuses([session.pk]).get(session.pk, SessionStatus())
        vars(session)[_STATUS] = kept
    return kept


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """Read sessions; the log and the cards of one need the view of events too."""

    list_display = (
        "session",
        "shown_title",
        "owner",
        "state",
        "newest_turn",
        "newest_seq",
        "active",
        "pages",
    )
    list_display_links = ("session",)
    # What is searched is `get_search_results`; the names only show the search field.
    search_fields = ("session_id",)
    search_help_text = (
        "Beginning of a session id or trace id, a whole owner such as user:7, or a"
        f" part of a title (of the newest {TITLE_SESSIONS:,} sessions)."
    )
    fields: ClassVar[tuple[str, ...]] = (
        *("session", "shown_title", "owner", "state", "newest_turn", "newest_seq"),
        *("trace", "created", "active"),
    )
    readonly_fields = fields

    def get_changelist(
        self, request: HttpRequest, **kwargs: Any
    ) -> type[KeysetChangeList]:
        """Return the list that does not count."""
        return SessionList

    def get_list_display(
        self, request: HttpRequest
    ) -> tuple[str | Callable[[Session], str | bool], ...]:
        """Return the columns; links only to what the user may view."""
        if may_view(request, "event"):
            return self.list_display
        return tuple(name for name in self.list_display if name != "pages")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Session], bool]:
        """Return the sessions that a search finds, each once."""
        return search_sessions(queryset, search_term.strip()), False

    @admin.display(description="session id")
    def session(self, session: Session) -> str:
        """Return the public id."""
        return shown(session.session_id)

    @admin.display(description="title")
    def shown_title(self, session: Session) -> str:
        """Return the title, or a dash before the first message."""
        return shown(session.title, 80) or "–"

    @admin.display(description="owner")
    def owner(self, session: Session) -> SafeString:
        """Return the principal, leading to all sessions of the same."""
        address = owners_sessions_url(session.principal)
        return format_html('<a href="{}">{}</a>', address, shown(session.principal))

    @admin.display(description="state")
    def state(self, session: Session) -> SafeString:
        """Return whether a turn runs or waits."""
        state = _status_of(session).state
        return format_html('<span class="cw-badge cw-{}">{}</span>', state, state)

    @admin.display(description="turns")
    def newest_turn(self, session: Session) -> int:
        """Return the number of the newest turn, which is how many there are."""
        return _status_of(session).newest_turn_no

    @admin.display(description="last seq")
    def newest_seq(self, session: Session) -> int:
        """Return the seq of the newest frame; 0 for none."""
        return _status_of(session).newest_seq

    @admin.display(description="trace id")
    def trace(self, session: Session) -> str:
        """Return the name of the event stream."""
        return shown(session.trace_id)

    @admin.display(description="created (UTC)")
    def created(self, session: Session) -> str:
        """Return when the session began."""
        return shown_time(session.created_at)

    @admin.display(description="last activity (UTC)")
    def active(self, session: Session) -> str:
        """Return when a turn last began or ended."""
        return shown_time(session.last_activity_at)

    @admin.display(description="pages")
    def pages(self, session: Session) -> SafeString:
        """Return links to the log and the cards."""
        return format_html(
            '<a href="{}">log</a> · <a href="{}">cards</a>',
            log_url(session.pk),
            cards_url(session.pk),
        )

    def page_context(self, request: HttpRequest, row: Session) -> dict[str, Any]:
        """Return the links around a session and its newest turns."""
        return {
            **_links(request, row),
            "newest_turns": _newest_turns(request, row),
        }

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's own routes, behind those of the log and the cards."""
        wrap = self.admin_site.admin_view
        return [
            path(
                "<int:pk>/log/",
                wrap(self.log_view),
                name="cards_session_log",
            ),
            path(
                "<int:pk>/log/<int:seq>/",
                wrap(self.frame_view),
                name="cards_session_frame",
            ),
            path(
                "<int:pk>/log/<int:seq>/raw/",
                wrap(self.raw_frame_view),
                name="cards_session_frame_raw",
            ),
            path(
                "<int:pk>/cards/",
                wrap(self.cards_view),
                name="cards_session_cards",
            ),
            *super().get_urls(),
        ]

    @reads_only
    def log_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Return a page of a session's log."""
        session = self._session(request, pk)
        context = log_page(session.pk, request.GET)
        return self._page(request, session, "log", "Log", context)

    @reads_only
    def frame_view(self, request: HttpRequest, pk: int, seq: int) -> HttpResponse:
        """Return the page of one frame."""
        session = self._session(request, pk)
        context = frame_page(session.pk, seq)
        if context is None:
            raise Http404("there is no such frame")
        return self._page(request, session, "frame", f"Frame {seq}", context)

    @reads_only
    def raw_frame_view(self, request: HttpRequest, pk: int, seq: int) -> HttpResponse:
        """Return the bytes of one frame."""
        response = raw_frame(self._session(request, pk).pk, seq)
        if response is None:
            raise Http404("there is no such frame")
        return response

    @reads_only
    def cards_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Return the page of a session's cards."""
        session = self._session(request, pk)
        context = cards_page(session.pk, request.GET)
        return self._page(request, session, "cards", "Cards", context)

    def _session(self, request: HttpRequest, pk: int) -> Session:
        if not (self.has_view_permission(request) and may_view(request, "event")):
            raise PermissionDenied
        session = Session.objects.filter(pk=pk).first()
        if session is None:
            raise Http404("there is no such session")
        return session

    def _page(
        self,
        request: HttpRequest,
        session: Session,
        name: str,
        title: str,
        context: dict[str, Any],
    ) -> HttpResponse:
        return TemplateResponse(
            request,
            f"admin/cards/session/{name}.html",
            {
                **self.admin_site.each_context(request),
                **_links(request, session),
                "opts": self.opts,
                "title": title,
                "subtitle": shown(session.session_id),
                "session_title": shown(session.title, 200),
                **context,
            },
        )


def _links(request: HttpRequest, session: Session) -> dict[str, Any]:
    """Return the addresses around a session; None for what the user may not view."""
    sees_log, sees_turns = may_view(request, "event"), may_view(request, "turn")
    return {
        "session_url": session_url(session.pk),
        "session_name": shown(session.session_id),
        "log_url": log_url(session.pk) if sees_log else None,
        "newest_frames_url": log_url(session.pk, before=MAX_SAFE_INTEGER)
        if sees_log
        else None,
        "cards_url": cards_url(session.pk) if sees_log else None,
        "turns_url": turns_url(session.pk) if sees_turns else None,
    }


def _newest_turns(request: HttpRequest, session: Session) -> list[dict[str, Any]]:
    if not may_view(request, "turn"):
        return []
    sees_log = may_view(request, "event")
    return [
        {
            "turn": turn,
            "url": turn_url(turn.pk),
            "accepted": shown_time(turn.accepted_at),
            "cards_url": cards_url(session.pk, turn=turn.turn_no) if sees_log else None,
        }
        for turn in turns_of(session.pk, before_no=None, limit=NEWEST_TURNS)
    ]
