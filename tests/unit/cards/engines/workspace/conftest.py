"""A fresh workspace with the examples, and an engine that works on it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cards.engines.workspace.drafts import fill_once
from cards.engines.workspace.engine import HANDLERS, WorkspaceEngine
from cards.engines.workspace.examples import example_files
from cards.engines.workspace.files import Workspace
from cards.engines.workspace.phrases import parse
from tests.unit.cards.engines.workspace.recording import (
    Ask,
    Recorder,
    Run,
    recorded_turn,
)


@pytest.fixture(name="workspace")
def _workspace(tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path / "workspace")
    fill_once(workspace.disk.root, example_files())
    return workspace


@pytest.fixture(name="ask")
def _ask(workspace: Workspace) -> Ask:
    async def ask(text: str) -> Recorder:
        recorder = Recorder()
        command = parse(text)
        turn = recorded_turn(recorder, text)
        await HANDLERS[type(command)](turn, workspace, command)
        return recorder

    return ask


@pytest.fixture(name="engine")
def _engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkspaceEngine:
    monkeypatch.setattr(
        "cards.engines.workspace.engine.workspace_root", lambda: tmp_path / "workspace"
    )
    return WorkspaceEngine()


@pytest.fixture(name="run")
def _run(engine: WorkspaceEngine) -> Run:
    async def run(text: str, recorder: Recorder | None = None, **of_turn: Any) -> Any:
        recorder = recorder or Recorder()
        await engine.run(recorded_turn(recorder, text, turn_no=2, **of_turn))
        return recorder

    return run


@pytest.fixture(name="started")
def _started(monkeypatch: pytest.MonkeyPatch) -> asyncio.Queue[int]:
    """Return a queue that holds the pid of every program that was started."""
    pids: asyncio.Queue[int] = asyncio.Queue()
    create = asyncio.create_subprocess_exec

    async def recording(*args: str, **kwargs: Any) -> asyncio.subprocess.Process:
        process = await create(*args, **kwargs)
        pids.put_nowait(process.pid)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", recording)
    return pids
