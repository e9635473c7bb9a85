"""Files of the workspace: confined, bounded, all or nothing."""

import errno
import os
from pathlib import Path
from threading import Thread

import pytest

from cards.engines.workspace.disk import Disk, EntryKind, NotText
from cards.engines.workspace.failures import WorkspaceFailure
from cards.engines.workspace.limits import Limits


@pytest.fixture(name="disk")
def _disk(tmp_path: Path) -> Disk:
    root = tmp_path / "workspace"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "sub" / "b.txt").write_text("three")
    (tmp_path / "secret.txt").write_text("secret")
    return Disk(root, Limits())


class TestConfinement:
    @pytest.mark.parametrize(
        "name", ["../secret.txt", "/etc/passwd", "sub/../../secret.txt", ".."]
    )
    def test_refuses_names_that_lead_outside(self, disk: Disk, name: str) -> None:
        with pytest.raises(WorkspaceFailure) as caught:
            disk.read_text(name, 100)

        assert caught.value.error_type == "permission_denied"
        assert caught.value.reason_code == "outside_workspace"

    @pytest.mark.parametrize("name", ["link.txt", "way/secret.txt"])
    def test_follows_no_link(self, disk: Disk, name: str) -> None:
        (disk.root / "link.txt").symlink_to(disk.root.parent / "secret.txt")
        (disk.root / "way").symlink_to(disk.root.parent)

        with pytest.raises(WorkspaceFailure) as caught:
            disk.read_text(name, 100)

        assert caught.value.reason_code == "symbolic_link"

    def test_writes_through_no_link(self, disk: Disk) -> None:
        (disk.root / "link.txt").symlink_to(disk.root.parent / "secret.txt")
        (disk.root / "way").symlink_to(disk.root.parent)

        for name in ("link.txt", "way/secret.txt", "way/new/x.txt"):
            with pytest.raises(WorkspaceFailure):
                disk.write_text(name, "x", replaces=disk.entry("a.txt"))

        assert (disk.root.parent / "secret.txt").read_text() == "secret"

    def test_walks_around_links_and_hidden_files(self, disk: Disk) -> None:
        (disk.root / "way").symlink_to(disk.root.parent)
        (disk.root / ".hidden").write_text("x")
        (disk.root / ".git").mkdir()
        (disk.root / ".git" / "config").write_text("x")

        walked = [entry.path for entry in disk.walk("").entries]

        assert walked == ["a.txt", "sub/b.txt"]

    def test_opens_no_pipe(self, disk: Disk) -> None:
        os.mkfifo(disk.root / "pipe")

        with pytest.raises(WorkspaceFailure) as caught:
            disk.read_text("pipe", 100)

        assert caught.value.reason_code == "not_a_file"

    @pytest.mark.parametrize("name", ["a\0b", "x" * 300, "d/" * 600, "\ud800", "a\nb"])
    def test_refuses_names_no_file_can_have(self, disk: Disk, name: str) -> None:
        with pytest.raises(WorkspaceFailure) as caught:
            disk.write_text(name, "x", replaces=None)

        assert caught.value.reason_code == "bad_name"

    def test_says_when_the_system_lets_nobody_look(
        self, disk: Disk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(errno.EACCES, "no")

        monkeypatch.setattr(os, "open", refuse)

        with pytest.raises(WorkspaceFailure) as caught:
            disk.entry("sub/b.txt")

        assert caught.value.reason_code == "not_permitted"


class TestReadText:
    def test_gives_the_whole_text(self, disk: Disk) -> None:
        file = disk.read_text("a.txt", 100)

        assert (file.text, file.size_bytes, file.is_cut) == ("one\ntwo\n", 8, False)

    def test_says_when_the_end_is_cut(self, disk: Disk) -> None:
        (disk.root / "long.txt").write_text("é" * 10)

        file = disk.read_text("long.txt", 5)

        assert (file.text, file.size_bytes, file.is_cut) == ("éé", 20, True)

    @pytest.mark.parametrize("content", [b"\x00\x01", b"caf\xe9"])
    def test_refuses_what_is_not_text(self, disk: Disk, content: bytes) -> None:
        (disk.root / "x.bin").write_bytes(content)

        with pytest.raises(NotText):
            disk.read_text("x.bin", 100)

    @pytest.mark.parametrize("name", ["none.txt", "a.txt/x", "none/x"])
    def test_says_when_there_is_no_such_file(self, disk: Disk, name: str) -> None:
        with pytest.raises(WorkspaceFailure) as caught:
            disk.read_text(name, 100)

        assert caught.value.reason_code == "not_found"


class TestEntries:
    def test_puts_folders_first(self, disk: Disk) -> None:
        entries = disk.entries("").entries

        assert [(entry.path, entry.kind) for entry in entries] == [
            ("sub", EntryKind.FOLDER),
            ("a.txt", EntryKind.FILE),
        ]

    def test_says_when_a_cap_left_some_out(self, disk: Disk) -> None:
        bounded = Disk(disk.root, Limits(list_entries=1, walk_files=1))

        assert bounded.entries("").is_cut
        assert bounded.walk("").is_cut
        assert not disk.entries("").is_cut
        assert not disk.walk("").is_cut


class TestWriteText:
    def test_makes_the_file_and_its_folders(self, disk: Disk) -> None:
        entry = disk.write_text("new/deep/x.txt", "hello", replaces=None)

        assert (disk.root / "new/deep/x.txt").read_text() == "hello\n"
        assert (entry.path, entry.size_bytes) == ("new/deep/x.txt", 6)

    def test_leaves_an_existing_file_alone(self, disk: Disk) -> None:
        with pytest.raises(WorkspaceFailure) as caught:
            disk.write_text("a.txt", "new", replaces=None)

        assert caught.value.reason_code == "file_changed"
        assert (disk.root / "a.txt").read_text() == "one\ntwo\n"

    def test_replaces_what_may_be_lost(self, disk: Disk) -> None:
        disk.write_text("a.txt", "new", replaces=disk.entry("a.txt"))

        assert (disk.root / "a.txt").read_text() == "new\n"

    def test_replaces_nothing_else(self, disk: Disk) -> None:
        seen = disk.entry("a.txt")
        (disk.root / "a.txt").write_text("one\nTWO\n")

        with pytest.raises(WorkspaceFailure) as caught:
            disk.write_text("a.txt", "new", replaces=seen)

        assert caught.value.reason_code == "file_changed"
        assert (disk.root / "a.txt").read_text() == "one\nTWO\n"

    def test_makes_anew_what_is_gone(self, disk: Disk) -> None:
        seen = disk.entry("a.txt")
        (disk.root / "a.txt").unlink()

        disk.write_text("a.txt", "new", replaces=seen)

        assert (disk.root / "a.txt").read_text() == "new\n"

    def test_leaves_no_draft_behind(self, disk: Disk) -> None:
        disk.write_text("a.txt", "new", replaces=disk.entry("a.txt"))
        with pytest.raises(WorkspaceFailure):
            disk.write_text("sub", "new", replaces=disk.entry("sub"))

        assert sorted(os.listdir(disk.root)) == ["a.txt", "sub"]

    def test_refuses_more_than_its_cap(self, disk: Disk) -> None:
        bounded = Disk(disk.root, Limits(write_bytes=10))

        with pytest.raises(WorkspaceFailure):
            bounded.write_text("x.txt", "x" * 10, replaces=None)
        with pytest.raises(WorkspaceFailure):
            bounded.append_text("a.txt", "xx")

        assert (disk.root / "a.txt").read_text() == "one\ntwo\n"


class TestReplacedBy:
    def test_is_the_file_that_would_be_lost(self, disk: Disk) -> None:
        entry = disk.replaced_by("./a.txt", "new")

        assert entry is not None
        assert (entry.path, entry.size_bytes) == ("a.txt", 8)
        assert disk.replaced_by("none/x.txt", "new") is None

    @pytest.mark.parametrize(
        ("name", "text", "code"),
        [
            ("sub", "x", "not_a_file"),
            (".", "x", "not_a_file"),
            ("a.txt", "x" * 2_000_000, "too_large"),
            ("../secret.txt", "x", "outside_workspace"),
        ],
    )
    def test_refuses_what_no_write_would_do(
        self, disk: Disk, name: str, text: str, code: str
    ) -> None:
        with pytest.raises(WorkspaceFailure) as caught:
            disk.replaced_by(name, text)

        assert caught.value.reason_code == code


class TestAppendText:
    def test_begins_a_line_of_its_own(self, disk: Disk) -> None:
        _, is_new = disk.append_text("sub/b.txt", "four")

        assert not is_new
        assert (disk.root / "sub/b.txt").read_text() == "three\nfour\n"

    def test_makes_a_missing_file(self, disk: Disk) -> None:
        _, is_new = disk.append_text("c.txt", "first")

        assert is_new
        assert (disk.root / "c.txt").read_text() == "first\n"

    def test_loses_nothing_when_many_append_at_once(self, disk: Disk) -> None:
        others = [Disk(disk.root, Limits()) for _ in range(4)]
        threads = [
            Thread(target=_append_each, args=(other, f"{number}-", 10))
            for number, other in enumerate(others)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len((disk.root / "many.txt").read_text().splitlines()) == 40


def _append_each(disk: Disk, prefix: str, count: int) -> None:
    for number in range(count):
        disk.append_text("many.txt", f"{prefix}{number}")
