"""Which file a name means."""

import pytest

from cards.engines.workspace.failures import WorkspaceFailure
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.locating import (
    candidates,
    locate,
    locate_file,
    locate_folder,
)


class TestLocate:
    @pytest.mark.parametrize(
        ("name", "path"),
        [
            ("", ""),
            ("docs/plan.md", "docs/plan.md"),
            ("docs/", "docs"),
            ("ideas.md", "notes/ideas.md"),
            ("Ideas", "notes/ideas.md"),
            ("readme", "README.md"),
            ("web", "src/web"),
        ],
    )
    def test_finds_the_only_one_of_that_name(
        self, workspace: Workspace, name: str, path: str
    ) -> None:
        assert locate(workspace.disk, name).path == path

    def test_lists_the_candidates_of_an_ambiguous_name(
        self, workspace: Workspace
    ) -> None:
        with pytest.raises(WorkspaceFailure) as caught:
            locate(workspace.disk, "plan.md")

        assert caught.value.reason_code == "ambiguous_name"
        assert "- `docs/plan.md`\n- `notes/plan.md`" in caught.value.sentence

    def test_proposes_near_names(self, workspace: Workspace) -> None:
        with pytest.raises(WorkspaceFailure) as caught:
            locate(workspace.disk, "idaes.md")

        assert "Did you mean" in caught.value.sentence
        assert "`notes/ideas.md`" in caught.value.sentence

    def test_tells_files_from_folders(self, workspace: Workspace) -> None:
        with pytest.raises(WorkspaceFailure):
            locate_file(workspace.disk, "docs")
        with pytest.raises(WorkspaceFailure):
            locate_folder(workspace.disk, "README.md")


class TestCandidates:
    @pytest.mark.parametrize(
        ("name", "paths"),
        [
            ("plan.md", ["docs/plan.md", "notes/plan.md"]),
            ("Plan", ["docs/plan.md", "notes/plan.md"]),
            ("docs/plan.md", ["docs/plan.md"]),
            ("ideas", ["notes/ideas.md"]),
            ("", [""]),
            ("none", []),
            ("../plan.md", []),
        ],
    )
    def test_are_the_paths_that_a_name_may_mean(
        self, workspace: Workspace, name: str, paths: list[str]
    ) -> None:
        assert candidates(workspace.disk, name) == paths
