"""From what the disk says to what the user reads."""

import errno

import pytest

from cards.engines.workspace.failures import WorkspaceFailure, disk_failures


class TestDiskFailures:
    @pytest.mark.parametrize(
        ("number", "error_type", "code"),
        [
            (errno.ENOENT, "invalid_input", "not_found"),
            (errno.ENOTDIR, "invalid_input", "not_found"),
            (errno.ELOOP, "permission_denied", "symbolic_link"),
            (errno.EACCES, "permission_denied", "not_permitted"),
            (errno.EROFS, "permission_denied", "not_permitted"),
            (errno.ENOSPC, "dependency_fail", "enospc"),
            (errno.EIO, "dependency_fail", "eio"),
        ],
    )
    def test_names_each_kind_of_failure(
        self, number: int, error_type: str, code: str
    ) -> None:
        with pytest.raises(WorkspaceFailure) as caught, disk_failures("a.txt"):
            raise OSError(number, "the system's words")

        assert caught.value.error_type == error_type
        assert caught.value.reason_code == code
        assert "`a.txt`" in caught.value.sentence
