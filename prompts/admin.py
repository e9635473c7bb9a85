"""The operator's view of prompts: what waits, for whom, and what to do about it.

Spec: Rulings E15, E17, E18; issue "Prompts", admin.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Final

import msgspec
from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.db.models.functions import Substr
from django.http import (
    Http404,
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
from msgspec import UNSET

from cards.admin.addresses import session_url
from cards.admin.frames import pretty_json
from cards.admin.keyset import KeysetChangeList
from cards.admin.read_only import ReadOnlyAdmin
from cards.admin.searching import begins_with
from cards.admin.shown_text import shown, shown_time
from cards.clock import utc_now
from cards.protocol.client_messages import PromptUserResponse
from cards.protocol.codec import decode_json
from cards.protocol.errors import RemoteProtocolError
from cards.protocol.json_form import JSONValue
from prompts.book import CLIENT_TOOL
from prompts.models import PendingWait, PermissionGrant
from prompts.operations import answer_prompt, expire_prompt, resend_prompt
from prompts.protocol.summaries import summary_of

#: Bytes of a frame that the list reads, enough for what is asked.
HEAD_BYTES: Final = 8192

#: Characters of a question in the list.
SUMMARY_CHARS: Final = 120

#: Characters of a prompt on its page.
SHOWN_CHARS: Final = 100_000

#: The user's words, and an answer to begin with. Spec: EMIT 7.3.
_DECISIONS: Final = {
    "permission": ("approved", "denied"),
    "question": ("approved", "denied"),
    "plan_review": ("approved", "denied"),
    "step_decision": ("continue", "retry", "cancel"),
}
_PAYLOADS: Final = {
    "permission": '{"scope": "once", "message": ""}',
    "question": '{"selected_options": [], "custom_text": ""}',
    "plan_review": '{"reason": ""}',
    "step_decision": '{"note": ""}',
}


class WaitList(KeysetChangeList):
    """Waits, newest first."""

    keyset = ("created_at", "pk")


class AnswerForm(forms.Form):
    """An answer in the user's place; whether it fits is judged as any answer is.

    Args:
        wait: What is answered.
    """

    payload = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 6, "cols": 80, "class": "cw-mono"}),
        help_text="A JSON object, as a client would send it.",
    )

    def __init__(self, data: Any, *, wait: PendingWait) -> None:
        super().__init__(data, initial={"payload": _PAYLOADS[wait.kind]})
        self.fields["decision"] = forms.ChoiceField(
            choices=[(word, word) for word in _DECISIONS[wait.kind]]
        )
        self.order_fields(["decision", "payload"])

    def clean_payload(self) -> dict[str, JSONValue]:
        """Return the payload as an object."""
        try:
            payload = decode_json(self.cleaned_data["payload"])
        except RemoteProtocolError as error:
            raise forms.ValidationError(str(error)) from error
        if not isinstance(payload, dict):
            raise forms.ValidationError("not a JSON object")
        return payload

    def refuse(self, refusal: RemoteProtocolError) -> None:
        """Show why the answer does not fit, at the field that is at fault."""
        details = refusal.error.details
        name = "" if details is UNSET else str(details.get("field", ""))
        self.add_error(
            "decision" if name == "decision" else "payload", refusal.error.message
        )


@admin.register(PendingWait)
class PendingWaitAdmin(ReadOnlyAdmin):
    """What waits; to expire, to answer or to show again needs Django's `change`."""

    list_display = ("request", "kind", "session_link", "asked", "state", "age", "ends")
    list_display_links = ("request",)
    search_fields = ("request_id",)
    search_help_text = "Beginning of a request id or of a session id."
    list_select_related = ("session",)
    fields: ClassVar[tuple[str, ...]] = (
        *("request", "kind", "session_link", "asked", "state", "age", "ends"),
        *("decision", "shown_answer", "reason"),
    )
    readonly_fields = fields
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

    @admin.display(description="age")
    def age(self, wait: PendingWait) -> str:
        """Return how long it has been waiting."""
        return timesince(wait.created_at, utc_now())

    @admin.display(description="ends (UTC)")
    def ends(self, wait: PendingWait) -> str:
        """Return when its time is over."""
        moments = filter(None, (wait.deadline_at, wait.expires_at))
        return (
            shown_time(min(moments))
            if any((wait.deadline_at, wait.expires_at))
            else "never"
        )

    @admin.display(description="answer")
    def shown_answer(self, wait: PendingWait) -> str:
        """Return the checked answer."""
        if wait.answer is None:
            return "–"
        return shown(msgspec.json.encode(wait.answer).decode(), SHOWN_CHARS)

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return the prompt as it was sent, and what may be done about it."""
        text = pretty_json(bytes(row.frame)) if row.frame else ""
        is_open = row.state == PendingWait.State.PENDING and row.kind != CLIENT_TOOL
        return {
            "text": shown(text[:SHOWN_CHARS]),
            "may_act": is_open and self._may_act(request),
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
        form = AnswerForm(request.POST or None, wait=wait)
        if request.method == "POST" and form.is_valid():
            answer = PromptUserResponse(request_id=wait.request_id, **form.cleaned_data)
            reason = f"answered by {request.user.get_username()}"
            try:
                answer_prompt(wait.session_id, answer, utc_now(), reason=reason)
            except RemoteProtocolError as refusal:
                form.refuse(refusal)
            else:
                return self._done(request, wait, f"{reason}: {answer.decision}")
        context = {
            **self.admin_site.each_context(request),
            "title": "Answer a prompt",
            "subtitle": shown(wait.request_id),
            "opts": self.opts,
            "form": form,
            "wait": wait,
            "asked": self.asked(wait),
            "text": shown(pretty_json(bytes(wait.frame))[:SHOWN_CHARS]),
        }
        return TemplateResponse(
            request, "admin/prompts/pendingwait/answer.html", context
        )

    def expire_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Settle a prompt as if its time were over."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        wait = self._open_wait(request, pk)
        reason = f"expired by {request.user.get_username()}"
        try:
            expire_prompt(wait.session_id, wait.request_id, utc_now(), reason=reason)
        except RemoteProtocolError as refusal:
            messages.error(request, refusal.error.message)
            return HttpResponseRedirect(self._list_url())
        return self._done(request, wait, reason)

    def resend_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Have the clients shown a prompt once more."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        wait = self._open_wait(request, pk)
        if not resend_prompt(wait.request_id, utc_now()):
            messages.error(request, "The prompt was settled meanwhile.")
            return HttpResponseRedirect(self._list_url())
        return self._done(request, wait, "shown again")

    def _open_wait(self, request: HttpRequest, pk: int) -> PendingWait:
        if not self._may_act(request):
            raise PermissionDenied
        rows = self.get_queryset(request).filter(
            ~Q(kind=CLIENT_TOOL), pk=pk, state=PendingWait.State.PENDING
        )
        wait = rows.first()
        if wait is None:
            raise Http404("this prompt is not open any more")
        return wait

    def _done(self, request: HttpRequest, wait: PendingWait, what: str) -> HttpResponse:
        self.log_change(request, wait, what)
        messages.success(request, f"{wait.request_id}: {what}.")
        return HttpResponseRedirect(self._list_url())

    @staticmethod
    def _list_url() -> str:
        return reverse("admin:prompts_pendingwait_changelist")


@admin.register(PermissionGrant)
class PermissionGrantAdmin(ReadOnlyAdmin):
    """What users allowed for a session; deleting one has them asked again."""

    list_display = ("key", "session_link", "granted_at")
    fields = ("key", "session_link", "granted_at")
    readonly_fields = fields
    list_select_related = ("session",)
    ordering = ("-pk",)
    search_fields = ("=session__session_id",)

    @admin.display(description="what is allowed")
    def key(self, grant: PermissionGrant) -> str:
        """Return the permission key."""
        return shown(grant.permission_key, SUMMARY_CHARS)

    @admin.display(description="session")
    def session_link(self, grant: PermissionGrant) -> SafeString:
        """Return the session, leading to its page."""
        name = shown(grant.session.session_id)
        return format_html('<a href="{}">{}</a>', session_url(grant.session_id), name)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let those take a grant back who have Django's `delete` permission."""
        return admin.ModelAdmin.has_delete_permission(self, request, obj)
