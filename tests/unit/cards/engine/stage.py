"""A turn on a real builder and tree, with its log in memory and a still clock."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar

import jsonschema
import msgspec

from cards.builder import Builder
from cards.clock import Entropy
from cards.engine import (
    EngineError,
    HistoryEntry,
    PromptUnavailable,
    Turn,
    TurnInput,
)
from cards.engine.artifact_desk import MadeFile
from cards.engine.block import Context
from cards.engine.desk import ClientCall, Prompt
from cards.log.committer import Committer
from cards.log.store import RowChange
from cards.log.writer import SessionWriter
from cards.ports import Settlement, StoredArtifact
from cards.protocol.card_tree import CardTree
from cards.protocol.json_form import JSONValue
from cards.protocol.kinds import CardKind, CloseStatus
from cards.protocol.mentions import KnownArtifacts
from cards.protocol.payloads import TurnPayload, UserInput
from cards.protocol.wire_schema import wire_schema
from tests.clock import FakeClock
from tests.fakes import FakeStore

R = TypeVar("R")

Frame = dict[str, Any]

_validator = jsonschema.Draft202012Validator(wire_schema())


class Log:
    """The stored frames of a turn, in order; each fits the wire schema."""

    def __init__(self, frames: list[Frame]) -> None:
        self.frames = frames

    def of(self, card_id: str, frame_type: str = "") -> list[Frame]:
        """Return the frames of a card, of one type or all."""
        return [
            frame
            for frame in self.frames
            if frame["envelope"]["card_id"] == card_id
            and frame["type"].startswith(frame_type)
        ]

    def added(self, kind: str) -> list[Frame]:
        return [
            frame
            for frame in self.frames
            if frame["type"] == "card.add" and frame["envelope"]["card_kind"] == kind
        ]

    def only(self, kind: str) -> Frame:
        """Return the card.add of the only card of a kind."""
        (frame,) = self.added(kind)
        return frame

    def closing(self, card_id: str) -> Frame:
        """Return the payload of the only close of a card."""
        (frame,) = self.of(card_id, "card.close")
        payload: Frame = frame["payload"]
        return payload

    def inner(self, card_id: str) -> Frame:
        """Return what the close of a card adds."""
        inner: Frame = self.closing(card_id).get("inner", {})
        return inner

    def text(self, card_id: str) -> str:
        return "".join(
            frame["payload"].get("chunk", "") + frame["payload"].get("partial_json", "")
            for frame in self.of(card_id, "card.append")
        )

    def ticks(self, kind: str) -> list[Frame]:
        return [
            frame["payload"]["inner"]
            for frame in self.frames
            if frame["type"] == "card.tick" and frame["payload"]["kind"] == kind
        ]

    def closes(self) -> list[tuple[str, str]]:
        """Return kind and status of each close, in order."""
        return [
            (frame["envelope"]["card_kind"], frame["payload"]["status"])
            for frame in self.frames
            if frame["type"] == "card.close"
        ]

    def parent(self, card_id: str) -> str:
        (frame,) = self.of(card_id, "card.add")
        parent: str = frame["envelope"]["parent_card_id"]
        return parent

    def ancestors(self, card_id: str) -> list[str]:
        """Return the card ids above a card, up to the turn."""
        found = []
        while card_id != "turn_1":
            card_id = self.parent(card_id)
            found.append(card_id)
        return found


#: As a decision: nobody decided in time. A client may say `timeout` of its tool.
LAPSED = "lapsed"

#: What goes with the frames of a client's tool.
SHOWN = RowChange("shown", (), 0)
REMOVED = RowChange("removed", (), 0)


class FakeDesk:
    """Answers at once, as a test says.

    Attributes:
        prompts: What was asked, in order.
        timeouts_ms: Of the tools that were called, in order.
        answers: Decision and payload of the next answers.
        granted: Keys that count as allowed for the session.
        looked_up: Keys that were looked for among them, in order.
        is_unavailable: Whether nothing can be stored.
        interruption: Raised in who waits, instead of an answer.
    """

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []
        self.timeouts_ms: list[int] = []
        self.answers: list[tuple[str, dict[str, JSONValue]]] = []
        self.granted: set[str] = set()
        self.looked_up: list[str] = []
        self.is_unavailable = False
        self.interruption: BaseException | None = None

    async def ask(self, prompt: Prompt) -> Settlement:
        self._check_store()
        self.prompts.append(prompt)
        return self._next(str(prompt.kind))

    async def call(self, tool: ClientCall, *, timeout_ms: int) -> None:
        self._check_store()
        self.timeouts_ms.append(timeout_ms)
        tool.reserve("tool_called", shown=SHOWN, removed=(REMOVED,))
        async with tool:
            tool.settle(self._next("client_tool"))

    def _check_store(self) -> None:
        if self.is_unavailable:
            raise PromptUnavailable

    def _next(self, kind: str) -> Settlement:
        if self.interruption is not None:
            raise self.interruption
        decision, payload = self.answers.pop(0)
        return settlement(kind, decision, payload)

    @staticmethod
    def permission_key(tool_name: str, tool_input: object) -> str:
        return f"{tool_name}:{tool_input}"

    async def is_granted(self, permission_key: str) -> bool:
        self.looked_up.append(permission_key)
        return permission_key in self.granted


def settlement(kind: str, decision: str, payload: dict[str, JSONValue]) -> Settlement:
    return Settlement(
        request_id="req_1",
        session_pk=1,
        turn_pk=1,
        kind=kind,
        decision="timeout" if decision == LAPSED else decision,
        is_lapsed=decision == LAPSED,
        payload=payload,
        reason="",
        rejection="",
        frame=b"",
    )


class FakeArtifactDesk:
    """Keeps files in memory.

    Args:
        known: Told of them, for messages to mention.

    Attributes:
        kept: Bytes of the versions of each name, oldest first.
        icon: Of the next files.
        refusal: Raised instead of keeping anything.
    """

    def __init__(self, known: KnownArtifacts) -> None:
        self._known = known
        self.kept: dict[str, list[bytes]] = {}
        self.files: list[MadeFile] = []
        self.icon = b""
        self.refusal: EngineError | None = None

    async def keep(
        self, file: MadeFile, show: Callable[[StoredArtifact, bytes], R]
    ) -> R:
        if self.refusal is not None:
            raise self.refusal
        self.files.append(file)
        content = b"".join(file.pieces)
        versions = self.kept.setdefault(file.name, [])
        versions.append(content)
        artifact_id = f"art_{list(self.kept).index(file.name) + 1}"
        self._known.learn(artifact_id, file.name)
        return show(
            StoredArtifact(
                artifact_id=artifact_id,
                version=len(versions),
                name=file.name,
                type=file.type or "file",
                mime_type=file.mime_type or "text/plain",
                size_bytes=len(content),
                sha256="",
                role=file.role,
                description=file.description,
                has_thumbnail=bool(self.icon),
            ),
            self.icon,
        )


class Stage:
    """A running turn and what its log holds; an async context manager.

    Args:
        tick_interval_ms: See `TickThrottle`; the clock stands still.
        used_ids: Card ids that the log of the session holds already.
        topics: Shown already in the session; shared, not copied.
    """

    def __init__(
        self,
        *,
        tick_interval_ms: int = 0,
        shows_exceptions: bool = False,
        used_ids: Iterable[str] = (),
        topics: set[str] | None = None,
        history: Iterable[HistoryEntry] = (),
        model: str = "",
    ) -> None:
        self.clock = FakeClock()
        self.store = FakeStore()
        self.committer = Committer(lambda: self.store, patience_s=0)
        self.writer = SessionWriter(
            session_pk=1,
            fence=1,
            newest_seq=0,
            committer=self.committer,
            on_committed=lambda frames: None,
            on_failed=lambda error: None,
        )
        self.tree = CardTree(used_ids)
        self.known = KnownArtifacts()
        self.builder = Builder(
            session_id="sess_1",
            trace_id="tr_1",
            writer=self.writer,
            tree=self.tree,
            now_ms=self.clock,
            entropy=Entropy(),
            tick_interval_ms=tick_interval_ms,
            known=self.known,
        )
        self._shows_exceptions = shows_exceptions
        self._topics = set() if topics is None else topics
        self._history = tuple(history)
        self._model = model

    async def __aenter__(self) -> Self:
        payload = TurnPayload(
            turn_no=1, channel="chat", input=UserInput(text="hello", content=[])
        )
        self.turn_card = self.builder.add(
            CardKind.TURN, payload, card_id="turn_1", parent=None, agent_run_id="run_1"
        )
        self.desk = FakeDesk()
        self.artifacts = FakeArtifactDesk(self.known)
        self.context = Context(
            builder=self.builder,
            desk=self.desk,
            artifacts=self.artifacts,
            turn_card=self.turn_card,
            run_id="run_1",
            model=self._model,
            shows_exceptions=self._shows_exceptions,
        )
        self.injections: asyncio.Queue[str] = asyncio.Queue()
        self.turn = Turn(
            self.context,
            session_id="sess_1",
            session_pk=1,
            trace_id="tr_1",
            turn_no=1,
            input=TurnInput(text="hello", blocks=[], event_id="c1"),
            history=self._history,
            injections=self.injections,
            topics_shown=self._topics,
        )
        return self

    def end_turn(self) -> None:
        """Close the turn as the runtime does."""
        self.builder.close(self.turn_card, CloseStatus.OK)
        self.tree.forget_turn()

    async def log(self) -> Log:
        await self.writer.flush()
        frames = [msgspec.json.decode(entry.data) for entry in self.store.entries]
        for frame in frames:
            _validator.validate(frame)
        assert [f["envelope"]["seq"] for f in frames] == list(range(1, len(frames) + 1))
        return Log(frames)

    async def __aexit__(self, *_: object) -> None:
        self.store.gate.set()
        self.builder.stop()
        await self.committer.close()
