"""A wrong setting ends whatever is started, with one line and no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.services import PROJECT, free_port

MANAGE = ["manage.py", "check"]
OURS = ["manage.py", "cleanup_orphans"]
DAPHNE = ["-m", "daphne", "-p", "{port}", "config.asgi:application"]

#: Only a server makes an engine.
CASES = {
    "manage": (MANAGE, "CARDWIRE_MAX_WAITING_FRAMES", "many"),
    "ours": (OURS, "CARDWIRE_MAX_WAITING_FRAMES", "many"),
    "daphne": (DAPHNE, "CARDWIRE_MAX_WAITING_FRAMES", "many"),
    "storage-unknown": (DAPHNE, "CARDWIRE_ARTIFACT_STORAGE", "no.such.Storage"),
    "storage-unknown-ours": (OURS, "CARDWIRE_ARTIFACT_STORAGE", "no.such.Storage"),
    "storage-unknown-manage": (MANAGE, "CARDWIRE_ARTIFACT_STORAGE", "no.such.Storage"),
    "storage-none": (DAPHNE, "CARDWIRE_ARTIFACT_STORAGE", "builtins.dict"),
    "storage-base": (DAPHNE, "CARDWIRE_ARTIFACT_STORAGE", "cards.engine.Turn"),
    "engine-unknown": (DAPHNE, "CARDWIRE_ENGINE", "no.such.Engine"),
    "engine-none": (DAPHNE, "CARDWIRE_ENGINE", "cards.engine.Turn"),
}


@pytest.mark.parametrize(("command", "name", "value"), CASES.values(), ids=CASES)
def test_ends_with_one_line(
    command: list[str], name: str, value: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, *(part.format(port=free_port()) for part in command)],
        cwd=PROJECT,
        env=os.environ
        | {"CARDWIRE_DATA_DIR": str(tmp_path), "CARDWIRE_DEBUG": "1"}
        | {"DJANGO_SETTINGS_MODULE": "config.settings", name: value},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith(f"cardwire: {name}='{value}' ")
    assert "allowed: " in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize("command", [DAPHNE, OURS])
def test_ends_with_one_line_that_tells_no_secret(
    command: list[str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, *(part.format(port=free_port()) for part in command)],
        cwd=PROJECT,
        env=os.environ
        | {"CARDWIRE_DATA_DIR": str(tmp_path), "CARDWIRE_DEBUG": "1"}
        | {"DJANGO_SETTINGS_MODULE": "config.settings"}
        | {"CARDWIRE_ARTIFACT_STORAGE_OPTIONS": '{"no_such_option": "SECRET"}'},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith("cardwire: CARDWIRE_ARTIFACT_STORAGE=")
    assert "no_such_option" in done.stderr
    assert "SECRET" not in done.stderr
    assert done.stderr.count("\n") == 1
