"""The tokens of users, to be looked through and taken back."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from cards.admin.read_only import ReadOnlyAdmin
from cards.models import AccessToken


@admin.register(AccessToken)
class AccessTokenAdmin(ReadOnlyAdmin):
    """Whose tokens there are; deleting one takes it back.

    `manage.py issue_token` makes them: a token must be shown once, and to nobody but
    its user.

    Spec: Ruling E27.
    """

    list_display = ("beginning", "user", "created_at")
    fields = ("beginning", "user", "created_at")
    list_select_related = ("user",)
    search_fields = ("=user__username",)

    @admin.display(description="digest")
    def beginning(self, token: AccessToken) -> str:
        """Return enough of the digest to tell two tokens of a user apart."""
        return f"{token.digest[:8]}…"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let those take a token back who have Django's `delete` permission."""
        return admin.ModelAdmin.has_delete_permission(self, request, obj)
