"""Reading the environment: what a variable may hold, and one line when it does not.

Spec: interfaces.md, Environment.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured
from environs import Env, EnvError, validate

Value = TypeVar("Value")

env = Env()


def _read(
    name: str, allowed: str, parse: Callable[[], Value], *, is_secret: bool = False
) -> Value:
    try:
        return parse()
    except (EnvError, TypeError, ValueError) as error:
        # Without the value where it may hold a password.
        shown = name if is_secret else f"{name}={os.environ.get(name, '')!r}"
        raise ImproperlyConfigured(f"{shown} is wrong; allowed: {allowed}") from error


def whole_number(name: str, default: int, *, at_least: int, at_most: int) -> int:
    """Return a whole number within its bounds.

    Raises:
        ImproperlyConfigured: The variable holds something else.
    """
    value: int = _read(
        name,
        f"a whole number from {at_least} to {at_most}",
        lambda: env.int(name, default, validate=validate.Range(at_least, at_most)),
    )
    return value


def number(name: str, default: float, *, at_least: float, at_most: float) -> float:
    """Return a number within its bounds, fractions allowed.

    Raises:
        ImproperlyConfigured: The variable holds something else.
    """
    value: float = _read(
        name,
        f"a number from {at_least:g} to {at_most:.12g}, such as 1.5",
        lambda: env.float(name, default, validate=validate.Range(at_least, at_most)),
    )
    return value


def switch(name: str, default: bool) -> bool:
    """Return whether something is on.

    Raises:
        ImproperlyConfigured: The variable holds neither of both.
    """
    value: bool = _read(name, "1 or 0", lambda: env.bool(name, default))
    return value


def host_names(name: str) -> list[str]:
    """Return the names in a comma-separated list; empty when there are none.

    Raises:
        ImproperlyConfigured: One of them is more than a name.
    """

    def parse() -> list[str]:
        hosts = [host.strip() for host in env.str(name, "").split(",")]
        if any("/" in host or len(host.split()) > 1 for host in hosts):
            raise ValueError
        return [host for host in hosts if host]

    return _read(name, "names of hosts with commas between, without https://", parse)


#: The databases that the event log can be written to.
DATABASE_BACKENDS = ("django.db.backends.sqlite3", "django.db.backends.postgresql")


def database(name: str, default: str, **options: Any) -> dict[str, Any]:
    """Return Django's settings of the database behind a URL.

    Raises:
        ImproperlyConfigured: There is no such URL, or it is of another database than
            SQLite or PostgreSQL.
    """
    allowed = "a URL such as postgres://user:password@host:5432/name"

    def parse() -> dict[str, Any]:
        settings: dict[str, Any] = env.dj_db_url(name, default, **options)
        return settings

    found = _read(name, allowed, parse, is_secret=True)
    if found.get("ENGINE") not in DATABASE_BACKENDS:
        raise ImproperlyConfigured(f"{name} is wrong; allowed: {allowed}")
    return found


#: Keeps artifacts as files of this machine.
FILE_SYSTEM_STORAGE = "django.core.files.storage.FileSystemStorage"


def artifact_storage(name: str, options_name: str, folder: Path) -> dict[str, Any]:
    """Return Django's settings of a storage; whether it works shows when it is used.

    Args:
        name: Of the variable with the path of its class.
        options_name: Of the variable with what it is made with.
        folder: Where files go unless an operator says otherwise; for nobody's eyes
            but the server's.

    Raises:
        ImproperlyConfigured: One of the variables holds something else.
    """

    def parse_path() -> str:
        path: str = env.str(name, FILE_SYSTEM_STORAGE)
        if not re.fullmatch(r"\w+(\.\w+)+", path):
            raise ValueError
        return path

    def parse_options() -> dict[str, Any]:
        options = json.loads(env.str(options_name, "{}"))
        if not isinstance(options, dict):
            raise TypeError
        return options

    path = _read(
        name, "the path of a class of storages, package.module.Class", parse_path
    )
    options = _read(
        options_name,
        'a JSON object such as {"location": "/srv/files"}',
        parse_options,
        is_secret=True,
    )
    if path == FILE_SYSTEM_STORAGE:
        options = {
            "location": str(folder),
            "file_permissions_mode": 0o600,
            "directory_permissions_mode": 0o700,
        } | options
    return {"BACKEND": path, "OPTIONS": options}


def redis_url(name: str) -> str:
    """Return the URL of a Redis server; "" for none.

    Raises:
        ImproperlyConfigured: It is the URL of something else.
    """

    def parse() -> str:
        url: str = env.str(name, "")
        if url and not url.startswith(("redis://", "rediss://", "unix://")):
            raise ValueError
        return url

    return _read(name, "a URL such as redis://host:6379", parse, is_secret=True)


def directory(name: str, default: Path) -> Path:
    """Return a directory, made if need be.

    Raises:
        ImproperlyConfigured: It cannot be made.
    """
    path: Path = env.path(name, default).resolve()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise ImproperlyConfigured(
            f"{name}={str(path)!r} is wrong ({error}); allowed: a directory that is"
            " there or may be made"
        ) from error
    return path


def directories(name: str, default: Sequence[Path]) -> tuple[Path, ...]:
    """Return directories, which need not be there; empty when there are none.

    Raises:
        ImproperlyConfigured: One of them depends on where the server was started.
    """

    def parse() -> tuple[Path, ...]:
        given: str | None = env.str(name, None)
        if given is None:
            return tuple(default)
        paths = [Path(each.strip()) for each in re.split("[,:]", given) if each.strip()]
        if not all(path.is_absolute() for path in paths):
            raise ValueError
        return tuple(paths)

    return _read(
        name, "absolute paths of directories, with commas or colons between", parse
    )


@contextmanager
def one_line_when_wrong() -> Iterator[None]:
    """End the process with the reason alone when a setting is wrong.

    An operator who mistyped a number has no use for a traceback.
    """
    try:
        yield
    except ImproperlyConfigured as error:
        raise SystemExit(f"cardwire: {' '.join(str(error).split())}") from None
