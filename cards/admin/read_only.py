"""What every page of this admin keeps to: looking, never touching."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from django.contrib import admin
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.urls import reverse

from cards.admin.keyset import KeysetChangeList
from cards.admin.shown_text import shown

if TYPE_CHECKING:
    from typing import TypeAlias

    ModelAdmin: TypeAlias = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin

A = TypeVar("A", bound="ModelAdmin")
P = ParamSpec("P")

View = Callable[Concatenate[A, HttpRequest, P], HttpResponse]


def reads_only(view: "View[A, P]") -> "View[A, P]":
    """Let a view of an admin answer GET and HEAD alone; others get a 405."""

    @wraps(view)
    def guarded(
        model_admin: A, request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponse:
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        return view(model_admin, request, *args, **kwargs)

    return guarded


class ReadOnlyAdmin(ModelAdmin):
    """An admin whose lists do not count and whose objects nobody can change.

    Who may view is Django's `view` permission.
    """

    actions = None
    list_per_page = 50
    list_max_show_all = 0
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()
    preserve_filters = False
    view_on_site = False

    def get_changelist(
        self, request: HttpRequest, **kwargs: Any
    ) -> type[KeysetChangeList]:
        """Return the list that does not count: newest first, by primary key."""
        return KeysetChangeList

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: the log's writer makes rows."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: clients hold copies of what is here."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: a session ends through the REST interface."""
        return False

    @reads_only
    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Return a page of the list."""
        title = str(self.opts.verbose_name_plural).capitalize()
        return super().changelist_view(
            request, {"title": title, **(extra_context or {})}
        )

    @reads_only
    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Return the page of one object."""
        return super().changeform_view(request, object_id, form_url, extra_context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Return the page of one object, under a name that can be trusted."""
        row = self.get_object(request, object_id)
        context = dict(extra_context or {})
        if row is not None:
            context |= {
                "title": str(self.opts.verbose_name).capitalize(),
                "subtitle": shown(str(row)),
                **self.page_context(request, row),
            }
        return super().change_view(request, object_id, form_url, context)

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return what an object's page shows beside its fields."""
        return {}

    @reads_only
    def history_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Lead to the object: what cannot change has no history."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        return HttpResponseRedirect(reverse(name, args=[object_id]))


def may_view(request: HttpRequest, model: str) -> bool:
    """Tell whether the user may view that model of the app, such as "event"."""
    return request.user.has_perm(f"cards.view_{model}")
