"""REST reads, the wire schema and the page.

Spec: interfaces.md, REST; Rulings E5, E27.
"""

from typing import Any

import msgspec
from django.conf import settings
from django.contrib.auth.views import LoginView, redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.generic import TemplateView
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cards.clock import utc_now
from cards.deletion import delete_session
from cards.paging import next_url, read_cursor
from cards.permissions import OwnsSessions, principal_of
from cards.ports import PromptBook
from cards.protocol.envelope import MAX_SAFE_INTEGER
from cards.protocol.ids import is_session_id
from cards.protocol.wire_schema import wire_schema
from cards.queries import (
    SessionRecord,
    find_own_session,
    fold_cards,
    newest_seq,
    newest_seqs,
    own_sessions,
    read_page,
    running_sessions,
)

#: Sessions on one page of the list.
PAGE_SESSIONS = 50

#: Events on one page, unless the client asks for fewer or more, and at most.
DEFAULT_EVENTS = 500
MAX_EVENTS = 5000

#: Bytes after which a page of events ends early; at least one event is on it.
PAGE_BYTES = 8 * 1024 * 1024

_CURSOR_SALT = "cards.sessions"


class _SessionView(APIView):
    """Base of the reads of one session; a foreign id is an unknown one."""

    permission_classes = (OwnsSessions,)

    def record(self, request: Request, session_id: str) -> SessionRecord:
        principal = principal_of(request)
        record = None
        # PostgreSQL fails on a NUL, which no session id has.
        if principal is not None and is_session_id(session_id):
            record = find_own_session(session_id, principal)
        if record is None:
            raise NotFound("there is no such session")
        return record


def _session_json(record: SessionRecord, last_seq: int, is_running: bool) -> Any:
    return {
        "session_id": record.session_id,
        "title": record.title,
        "state": "running" if is_running else "idle",
        "last_seq": last_seq,
        "created_at": record.created_at,
        "last_activity_at": record.last_activity_at,
    }


class SessionList(APIView):
    """Own sessions, newest activity first, in pages."""

    permission_classes = (OwnsSessions,)

    def get(self, request: Request) -> Response:
        """Return `{results, next, previous}`; `next` is None on the last page."""
        principal = principal_of(request)
        if principal is None:
            raise NotFound
        before = read_cursor(request, salt=_CURSOR_SALT)
        records = own_sessions(principal, before=before, limit=PAGE_SESSIONS + 1)
        page = records[:PAGE_SESSIONS]
        last = page[-1] if len(records) > len(page) else None
        pks = [record.pk for record in page]
        last_seqs, running = newest_seqs(pks), running_sessions(pks)
        return Response(
            {
                "results": [
                    _session_json(
                        record, last_seqs.get(record.pk, 0), record.pk in running
                    )
                    for record in page
                ],
                "next": next_url(
                    request, last.last_activity_at, last.pk, salt=_CURSOR_SALT
                )
                if last
                else None,
                "previous": None,
            }
        )


class SessionDetail(_SessionView):
    """One own session, to be looked at or deleted."""

    def get(self, request: Request, session_id: str) -> Response:
        """Return the session as it stands in the list."""
        record = self.record(request, session_id)
        is_running = record.pk in running_sessions([record.pk])
        return Response(_session_json(record, newest_seq(record.pk), is_running))

    def delete(self, request: Request, session_id: str) -> Response:
        """Delete the session with everything that belongs to it: 204.

        Its running turn is stopped, and clients that follow it are told.
        """
        if not delete_session(self.record(request, session_id).pk):
            raise NotFound("there is no such session")
        return Response(status=204)


class SnapshotView(_SessionView):
    """A session's cards and prompts as a client that saw every frame has them.

    Attributes:
        book: Keeps the prompts.
    """

    book: PromptBook | None = None

    def get(self, request: Request, session_id: str) -> HttpResponse:
        """Return the folded cards and the seq they stand at. Spec: Ruling E5."""
        record = self.record(request, session_id)
        is_running = record.pk in running_sessions([record.pk])
        fold = fold_cards(record.pk)
        # After the cards: what is settled meanwhile has its reply behind `last_seq`.
        prompts = self.book.open_prompts(record.pk, utc_now()) if self.book else []
        return _json_response(
            {
                "session_id": record.session_id,
                "trace_id": record.trace_id,
                "last_seq": fold.last_seq,
                "state": "running" if is_running else "idle",
                "cards": fold.cards(),
                "prompts": [
                    msgspec.Raw(prompt.frame)
                    for prompt in prompts
                    if prompt.seq <= fold.last_seq
                ],
            }
        )


class EventList(_SessionView):
    """The stored frames of a session, byte for byte."""

    def get(self, request: Request, session_id: str) -> HttpResponse:
        """Return `{events, next_after_seq, last_seq}`; the stored bytes inside."""
        after_seq = _whole_number(request, "after_seq", 0, 0, MAX_SAFE_INTEGER)
        limit = _whole_number(request, "limit", DEFAULT_EVENTS, 1, MAX_EVENTS)
        record = self.record(request, session_id)
        last_seq = newest_seq(record.pk)
        page = read_page(
            record.pk, after_seq=after_seq, max_rows=limit, max_bytes=PAGE_BYTES
        )
        is_end = not page.frames or page.last_seq >= last_seq
        return _json_response(
            {
                "events": [msgspec.Raw(data) for data in page.frames],
                "next_after_seq": None if is_end else page.last_seq,
                "last_seq": last_seq,
            }
        )


def _whole_number(
    request: Request, name: str, default: int, lowest: int, highest: int
) -> int:
    given = request.query_params.get(name)
    if given is None:
        return default
    # isdecimal and a bound on the length: int() takes signs, blanks and megabytes.
    if given.isascii() and given.isdecimal() and len(given) <= 20:
        number = int(given)
        if lowest <= number <= highest:
            return number
    raise ValidationError(
        {name: f"not valid; allowed: a whole number from {lowest} to {highest}"}
    )


def _json_response(content: object) -> HttpResponse:
    # msgspec keeps stored bytes as they are; a renderer would decode them.
    return HttpResponse(msgspec.json.encode(content), content_type="application/json")


class WireSchema(APIView):
    """The JSON Schema of every frame, public."""

    permission_classes = (AllowAny,)

    def get(self, request: Request) -> HttpResponse:
        """Return the schema."""
        return _json_response(wire_schema())


#: Everything the page needs comes from this origin; markup cannot run script. A PDF is
#: framed as a blob that the page made itself, for the browser's own viewer.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; frame-src blob:; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)


class _PageResponse:
    """Adds the policy to the pages that are served to browsers."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Answer, with the policy."""
        response = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]
        response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
        return response


class PageView(_PageResponse, TemplateView):
    """The page, for a browser that gets its own anonymous identity if it has none.

    Where anonymous use is not allowed, whoever is not signed in is sent there first.
    """

    template_name = "cards/page.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Return the page. Spec: Ruling E27."""
        if not settings.CARDWIRE_ALLOW_ANONYMOUS and not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        if settings.CARDWIRE_ALLOW_ANONYMOUS and request.session.is_empty():
            # A session with something in it gets a cookie, which is who this is.
            request.session["cardwire"] = "anonymous"
        return super().get(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Return who is signed in, and where to do that."""
        user = self.request.user
        return super().get_context_data(
            signed_in_name=user.get_username() if user.is_authenticated else "",
            sign_in_url=reverse("sign-in"),
            sign_out_url=reverse("sign-out"),
            anonymous_allowed=settings.CARDWIRE_ALLOW_ANONYMOUS,
            **kwargs,
        )


class SignInView(_PageResponse, LoginView):
    """Where a user signs in; what a browser did before as a guest stays the guest's."""

    template_name = "cards/sign_in.html"
    redirect_authenticated_user = True
