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
    "engine-relative": (DAPHNE, "CARDWIRE_ENGINE", "..engines.Engine"),
    "engine-abstract": (DAPHNE, "CARDWIRE_ENGINE", "cards.engine.Engine"),
}

#: Modules with an engine that cannot be had, and what its author must be told.
BROKEN_ENGINES = {
    "syntax": ("def run(:\n", "SyntaxError: invalid syntax"),
    "loading": ("KEY = {}['API_KEY']\n", "KeyError: 'API_KEY' (broken_engine.py:1)"),
    "argument": (
        "def __init__(self, key): pass",
        "missing 1 required positional argument: 'key'",
    ),
    "making": (
        "def __init__(self): raise RuntimeError('no key')",
        "RuntimeError: no key (broken_engine.py:4)",
    ),
    "model": ("model = 5", "a model that is no text: 5"),
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


@pytest.mark.parametrize(
    ("code", "reason"), BROKEN_ENGINES.values(), ids=BROKEN_ENGINES
)
def test_an_engine_that_cannot_be_had_ends_with_one_line(
    code: str, reason: str, tmp_path: Path
) -> None:
    """Operators read it too; its author is told the place."""
    if "__init__" in code or code.startswith("model"):
        code = (
            "from cards.engine import Engine\n\n"
            f"class Broken(Engine):\n    {code}\n"
            "    async def run(self, turn): pass\n"
        )
    (tmp_path / "broken_engine.py").write_text(code)
    done = subprocess.run(
        [sys.executable, *(part.format(port=free_port()) for part in DAPHNE)],
        cwd=PROJECT,
        env=os.environ
        | {"CARDWIRE_DATA_DIR": str(tmp_path / "data"), "CARDWIRE_DEBUG": "1"}
        | {"DJANGO_SETTINGS_MODULE": "config.settings", "PYTHONPATH": str(tmp_path)}
        | {"CARDWIRE_ENGINE": "broken_engine.Broken"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith("cardwire: CARDWIRE_ENGINE='broken_engine.Broken' ")
    assert reason in done.stderr
    assert "allowed: " in done.stderr
    assert done.stderr.count("\n") == 1
