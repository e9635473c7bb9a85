"""The first files of a workspace."""

import os
from pathlib import Path
from threading import Thread

import pytest

from cards.engines.workspace.drafts import fill_once, replace_file
from cards.engines.workspace.examples import example_files


class TestFillOnce:
    def test_puts_the_examples_into_a_new_workspace(self, tmp_path: Path) -> None:
        root = tmp_path / "data" / "workspace"

        fill_once(root, example_files())

        found = {
            str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()
        }
        assert found == set(example_files())

    def test_leaves_an_existing_workspace_alone(self, tmp_path: Path) -> None:
        fill_once(tmp_path, example_files())

        assert list(tmp_path.iterdir()) == []

    def test_fills_it_once_when_many_begin_at_once(self, tmp_path: Path) -> None:
        root = tmp_path / "workspace"
        threads = [
            Thread(target=fill_once, args=(root, example_files())) for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [path.name for path in tmp_path.iterdir()] == ["workspace"]
        assert (root / "README.md").is_file()


class TestReplaceFile:
    def test_leaves_the_file_as_it_was_when_the_disk_refuses(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "a.txt").write_text("old")
        folder = os.open(tmp_path, os.O_RDONLY)

        def refuse(file: int) -> None:
            raise OSError

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", refuse)
            with pytest.raises(OSError):  # noqa: PT011 - any will do
                replace_file(folder, "a.txt", b"new")
        os.close(folder)

        assert (tmp_path / "a.txt").read_text() == "old"
        assert os.listdir(tmp_path) == ["a.txt"]
