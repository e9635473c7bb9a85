"""The failures the built-in engine expects and tells in plain words."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from cards.engine import EngineError


class WorkspaceFailure(EngineError):
    """Work that could not be done, for a reason the user can read.

    Attributes:
        error_type: ErrorInfo type of the failed card.
        sentence: What went wrong, as one or more sentences of Markdown.
        reason_code: Short snake_case word for programs.
    """

    def __init__(self, error_type: str, sentence: str, *, code: str) -> None:
        super().__init__(error_type, sentence, code=code, user_message=sentence)
        self.error_type = error_type
        self.sentence = sentence
        self.reason_code = code


def invalid(sentence: str, *, code: str) -> WorkspaceFailure:
    """Return the failure of a request that cannot be met as it was put."""
    return WorkspaceFailure("invalid_input", sentence, code=code)


def denied(sentence: str, *, code: str) -> WorkspaceFailure:
    """Return the failure of a request that the engine must refuse."""
    return WorkspaceFailure("permission_denied", sentence, code=code)


_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


@contextmanager
def disk_failures(name: str) -> Iterator[None]:
    """Turn an `OSError` about `name` into a `WorkspaceFailure`.

    Raises:
        WorkspaceFailure: The block raised an `OSError`: `invalid_input` when nothing
            has that name, `permission_denied` when the system forbids it or the name
            is a symbolic link, `dependency_fail` for anything else (disk full, I/O).
    """
    try:
        yield
    except OSError as error:
        number = error.errno or 0
        if number in _MISSING:
            sentence = f"There is no `{name}` in the workspace."
            raise invalid(sentence, code="not_found") from error
        if number == errno.ELOOP:
            raise link_refused(name) from error
        if number in _FORBIDDEN:
            sentence = f"The system does not permit that on `{name}`."
            raise denied(sentence, code="not_permitted") from error
        sentence = f"The disk failed on `{name}`: {error.strerror or 'I/O error'}."
        code = errno.errorcode.get(number, "disk_error").lower()
        raise WorkspaceFailure("dependency_fail", sentence, code=code) from error


def link_refused(name: str) -> WorkspaceFailure:
    """Return the failure of a name that leads through a symbolic link."""
    return denied(
        f"`{name}` leads through a symbolic link, and those are not followed.",
        code="symbolic_link",
    )


def changed(path: str) -> WorkspaceFailure:
    """Return the failure of a write to a file that is not what its user was shown."""
    return denied(
        f"`{path}` was changed meanwhile, so I left it as it is. Say it once more if "
        "you still want to replace it.",
        code="file_changed",
    )
