"""What the environment may say, and what is said when it may not.

Spec: interfaces.md, Environment; issue "Liveness and ownership" 9.
"""

import re
import runpy
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.environment import one_line_when_wrong
from tests.services import PROJECT

SETTINGS = str(PROJECT / "config" / "settings.py")

WHOLE = ["", "abc", "1.5", "-1", "1e3", "9999999999999"]
NUMBERS = ["", "abc", "-0.1", "nan", "inf", "1e308"]
SWITCHES = ["", "maybe", "2"]
WRONG: dict[str, list[str]] = {
    "CARDWIRE_DEBUG": SWITCHES,
    "CARDWIRE_ALLOW_ANONYMOUS": SWITCHES,
    "CARDWIRE_DATA_DIR": ["/dev/null/x"],
    "CARDWIRE_ALLOWED_HOSTS": ["https://a.example", "a.example b.example"],
    "CARDWIRE_MAX_FRAME_BYTES": [*WHOLE, "1023"],
    "CARDWIRE_ARTIFACT_STORAGE": ["", "files", "a storage.Class", "a.b:C"],
    "CARDWIRE_ARTIFACT_STORAGE_OPTIONS": ["", "[]", '"SECRET"', '{"key":SECRET}'],
    "CARDWIRE_MAX_JSON_DEPTH": [*WHOLE, "7", "65"],
    "CARDWIRE_MAX_BLOCKS": [*WHOLE, "0", "10001"],
    "CARDWIRE_MAX_WAITING_FRAMES": [*WHOLE, "0", "10001"],
    "CARDWIRE_LOCAL_PATHS": ["tmp", "/tmp,tmp", "/tmp:../x", "~/files"],  # noqa: S108
    "CARDWIRE_QUEUE_LIMIT": WHOLE,
    "CARDWIRE_MAX_SESSIONS": WHOLE,
    "CARDWIRE_MAX_CONNECTIONS": WHOLE,
    "CARDWIRE_MESSAGES_PER_MINUTE": WHOLE,
    "CARDWIRE_CREDENTIAL_CHECK_S": NUMBERS,
    "CARDWIRE_IDLE_TIMEOUT_S": WHOLE,
    "CARDWIRE_STALLED_AFTER_S": NUMBERS,
    "CARDWIRE_WATCHDOG_TURN_S": NUMBERS,
    "CARDWIRE_WATCHDOG_THINKING_S": NUMBERS,
    "CARDWIRE_LEASE_S": [*NUMBERS, "0.5"],
    "CARDWIRE_STOP_GRACE_S": [*NUMBERS, "61"],
    "CARDWIRE_WAIT_TTL_DAYS": NUMBERS,
    "CARDWIRE_SWEEP_INTERVAL_S": NUMBERS,
    "CARDWIRE_EVENT_RETENTION_DAYS": NUMBERS,
    "CARDWIRE_TICK_INTERVAL_MS": WHOLE,
    "DATABASE_URL": [
        "nonsense",
        "foo://ann:SECRET@host/name",
        "mysql://ann:SECRET@host/name",
    ],
    "REDIS_URL": ["http://:SECRET@host"],
}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in WRONG:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CARDWIRE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("CARDWIRE_DEBUG", "1")


def read() -> dict[str, Any]:
    return runpy.run_path(SETTINGS)


class TestWrongValue:
    @pytest.mark.parametrize(
        ("name", "value"),
        [(name, value) for name, values in WRONG.items() for value in values],
    )
    def test_is_told_in_one_line(
        self, name: str, value: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It names the variable and what is allowed, and no password."""
        monkeypatch.setenv(name, value)

        with pytest.raises(SystemExit) as end, one_line_when_wrong():
            read()

        line = str(end.value)
        assert re.match(rf"cardwire: {name}\b.* is wrong", line)
        assert "; allowed: " in line
        assert "\n" not in line
        assert "SECRET" not in line
        assert end.value.__suppress_context__

    def test_is_none_of_another_kind(self) -> None:
        """Other faults keep their traceback: they are ours."""
        with pytest.raises(ZeroDivisionError), one_line_when_wrong():
            raise ZeroDivisionError

    def test_may_be_told_in_several_lines(self) -> None:
        with (
            pytest.raises(SystemExit, match="cardwire: one two"),
            one_line_when_wrong(),
        ):
            raise ImproperlyConfigured("one\n  two")


class TestRightValue:
    def test_is_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given = {
            "CARDWIRE_MAX_JSON_DEPTH": "8",
            "CARDWIRE_MAX_BLOCKS": "1",
            "CARDWIRE_MAX_WAITING_FRAMES": "10000",
            "CARDWIRE_STOP_GRACE_S": "0.5",
            "CARDWIRE_ALLOWED_HOSTS": "a.example, b.example,",
        }
        for name, value in given.items():
            monkeypatch.setenv(name, value)

        settings = read()

        assert settings["CARDWIRE_MAX_JSON_DEPTH"] == 8
        assert settings["CARDWIRE_MAX_BLOCKS"] == 1
        assert settings["CARDWIRE_MAX_WAITING_FRAMES"] == 10_000
        assert settings["CARDWIRE_STOP_GRACE_S"] == 0.5
        assert settings["ALLOWED_HOSTS"] == ["a.example", "b.example"]

    def test_need_not_be_given(self) -> None:
        settings = read()

        assert settings["CARDWIRE_MAX_JSON_DEPTH"] == 64
        assert settings["CARDWIRE_MAX_BLOCKS"] == 256
        assert settings["CARDWIRE_MAX_WAITING_FRAMES"] == 256
        assert settings["REDIS_URL"] == ""


class TestLocalPaths:
    """Spec: Ruling E22; interfaces.md, Environment."""

    def test_are_workspace_and_temp_directory_in_development(
        self, tmp_path: Path
    ) -> None:
        paths = read()["CARDWIRE_LOCAL_PATHS"]

        assert paths == (tmp_path / "workspace", Path(gettempdir()))

    def test_are_none_otherwise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CARDWIRE_DEBUG", "0")
        monkeypatch.setenv("CARDWIRE_SECRET_KEY", "k" * 50)
        monkeypatch.setenv("CARDWIRE_ALLOWED_HOSTS", "a.example")

        assert read()["CARDWIRE_LOCAL_PATHS"] == ()

    @pytest.mark.parametrize(
        ("given", "paths"),
        [
            ("", ()),
            (" , ", ()),
            ("/a", ("/a",)),
            ("/a:/b c", ("/a", "/b c")),
            (" /a, /b ,", ("/a", "/b")),
        ],
    )
    def test_are_those_that_are_given(
        self, given: str, paths: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CARDWIRE_LOCAL_PATHS", given)

        assert read()["CARDWIRE_LOCAL_PATHS"] == tuple(map(Path, paths))


class TestEverySetting:
    def test_is_in_the_documents_table(self) -> None:
        text = (PROJECT / "docs" / "operations.md").read_text()
        rows = set(re.findall(r"^\| `([A-Z_]+)(?:<KIND>_S)?` \|", text, re.MULTILINE))
        read = re.findall(r'"((?:CARDWIRE|DATABASE|REDIS)_[A-Z_]+)', source())

        assert set(read) == rows

    def test_is_read_by_what_says_what_is_allowed(self) -> None:
        """Unless any text will do, or somebody else looks at it."""
        as_they_are = re.findall(r'env\.\w+\(\s*"(\w+)"', source())

        assert set(as_they_are) == {"CARDWIRE_ENGINE", "CARDWIRE_SECRET_KEY"}


def source() -> str:
    return Path(SETTINGS).read_text()


class TestLog:
    def test_is_not_filled_by_rings_that_a_killed_worker_misses(self) -> None:
        """Its place in the channel layer outlives it by hours."""
        said = read()["LOGGING"]

        assert said["root"]["level"] == "INFO"
        assert said["loggers"]["channels_redis"]["level"] == "WARNING"
