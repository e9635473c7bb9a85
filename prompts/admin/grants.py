"""What users allowed for their sessions.

Spec: Ruling E18.
"""

from typing import Any, Final

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from cards.admin.addresses import session_url
from cards.admin.read_only import ReadOnlyAdmin
from cards.admin.searching import begins_with
from cards.admin.shown_text import shown, shown_time
from prompts.models import PermissionGrant

#: Characters of a key in the name of its page.
NAME_CHARS: Final = 120


@admin.register(PermissionGrant)
class PermissionGrantAdmin(ReadOnlyAdmin):
    """What users allowed for a session; deleting one has them asked again."""

    list_display = ("key", "session_link", "granted")
    list_display_links = ("key",)
    fields = ("key", "session_link", "granted")
    readonly_fields = fields
    list_select_related = ("session",)
    # What is searched is `get_search_results`; the names only show the search field.
    search_fields = ("session__session_id",)
    search_help_text = "Beginning of a session id."

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> PermissionGrant | None:
        """Return a grant under a name that can be trusted, in Django's pages too."""
        grant: PermissionGrant | None = super().get_object(
            request, object_id, from_field
        )
        if grant is not None:
            # It is never saved; the page that deletes it and the admin's log name it.
            grant.permission_key = shown(grant.permission_key)
        return grant

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[PermissionGrant], bool]:
        """Return the grants of the sessions that a search finds."""
        text = search_term.strip()
        if text:
            queryset = queryset.filter(begins_with("session__session_id", text))
        return queryset, False

    @admin.display(description="what is allowed")
    def key(self, grant: PermissionGrant) -> str:
        """Return the permission key."""
        return shown(grant.permission_key)

    @admin.display(description="session")
    def session_link(self, grant: PermissionGrant) -> SafeString:
        """Return the session, leading to its page."""
        name = shown(grant.session.session_id)
        return format_html('<a href="{}">{}</a>', session_url(grant.session_id), name)

    @admin.display(description="since (UTC)")
    def granted(self, grant: PermissionGrant) -> str:
        """Return when it was allowed."""
        return shown_time(grant.granted_at)

    def page_context(
        self, request: HttpRequest, row: PermissionGrant
    ) -> dict[str, Any]:
        """Return the name of the page; what is allowed may be long."""
        return {"subtitle": shown(row.permission_key, NAME_CHARS)}

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let those take a grant back who have Django's `delete` permission."""
        return admin.ModelAdmin.has_delete_permission(self, request, obj)
