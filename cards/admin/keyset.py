"""Lists that page by key: no counting, and page 10,000 costs what page 1 does."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ValidationError
from django.db.models import Expression, Q, QuerySet
from django.http import HttpRequest

#: Parameters of the list's address: rows behind, or in front of, a row's key.
AFTER, BEFORE = "after", "before"

if TYPE_CHECKING:
    Rows = QuerySet[Any]


class KeysetChangeList(ChangeList):
    """A list in descending order of one or two fields, the last of them unique.

    The template `admin/cards/pagination.html` shows what `older_url` and the others
    say; None means that there is no such page.
    """

    #: Names of the fields, such as ("last_activity_at", "pk").
    keyset: tuple[str, ...] = ("pk",)

    newest_url: str | None = None
    newer_url: str | None = None
    older_url: str | None = None

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: list[str | None] | None = None
    ) -> "Rows":
        """Return the filtered rows; the place in them is not a filter."""
        # Links of filters and the search form are built from these.
        for name in (AFTER, BEFORE):
            self.params.pop(name, None)
            self.filter_params.pop(name, None)
        return super().get_queryset(request, exclude_parameters)

    def get_ordering(
        self, request: HttpRequest, queryset: "Rows"
    ) -> list[Expression | str]:
        """Return the one order that this list has."""
        return [f"-{name}" for name in self.keyset]

    def get_results(self, request: HttpRequest) -> None:
        """Read one page and one row more, which tells whether there is another."""
        size = self.list_per_page
        in_front = self._key_of(request.GET.get(BEFORE, ""))
        rows = self._rows_in_front(in_front) if in_front else None
        if rows is not None:
            # Whoever asks for what is in front of a row has seen that row.
            self._show(rows[-size:], has_newer=len(rows) > size, has_older=True)
            return
        behind = self._key_of(request.GET.get(AFTER, ""))
        rows = self._rows_behind(behind)
        self._show(rows[:size], has_newer=bool(behind), has_older=len(rows) > size)

    def _show(self, rows: list[Any], *, has_newer: bool, has_older: bool) -> None:
        self.result_list = rows
        self.result_count = len(rows)
        self.full_result_count = None
        self.show_full_result_count = False
        self.show_admin_actions = False
        self.can_show_all = self.multi_page = self.show_all = False
        self.paginator = None
        if has_newer:
            self.newest_url = self.get_query_string() or "?"
        if rows and has_newer:
            self.newer_url = self.get_query_string({BEFORE: self._token(rows[0])})
        if rows and has_older:
            self.older_url = self.get_query_string({AFTER: self._token(rows[-1])})

    def _rows_behind(self, key: list[Any] | None) -> list[Any]:
        rows = self.queryset.filter(self._beyond(key, "lt")) if key else self.queryset
        return list(rows[: self.list_per_page + 1])

    def _rows_in_front(self, key: list[Any]) -> list[Any] | None:
        """Return the page in front, oldest of it last; None when that is the first."""
        rows = self.queryset.filter(self._beyond(key, "gt")).order_by(*self.keyset)
        page = list(rows[: self.list_per_page + 1])[::-1]
        # A short page would be the first one, shifted by what was deleted.
        return page if len(page) >= self.list_per_page else None

    def _beyond(self, key: list[Any], side: str) -> Q:
        # The first condition alone finds the place in the index.
        names = self.keyset
        found = Q(**{f"{names[0]}__{side}": key[0]})
        if len(names) == 1:
            return found
        return Q(**{f"{names[0]}__{side}e": key[0]}) & (
            found | Q(**{f"{names[1]}__{side}": key[1]})
        )

    def _token(self, row: Any) -> str:
        values = [getattr(row, name) for name in self.keyset]
        return "~".join(
            each.isoformat() if isinstance(each, datetime) else str(each)
            for each in values
        )

    def _key_of(self, token: str) -> list[Any] | None:
        parts = token.split("~")
        if len(parts) != len(self.keyset):
            return None
        try:
            key = [
                self._field(name).to_python(part)
                for name, part in zip(self.keyset, parts, strict=True)
            ]
        except (ValidationError, OverflowError):
            return None
        return None if any(map(_is_unusable, key)) else key

    def _field(self, name: str) -> Any:
        return self.opts.pk if name == "pk" else self.opts.get_field(name)


def _is_unusable(value: object) -> bool:
    return value is None or (isinstance(value, datetime) and value.tzinfo is None)
