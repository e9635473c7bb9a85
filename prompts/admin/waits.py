"""What waits, for whom, and what an operator does about it.

Spec: Rulings E15, E17.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar, Final

import msgspec
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Substr
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

from cards.admin.addresses import frame_url, session_url
from cards.admin.frames import pretty_json
from cards.admin.keyset import KeysetChangeList
from cards.admin.read_only import ReadOnlyAdmin, may_view
from cards.admin.searching import begins_with
from cards.admin.shown_text import shown, shown_time
from cards.clock import utc_now
from cards.protocol.client_messages import PromptUserResponse
from cards.protocol.errors import RemoteProtocolError
from cards.protocol.json_form import JSONValue
from prompts.admin.answer_form import AnswerForm
from prompts.book import CLIENT_TOOL, inner_of
from prompts.models import PendingWait
from prompts.operations import answer_prompt, expire_prompt, resend_prompt
from prompts.protocol.summaries import summary_of

#: Bytes of a frame that the list reads, enough for what is asked.
HEAD_BYTES: Final = 8192

#: Characters of a question in the list.
SUMMARY_CHARS: Final = 120

#: Characters of a prompt, and of each part of it, on its page.
SHOWN_CHARS: Final = 100_000

#: How the style sheet of the admin calls the states.
_BADGES: Final = {"pending": "open", "settled": "ok", "expired": "failed"}


class WaitList(KeysetChangeList):
    """Waits, newest first."""

    keyset = ("created_at", "pk")


def _end_of(wait: PendingWait) -> datetime | None:
    """Return when the wait counts as not answered; None for never."""
    ends = (wait.deadline_at, wait.expires_at)
    return min(filter(None, ends), default=None)


def _state_of(wait: PendingWait) -> str:
    """Return how far a wait is; `expired` when its time is over. Spec: Ruling E17."""
    end = _end_of(wait)
    is_pending = wait.state == PendingWait.State.PENDING
    is_over = is_pending and end is not None and end <= utc_now()
    return "expired" if is_over else wait.state


def _is_open(wait: PendingWait) -> bool:
    return _state_of(wait) == PendingWait.State.PENDING and wait.kind != CLIENT_TOOL


def _prompt_context(request: HttpRequest, wait: PendingWait) -> dict[str, Any]:
    """Return what is asked, part by part, and the frame that asked it."""
    frame = bytes(wait.frame)
    sees_log = may_view(request, "event") and may_view(request, "session")
    return {
        "parts": [
            (name.replace("_", " "), _shown_part(part))
            for name, part in (inner_of(frame) if frame else {}).items()
        ],
        "text": shown(pretty_json(frame), SHOWN_CHARS),
        "frame_url": frame_url(wait.session_id, wait.seq)
        if sees_log and wait.seq
        else None,
    }


def _shown_part(part: JSONValue) -> str:
    # Text as the user reads it, not with the escapes of JSON.
    text = part if isinstance(part, str) else pretty_json(msgspec.json.encode(part))
    return shown(text, SHOWN_CHARS)


@admin.register(PendingWait)
class PendingWaitAdmin(ReadOnlyAdmin):
    """What waits; to expire, to answer or to show again needs Django's `change`."""

    list_display = (
        "request",
        "kind",
        "session_link",
        "asked",
        "shown_state",
        "age",
        "ends",
    )
    list_display_links = ("request",)
    search_fields = ("request_id",)
    search_help_text = "Beginning of a request id or of a session id."
    list_select_related = ("session",)
    readonly_fields: ClassVar[tuple[str, ...]] = (
        *("request", "kind", "session_link", "shown_state", "age", "ends", "resent"),
        *("decision", "shown_answer", "reason"),
    )
    change_form_template = "admin/prompts/pendingwait/change_form.html"

    def get_changelist(
        self, request: HttpRequest, **kwargs: Any
    ) -> type[KeysetChangeList]:
        """Return the list that does not count."""
        return WaitList

    def get_queryset(self, request: HttpRequest) -> QuerySet[PendingWait]:
        """Return the waits without their frames, of which the beginning is enough."""
        rows: QuerySet[PendingWait] = super().get_queryset(request)
        return rows.defer("frame").annotate(head=Substr("frame", 1, HEAD_BYTES))

    def get_fields(
        self, request: HttpRequest, obj: PendingWait | None = None
    ) -> tuple[str, ...]:
        """Return what the page of a wait shows; the answer once there is one."""
        names = self.readonly_fields
        return names if obj and obj.decision else names[: names.index("decision")]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[PendingWait], bool]:
        """Return the waits that a search finds."""
        text = search_term.strip()
        if text:
            queryset = queryset.filter(
                begins_with("request_id", text)
                | begins_with("session__session_id", text)
            )
        return queryset, False

    @admin.display(description="request id")
    def request(self, wait: PendingWait) -> str:
        """Return the id of the prompt."""
        return shown(wait.request_id)

    @admin.display(description="session")
    def session_link(self, wait: PendingWait) -> SafeString:
        """Return the session, leading to its page."""
        name = shown(wait.session.session_id)
        return format_html('<a href="{}">{}</a>', session_url(wait.session_id), name)

    @admin.display(description="question")
    def asked(self, wait: PendingWait) -> str:
        """Return what is asked, in a line."""
        head = bytes(vars(wait).get("head") or b"")
        return shown(summary_of(wait.kind, head), SUMMARY_CHARS) or "–"

    @admin.display(description="state")
    def shown_state(self, wait: PendingWait) -> SafeString:
        """Return how far the wait is."""
        state = _state_of(wait)
        badge = _BADGES.get(state, state)
        return format_html('<span class="cw-badge cw-{}">{}</span>', badge, state)

    @admin.display(description="age")
    def age(self, wait: PendingWait) -> str:
        """Return how long it has been waiting."""
        return timesince(wait.created_at, utc_now())

    @admin.display(description="ends (UTC)")
    def ends(self, wait: PendingWait) -> str:
        """Return when its time is over."""
        end = _end_of(wait)
        return shown_time(end) if end else "never"

    @admin.display(description="shown again (UTC)")
    def resent(self, wait: PendingWait) -> str:
        """Return when an operator last had it sent again."""
        return shown_time(wait.resent_at) if wait.resent_at else "never"

    @admin.display(description="answer")
    def shown_answer(self, wait: PendingWait) -> str:
        """Return the checked answer."""
        return shown(msgspec.json.encode(wait.answer).decode(), SHOWN_CHARS)

    def page_context(self, request: HttpRequest, row: PendingWait) -> dict[str, Any]:
        """Return the prompt as it was sent, and what may be done about it."""
        return {
            **_prompt_context(request, row),
            "subtitle": shown(row.request_id),
            "may_act": _is_open(row) and self._may_act(request),
            "is_expired": _state_of(row) == "expired",
            "tools": {
                name: reverse(f"admin:prompts_pendingwait_{name}", args=[row.pk])
                for name in ("answer", "expire", "resend")
            },
        }

    @staticmethod
    def _may_act(request: HttpRequest) -> bool:
        return request.user.has_perm("prompts.change_pendingwait")

    # What an operator does.

    def get_urls(self) -> list[URLPattern]:
        """Return the pages, those that do something among them."""
        tools: dict[str, Callable[..., HttpResponse]] = {
            "answer": self.answer_view,
            "expire": self.expire_view,
            "resend": self.resend_view,
        }
        return [
            path(
                f"<int:pk>/{name}/",
                self.admin_site.admin_view(view),
                name=f"prompts_pendingwait_{name}",
            )
            for name, view in tools.items()
        ] + super().get_urls()

    def answer_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Answer in the user's place."""
        wait = self._open_wait(request, pk)
        if wait is None:
            return self._too_late(request)
        inner = inner_of(bytes(wait.frame))
        is_answer = request.method == "POST"
        form = AnswerForm(
            request.POST if is_answer else None, kind=wait.kind, inner=inner
        )
        if is_answer and form.is_valid():
            answer = PromptUserResponse(request_id=wait.request_id, **form.cleaned_data)
            try:
                return self._answer(request, wait, answer)
            except RemoteProtocolError as refusal:
                if refusal.error.code == "UNKNOWN_REQUEST_ID":
                    return self._too_late(request)
                form.refuse(refusal)
        context = {
            **self.admin_site.each_context(request),
            **_prompt_context(request, wait),
            "title": "Answer a prompt",
            "subtitle": shown(wait.request_id),
            "opts": self.opts,
            "form": form,
            "wait": wait,
            "asked": self.asked(wait),
        }
        return TemplateResponse(
            request, "admin/prompts/pendingwait/answer.html", context
        )

    def _answer(
        self, request: HttpRequest, wait: PendingWait, answer: PromptUserResponse
    ) -> HttpResponse:
        reason = f"answered by {request.user.get_username()}"
        # What an operator did is recorded, or it was not done.
        with transaction.atomic():
            decision = answer_prompt(wait.session_id, answer, utc_now(), reason=reason)
            what = f"{reason}: {decision}"
            self.log_change(request, wait, what)
        return self._done(request, wait, what)

    def expire_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Settle a prompt as if its time were over."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        wait = self._open_wait(request, pk)
        if wait is None:
            return self._too_late(request)
        reason = f"expired by {request.user.get_username()}"
        now = utc_now()
        try:
            with transaction.atomic():
                expire_prompt(wait.session_id, wait.request_id, now, reason=reason)
                self.log_change(request, wait, reason)
        except RemoteProtocolError:
            return self._too_late(request)
        return self._done(request, wait, reason)

    def resend_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Have the clients shown a prompt once more."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        wait = self._open_wait(request, pk)
        if wait is None:
            return self._too_late(request)
        what = f"shown again by {request.user.get_username()}"
        with transaction.atomic():
            is_resent = resend_prompt(wait.request_id, utc_now())
            if is_resent:
                self.log_change(request, wait, what)
        if not is_resent:
            return self._too_late(request)
        return self._done(request, wait, what)

    def _open_wait(self, request: HttpRequest, pk: int) -> PendingWait | None:
        """Return a prompt that may be answered; None if it is not, or not any more.

        Raises:
            PermissionDenied: This operator may only look.
        """
        if not self._may_act(request):
            raise PermissionDenied
        wait = self.get_queryset(request).filter(pk=pk).first()
        return wait if wait and _is_open(wait) else None

    def _too_late(self, request: HttpRequest) -> HttpResponse:
        messages.error(request, "This prompt is not open any more; nothing was done.")
        return HttpResponseRedirect(self._list_url())

    def _done(self, request: HttpRequest, wait: PendingWait, what: str) -> HttpResponse:
        # Named first: the admin begins a message with a capital, which an id has not.
        messages.success(request, f"Prompt {wait.request_id}: {what}.")
        return HttpResponseRedirect(self._list_url())

    @staticmethod
    def _list_url() -> str:
        return reverse("admin:prompts_pendingwait_changelist")
