"""A turn that records: the author's API as documented, without a server behind it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import SimpleNamespace, TracebackType
from typing import NamedTuple, Self, cast

from cards.engine import (
    Answer,
    Continuation,
    EngineError,
    FileBlock,
    Permission,
    Turn,
)

_innermost: ContextVar["RecordedBlock | None"] = ContextVar("innermost", default=None)


class AskedPermission(NamedTuple):
    """What was asked for, as the engine put it."""

    tool_name: str
    tool_input: object
    message: str | None
    is_read_only: bool


@dataclass
class Recorder:
    """Every card of a turn, in order of opening, and what was done in which order."""

    cards: list["RecordedBlock"] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    title: str | None = None
    #: What was asked, and what is answered.
    questions: list[tuple[str, list[str]]] = field(default_factory=list)
    permissions: list[AskedPermission] = field(default_factory=list)
    answer_with: Answer = field(
        default_factory=lambda: Answer(approved=False, selected=(), custom_text="")
    )
    permit_with: Permission = field(
        default_factory=lambda: Permission(
            approved=True, scope="once", message="", remembered=False
        )
    )
    #: Called while a permission is waited for.
    on_asked: Callable[[], None] = lambda: None
    #: Called after every chunk of text, to interrupt at a known moment.
    on_text: Callable[[str], None] = lambda chunk: None
    #: Names and bytes of what was kept, in order.
    kept: list[tuple[str, bytes]] = field(default_factory=list)
    #: Raised instead of keeping anything.
    refusal: EngineError | None = None

    def of_kind(self, kind: str) -> list["RecordedBlock"]:
        return [card for card in self.cards if card.kind == kind]

    @property
    def tool(self) -> "RecordedBlock":
        """The only tool card of the main agent."""
        (tool,) = (card for card in self.of_kind("tool") if card.within is None)
        return tool

    @property
    def answer(self) -> str:
        """Text of the last message of the main agent."""
        return [card for card in self.of_kind("message") if card.within is None][
            -1
        ].said


#: Runs one text against a workspace and returns what was recorded.
Ask = Callable[[str], Awaitable[Recorder]]

#: Runs one text on the engine, with more of the turn, and returns what was recorded.
Run = Callable[..., Awaitable[Recorder]]


class RecordedScope:
    """The methods that a turn and an agent share."""

    async def ask(self, question: str, *, options: Sequence[str]) -> Answer:
        self.recorder.questions.append((question, list(options)))
        return self.recorder.answer_with

    async def permission(
        self,
        tool_name: str,
        tool_input: object,
        *,
        message: str | None = None,
        is_read_only: bool = False,
    ) -> Permission:
        self.recorder.permissions.append(
            AskedPermission(tool_name, tool_input, message, is_read_only)
        )
        self.recorder.on_asked()
        return self.recorder.permit_with

    def __init__(self, recorder: Recorder, agent: "RecordedBlock | None") -> None:
        self.recorder = recorder
        self._agent = agent
        self._last_message: RecordedBlock | None = None

    async def artifact(
        self, name: str, content: bytes, *, description: str | None = None
    ) -> SimpleNamespace:
        if self.recorder.refusal is not None:
            raise self.recorder.refusal
        self.recorder.kept.append((name, content))
        version = sum(kept == name for kept, _ in self.recorder.kept)
        return SimpleNamespace(name=name, version=version)

    def message(self) -> "RecordedMessage":
        self._last_message = RecordedMessage(self.recorder, "message", self._agent)
        return self._last_message

    def tool(
        self,
        name: str,
        *,
        input: object = None,  # noqa: A002 - the wire's word
        intent: str | None = None,
    ) -> "RecordedTool":
        tool = RecordedTool(self.recorder, "tool", self._agent, self._last_message)
        tool.name, tool.input, tool.intent = name, input, intent
        return tool

    def agent(
        self,
        name: str,
        *,
        task_prompt: str | None = None,
        subagent_type: str | None = None,
    ) -> "RecordedAgent":
        agent = RecordedAgent(self.recorder)
        agent.name, agent.intent = name, task_prompt
        return agent


class RecordedBlock:
    """A card; `status` is "open", "ok", "failed" or "cancelled"."""

    def __init__(
        self,
        recorder: Recorder,
        kind: str,
        agent: "RecordedBlock | None",
        parent: "RecordedBlock | None" = None,
    ) -> None:
        self.recorder = recorder
        self.kind = kind
        self.within = agent
        self.parent = parent
        self.name = ""
        self.input: object = None
        self.intent: str | None = None
        self.status = "unopened"
        self.error: tuple[str, str, str | None] | None = None
        self.chunks: list[str] = []
        self.input_pieces: list[str] = []
        self.ticks: list[dict[str, object]] = []
        self.phases: list[object] = []
        self.output: object = None
        self.shown_as: dict[str, object] = {}
        self.summary: str | None = None
        self._token: Token[RecordedBlock | None] | None = None

    @property
    def said(self) -> str:
        return "".join(self.chunks)

    @property
    def label(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind

    async def __aenter__(self) -> Self:
        self.status = "open"
        self.parent = self.parent or _innermost.get()
        self._token = _innermost.set(self)
        self.recorder.cards.append(self)
        self.recorder.steps.append(f"open {self.label}")
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._token is not None
        _innermost.reset(self._token)
        if isinstance(exception, asyncio.CancelledError):
            self.status = "cancelled"
        elif exception is not None:
            self.status = "failed"
            assert isinstance(exception, EngineError), exception
        else:
            self.status = "failed" if self.error else "ok"
        self.recorder.steps.append(f"{self.status} {self.label}")


class RecordedMessage(RecordedBlock):
    async def text(self, chunk: str) -> None:
        assert self.status == "open"
        self.chunks.append(chunk)
        self.recorder.on_text(chunk)
        await asyncio.sleep(0)

    async def tool_input(self, partial_json: str, index: int = 0) -> None:
        assert self.status == "open"
        self.input_pieces.append(partial_json)


class RecordedTool(RecordedBlock):
    async def set(self, **fields: object) -> None:
        assert self.status == "open"
        self.phases.append(fields["phase"])

    async def heartbeat(self, stage: str | None = None) -> None:
        self._tick({"kind": "heartbeat", "stage": stage})

    async def progress(self, stage: str | None = None, **fields: object) -> None:
        self._tick({"kind": "progress", "stage": stage, **fields})
        await asyncio.sleep(0)

    def _tick(self, tick: dict[str, object]) -> None:
        assert self.status == "open"
        self.ticks.append(tick)

    def ticks_of(self, kind: str) -> list[dict[str, object]]:
        return [tick for tick in self.ticks if tick["kind"] == kind]

    def result(self, output: object, **shown_as: object) -> None:
        self.output = output
        self.shown_as = shown_as

    def fail(
        self,
        type: str,  # noqa: A002 - the wire's word
        message: str,
        *,
        code: str | None = None,
    ) -> None:
        self.error = (type, message, code)


class RecordedAgent(RecordedBlock, RecordedScope):
    def __init__(self, recorder: Recorder) -> None:
        RecordedBlock.__init__(self, recorder, "agent", None)
        RecordedScope.__init__(self, recorder, self)

    def finish(
        self, output_summary: str | None = None, num_turns: int | None = None
    ) -> None:
        self.summary = output_summary


class RecordedTurn(RecordedScope):
    """What the engine reads of a turn."""

    def __init__(
        self,
        recorder: Recorder,
        text: str,
        turn_no: int,
        continuation: Continuation | None,
        session_id: str,
        files: Sequence[FileBlock],
    ) -> None:
        super().__init__(recorder, None)
        self.input = SimpleNamespace(text=text, blocks=files, continuation=continuation)
        self.turn_no = turn_no
        self.session_id = session_id

    async def set_title(self, text: str) -> None:
        self.recorder.title = text


def recorded_turn(
    recorder: Recorder,
    text: str,
    *,
    turn_no: int = 1,
    continuation: Continuation | None = None,
    session_id: str = "sess_1",
    files: Sequence[FileBlock] = (),
) -> Turn:
    """Return a turn that writes into `recorder`."""
    turn = RecordedTurn(recorder, text, turn_no, continuation, session_id, files)
    return cast("Turn", turn)
