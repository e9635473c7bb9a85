"""Which files of the server a message may name, on a real file system."""

import os
import socket
from pathlib import Path

import pytest

from cards.local_paths import LocalPaths, PathRefused


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "allowed"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"a")
    (folder / "sub" / "b.txt").write_bytes(b"b")
    (tmp_path / "secret").write_bytes(b"secret")
    return folder


def read(paths: LocalPaths, path: object) -> bytes:
    with paths.open(str(path)) as file:
        return file.read()


def refusal_of(paths: LocalPaths, path: object) -> PathRefused:
    with pytest.raises(PathRefused) as caught:
        read(paths, path)
    return caught.value


class TestOpen:
    """Spec: Ruling E22; FR-105."""

    def test_reads_files_below_an_allowed_folder(self, folder: Path) -> None:
        paths = LocalPaths([folder.parent / "other", folder])

        assert read(paths, folder / "a.txt") == b"a"
        assert read(paths, f"{folder}/sub/../sub//./b.txt") == b"b"

    def test_follows_links_that_stay_inside(self, folder: Path) -> None:
        (folder / "link").symlink_to("sub/b.txt")
        (folder / "way").symlink_to(folder / "sub")

        assert read(LocalPaths([folder]), folder / "link") == b"b"
        assert read(LocalPaths([folder]), folder / "way" / "b.txt") == b"b"

    def test_takes_an_allowed_folder_that_is_a_link(self, folder: Path) -> None:
        link = folder.parent / "link"
        link.symlink_to(folder)

        assert read(LocalPaths([link]), link / "a.txt") == b"a"
        assert read(LocalPaths([link]), folder / "a.txt") == b"a"
        assert read(LocalPaths([folder]), link / "a.txt") == b"a"

    @pytest.mark.parametrize(
        "path",
        [
            "/etc/passwd",
            "/etc/there-is-none",
            "{}/../secret",
            "{}/sub/../../secret",
            "{}/out",
            "{}/far/secret",
            "{}/gone",
            "{}",
            "{}/",
            "{}/..",
            "{}x/a.txt",
            "/",
            "",
            "a.txt",
            "~/a.txt",
            "../secret",
            "file://{}/a.txt",
            "/proc/self/environ",
        ],
    )
    def test_refuses_alike_what_lies_elsewhere(self, folder: Path, path: str) -> None:
        """Nobody learns whether there is a file."""
        (folder / "out").symlink_to(folder.parent / "secret")
        (folder / "far").symlink_to(folder.parent)
        (folder / "gone").symlink_to("/etc/there-is-none")

        error = refusal_of(LocalPaths([folder]), path.format(folder))

        assert error.code == "PATH_NOT_ALLOWED"

    def test_refuses_everything_without_folders(self, folder: Path) -> None:
        assert refusal_of(LocalPaths([]), folder / "a.txt").code == "PATH_NOT_ALLOWED"

    @pytest.mark.parametrize(
        "path",
        ["none", "sub", "pipe", "socket", "loop", "a.txt/x", "n" * 300, "\0"],
    )
    def test_refuses_what_is_no_regular_file(
        self, folder: Path, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A pipe without a writer must not hold anybody up."""
        os.mkfifo(folder / "pipe")
        (folder / "loop").symlink_to("loop")
        # Names of sockets are short.
        monkeypatch.chdir(folder)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("socket")

            error = refusal_of(LocalPaths([folder]), f"{folder}/{path}")

        assert error.code == "PATH_NOT_READABLE"

    def test_refuses_devices(self) -> None:
        for path in ("/dev/zero", "/dev/null", "/dev/tty"):
            error = refusal_of(LocalPaths([Path("/dev")]), path)

            assert error.code == "PATH_NOT_READABLE"

    def test_refuses_a_link_that_is_put_there_meanwhile(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        realpath = os.path.realpath

        def swap(path: str) -> str:
            real = realpath(path)
            if path == f"{folder}/sub/b.txt":
                (folder / "sub" / "b.txt").unlink()
                (folder / "sub" / "b.txt").symlink_to(folder.parent / "secret")
            return real

        monkeypatch.setattr("cards.local_paths.os.path.realpath", swap)

        error = refusal_of(LocalPaths([folder]), folder / "sub" / "b.txt")

        assert error.code == "PATH_NOT_READABLE"


class TestClosedFolder:
    def test_is_not_read_although_one_around_it_is_allowed(self, folder: Path) -> None:
        """The data dir of a development server may lie in the temp directory."""
        paths = LocalPaths([folder], closed=[folder / "sub"])

        assert read(paths, folder / "a.txt") == b"a"
        assert refusal_of(paths, folder / "sub" / "b.txt").code == "PATH_NOT_ALLOWED"

    def test_may_have_an_allowed_one_within(self, folder: Path) -> None:
        paths = LocalPaths([folder / "sub"], closed=[folder])

        assert read(paths, folder / "sub" / "b.txt") == b"b"
        assert refusal_of(paths, folder / "a.txt").code == "PATH_NOT_ALLOWED"

    def test_wins_when_it_is_allowed_as_well(self, folder: Path) -> None:
        paths = LocalPaths([folder], closed=[folder])

        assert refusal_of(paths, folder / "a.txt").code == "PATH_NOT_ALLOWED"
