"""Turns; the messages that began them are read on a turn's own page alone."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from cards.admin.addresses import cards_url, log_url, session_url
from cards.admin.frames import pretty_json
from cards.admin.keyset import KeysetChangeList
from cards.admin.read_only import ReadOnlyAdmin, may_view
from cards.admin.reads import MESSAGE_CHARS, message_head
from cards.admin.searching import TURN_WINDOW, search_turns
from cards.admin.shown_text import shown, shown_time
from cards.models import Turn


class StateFilter(admin.SimpleListFilter):
    """Turns by state; the unfinished ones by their own index."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the states, and the two unfinished ones together."""
        return [("unfinished", "Unfinished"), *Turn.State.choices]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the turns of the chosen state."""
        state = self.value()
        if state is None:
            return queryset
        if state == Turn.State.ENDED:
            return queryset.filter(state=state)
        # A query of its own, in these words, is what the index `turn_unfinished` has.
        unfinished = Turn.objects.exclude(state=Turn.State.ENDED).values("pk")
        rows = queryset.filter(pk__in=unfinished)
        if state in Turn.State.values:
            return rows.filter(state=state)
        return rows if state == "unfinished" else rows.none()


@admin.register(Turn)
class TurnAdmin(ReadOnlyAdmin):
    """Read turns."""

    list_display = ("turn", "session_link", "shown_state", "accepted", "card")
    list_display_links = ("turn",)
    list_filter = (StateFilter,)
    list_select_related = ("session",)
    # What is searched is `get_search_results`; the names only show the search field.
    search_fields = ("card_id",)
    search_help_text = (
        "Beginning of a session id or trace id, or a whole card id, run id or event id"
        f" (of the newest {TURN_WINDOW:,} turns)."
    )
    fields: ClassVar[tuple[str, ...]] = (
        *("session_link", "turn", "shown_state", "accepted", "first_frame"),
        *("card", "run", "event"),
    )
    readonly_fields = fields

    def get_changelist(
        self, request: HttpRequest, **kwargs: Any
    ) -> type[KeysetChangeList]:
        """Return the list that does not count."""
        return KeysetChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Turn]:
        """Return the turns without their messages."""
        return Turn.objects.defer("message").select_related("session")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Turn], bool]:
        """Return the turns that a search finds, each once."""
        return search_turns(queryset, search_term.strip()), False

    @admin.display(description="turn")
    def turn(self, turn: Turn) -> str:
        """Return the number in the session."""
        return f"Turn {turn.turn_no}"

    @admin.display(description="session")
    def session_link(self, turn: Turn) -> SafeString:
        """Return the session, leading to its page."""
        return format_html(
            '<a href="{}">{}</a>',
            session_url(turn.session_id),
            shown(turn.session.session_id),
        )

    @admin.display(description="state")
    def shown_state(self, turn: Turn) -> SafeString:
        """Return how far the turn is."""
        return format_html(
            '<span class="cw-badge cw-{}">{}</span>', turn.state, turn.state
        )

    @admin.display(description="accepted (UTC)")
    def accepted(self, turn: Turn) -> str:
        """Return when the message was accepted."""
        return shown_time(turn.accepted_at)

    @admin.display(description="card id")
    def card(self, turn: Turn) -> str:
        """Return the id of the turn's card."""
        return shown(turn.card_id)

    @admin.display(description="run id")
    def run(self, turn: Turn) -> str:
        """Return the id of the run."""
        return shown(turn.run_id)

    @admin.display(description="event id")
    def event(self, turn: Turn) -> str:
        """Return the client's id of the message."""
        return shown(turn.event_id)

    @admin.display(description="first seq")
    def first_frame(self, turn: Turn) -> str:
        """Return the seq of the first frame."""
        return "not started" if turn.first_seq is None else str(turn.first_seq)

    def page_context(self, request: HttpRequest, row: Turn) -> dict[str, Any]:
        """Return the links around a turn and the beginning of its message."""
        session_name = shown(row.session.session_id)
        return {
            "subtitle": f"Turn {row.turn_no} of {session_name}",
            **_links(request, row),
            **_message(row),
        }


def _message(turn: Turn) -> dict[str, Any]:
    text, length = message_head(turn.pk)
    is_cut = length > MESSAGE_CHARS
    return {
        "message": shown(text if is_cut else pretty_json(text.encode())),
        "message_is_cut": is_cut,
        "message_chars": f"{MESSAGE_CHARS:,}",
        "message_length": f"{length:,}",
    }


def _links(request: HttpRequest, turn: Turn) -> dict[str, Any]:
    """Return the addresses around a turn; None for what the user may not view."""
    sees_log = may_view(request, "event") and may_view(request, "session")
    started = sees_log and turn.first_seq is not None
    return {
        "session_url": session_url(turn.session_id)
        if may_view(request, "session")
        else None,
        "session_name": shown(turn.session.session_id),
        "log_url": log_url(turn.session_id, seq=turn.first_seq or 1)
        if started
        else None,
        "cards_url": cards_url(turn.session_id, turn=turn.turn_no) if started else None,
    }
