"""The operator's view of files: whose they are, how much they take, and their bytes.

Spec: issue "Artifacts" 7.
"""

from typing import Any, ClassVar, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from artifacts.downloads import answer_with, content_of
from artifacts.models import Artifact, ArtifactVersion
from artifacts.queries import Totals, artifact_totals, session_totals
from cards.admin.addresses import session_url
from cards.admin.keyset import KeysetChangeList
from cards.admin.read_only import ReadOnlyAdmin
from cards.admin.searching import begins_with
from cards.admin.shown_text import shown, shown_size, shown_time
from cards.ownership import lock_session

#: Characters of a name in the list, and of each text of a version on its page.
NAME_CHARS: Final = 80
TEXT_CHARS: Final = 200

#: Newest artifacts whose names are searched; they have no index of their own.
NAMED_ARTIFACTS: Final = 20_000

#: Versions on the page of an artifact, the newest.
SHOWN_VERSIONS: Final = 100

_TOTALS, _SESSION_TOTALS = "_admin_totals", "_admin_session_totals"


class ArtifactList(KeysetChangeList):
    """Artifacts, newest first."""

    keyset = ("created_at", "pk")

    def get_results(self, request: HttpRequest) -> None:
        """Read a page, then how much there is of what is on it, for all at once."""
        super().get_results(request)
        totals = artifact_totals([row.pk for row in self.result_list])
        of_sessions = session_totals({row.session_id for row in self.result_list})
        for row in self.result_list:
            vars(row)[_TOTALS] = totals.get(row.pk, Totals())
            vars(row)[_SESSION_TOTALS] = of_sessions.get(row.session_id, Totals())


def _totals_of(artifact: Artifact) -> Totals:
    kept = vars(artifact).get(_TOTALS)
    if not isinstance(kept, Totals):
        kept = artifact_totals([artifact.pk]).get(artifact.pk, Totals())
        vars(artifact)[_TOTALS] = kept
    return kept


def _session_totals_of(artifact: Artifact) -> Totals:
    kept = vars(artifact).get(_SESSION_TOTALS)
    if not isinstance(kept, Totals):
        pk = artifact.session_id
        kept = session_totals([pk]).get(pk, Totals())
        vars(artifact)[_SESSION_TOTALS] = kept
    return kept


def _artifacts_url(session_pk: int) -> str:
    address = reverse("admin:artifacts_artifact_changelist")
    return f"{address}?session__id__exact={session_pk}"


@admin.register(Artifact)
class ArtifactAdmin(ReadOnlyAdmin):
    """Files with their versions; deleting one removes its bytes, too."""

    list_display = (
        *("shown_name", "kind", "versions", "size"),
        *("session_and_size", "created"),
    )
    list_display_links = ("shown_name",)
    list_filter = ("source",)
    list_select_related = ("session",)
    # What is searched is `get_search_results`; the names only show the search field.
    search_fields = ("artifact_id",)
    search_help_text = (
        "Beginning of an artifact id or of a session id, or a part of a name (of the"
        f" newest {NAMED_ARTIFACTS:,} artifacts)."
    )
    fields: ClassVar[tuple[str, ...]] = (
        *("shown_name", "artifact", "session_link", "session_size", "source"),
        *("versions", "size", "created", "changed"),
    )
    readonly_fields = fields
    change_form_template = "admin/artifacts/artifact/change_form.html"

    def get_changelist(
        self, request: HttpRequest, **kwargs: Any
    ) -> type[KeysetChangeList]:
        """Return the list that does not count."""
        return ArtifactList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Artifact], bool]:
        """Return the artifacts that a search finds, each once."""
        text = search_term.strip()
        if text:
            newest = Artifact.objects.order_by("-created_at", "-pk")[:NAMED_ARTIFACTS]
            named = Artifact.objects.filter(
                pk__in=newest.values("pk"), name__icontains=text
            )
            queryset = queryset.filter(
                begins_with("artifact_id", text)
                | begins_with("session__session_id", text)
                | Q(pk__in=named.values("pk"))
            )
        return queryset, False

    # What is shown.

    @admin.display(description="name")
    def shown_name(self, artifact: Artifact) -> str:
        """Return the name."""
        return shown(artifact.name, NAME_CHARS)

    @admin.display(description="artifact id")
    def artifact(self, artifact: Artifact) -> str:
        """Return the public id."""
        return shown(artifact.artifact_id)

    @admin.display(description="session")
    def session_link(self, artifact: Artifact) -> SafeString:
        """Return the session, leading to its page."""
        name = shown(artifact.session.session_id)
        return format_html(
            '<a href="{}">{}</a>', session_url(artifact.session_id), name
        )

    @admin.display(description="type")
    def kind(self, artifact: Artifact) -> str:
        """Return what the newest version is."""
        return shown(_totals_of(artifact).mime_type) or "–"

    @admin.display(description="versions")
    def versions(self, artifact: Artifact) -> int:
        """Return how many there are."""
        return _totals_of(artifact).version_count

    @admin.display(description="size")
    def size(self, artifact: Artifact) -> str:
        """Return what all versions take."""
        return shown_size(_totals_of(artifact).size_bytes)

    @admin.display(description="whole session")
    def session_size(self, artifact: Artifact) -> SafeString:
        """Return what all files of its session take, leading to them."""
        totals = _session_totals_of(artifact)
        return format_html(
            '<a href="{}">{} in {} file{}</a>',
            _artifacts_url(artifact.session_id),
            shown_size(totals.size_bytes),
            totals.artifact_count,
            "" if totals.artifact_count == 1 else "s",
        )

    @admin.display(description="session")
    def session_and_size(self, artifact: Artifact) -> SafeString:
        """Return both."""
        return format_html(
            "{}<br>{}", self.session_link(artifact), self.session_size(artifact)
        )

    @admin.display(description="created (UTC)")
    def created(self, artifact: Artifact) -> str:
        """Return when the first version came."""
        return shown_time(artifact.created_at)

    @admin.display(description="newest version (UTC)")
    def changed(self, artifact: Artifact) -> str:
        """Return when the newest version came."""
        return shown_time(artifact.changed_at)

    def page_context(self, request: HttpRequest, row: Artifact) -> dict[str, Any]:
        """Return the versions, and what leads to their bytes."""
        rows = ArtifactVersion.objects.filter(artifact=row).order_by("-version")
        page = list(rows[:SHOWN_VERSIONS])
        return {
            "subtitle": shown(row.name, NAME_CHARS),
            "artifact_versions": [_shown_version(row, version) for version in page],
            "more_versions": _totals_of(row).version_count - len(page),
        }

    # What an operator does.

    def get_urls(self) -> list[URLPattern]:
        """Return the pages, and where the bytes are."""
        return [
            path(
                "<int:pk>/versions/<int:version>/",
                self.admin_site.admin_view(require_safe(self.content_view)),
                name="artifacts_artifact_content",
            ),
            *super().get_urls(),
        ]

    def content_view(
        self, request: HttpRequest, pk: int, version: int
    ) -> HttpResponseBase:
        """Return the bytes of a version, to be saved."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        rows = ArtifactVersion.objects.filter(artifact_id=pk, version=version)
        found = rows.select_related("artifact").first()
        if found is None:
            raise Http404("there is no such version")
        try:
            return answer_with(request, content_of(found, is_saved=True))
        except FileNotFoundError as error:
            raise Http404("its file is gone") from error

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let those delete a file who have Django's `delete` permission."""
        return admin.ModelAdmin.has_delete_permission(self, request, obj)

    def delete_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Ask first, and name the file."""
        row = self.get_object(request, object_id)
        name = shown(row.name, NAME_CHARS) if row else ""
        context = {**(extra_context or {}), "subtitle": name}
        return super().delete_view(request, object_id, context)

    def delete_model(self, request: HttpRequest, obj: Artifact) -> None:
        """Delete an artifact with its versions and their files."""
        # As by whoever keeps a further version of it meanwhile.
        lock_session(obj.session_id)
        super().delete_model(request, obj)


def _shown_version(artifact: Artifact, version: ArtifactVersion) -> dict[str, Any]:
    return {
        "number": version.version,
        "mime_type": shown(version.mime_type),
        "type": shown(version.type),
        "role": shown(version.role),
        "description": shown(version.description, TEXT_CHARS),
        "size": shown_size(version.size_bytes),
        "sha256": version.sha256,
        "created": shown_time(version.created_at),
        "is_missing": version.missing_since is not None,
        "url": reverse(
            "admin:artifacts_artifact_content", args=[artifact.pk, version.version]
        ),
    }
