"""A process in small: hub, real database, engine, and clients without sockets."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import msgspec
from django.conf import settings

from artifacts.shelf import StoredArtifactShelf
from cards.database import run_in_database
from cards.engine import Engine, Turn
from cards.live.connection import Connection
from cards.live.hub import Hub
from cards.live.runtime_settings import RuntimeSettings
from cards.live.session import LiveSession
from cards.local_paths import LocalPaths
from cards.log.committer import Committer
from cards.log.store import open_store
from cards.principals import ANONYMOUS, Principal
from cards.protocol.kinds import CardKind
from cards.queries import read_page
from cards.transport import Batch
from prompts.book import StoredPromptBook

Frame = dict[str, Any]
Play = Callable[[Turn], Awaitable[None]]

#: Seconds after which a frame that is due is missed.
PATIENCE_S = 30

#: What a file may hold.
MAX_FILE_BYTES = 1_000_000


class PlayedEngine(Engine):
    """Plays what a test wrote, by the first word of the message."""

    model = "played"

    def __init__(self) -> None:
        self.plays: dict[str, Play] = {"hi": self._say_hi}

    async def run(self, turn: Turn) -> None:
        await self.plays[turn.input.text.split()[0]](turn)

    async def _say_hi(self, turn: Turn) -> None:
        async with turn.message() as message:
            await message.text("Hello")


class FakeTransport:
    """A client's end of a socket, which can be slow.

    Attributes:
        raw: Every frame as it came.
        room: Frames that it takes until it is full; None for any number.
        overruns: The first frame of each batch that came while it was full.
        closed: Codes that it was closed with.
    """

    def __init__(self) -> None:
        self.raw: list[bytes] = []
        self.room: int | None = None
        self.overruns: list[bytes] = []
        self.closed: list[int] = []
        self._callback: Callable[[], None] = lambda: None
        self._news = asyncio.Event()

    @property
    def is_writable(self) -> bool:
        return self.room is None or self.room > 0

    def on_writable(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def write(self, batch: Batch) -> None:
        if not self.is_writable:
            self.overruns.append(batch.payloads[0])
        self.raw.extend(batch.payloads)
        if self.room is not None:
            self.room -= len(batch)
        self._news.set()

    def close(self, code: int) -> None:
        self.closed.append(code)
        self._news.set()

    def drain(self, room: int | None = None) -> None:
        """Make room and say so."""
        self.room = room
        self._callback()

    @property
    def frames(self) -> list[Frame]:
        return [msgspec.json.decode(each) for each in self.raw]

    async def until(self, is_enough: Callable[[], object]) -> None:
        """Wait for frames until a condition holds."""
        async with asyncio.timeout(PATIENCE_S):
            while not is_enough():
                self._news.clear()
                await self._news.wait()


class Client:
    """A connection and what it was told."""

    def __init__(self, hub: Hub, principal: Principal) -> None:
        self.transport = FakeTransport()
        self.connection = Connection(
            hub, self.transport, principal, admit=lambda message: None
        )

    async def send(self, frame: object) -> None:
        text = frame if isinstance(frame, str) else msgspec.json.encode(frame).decode()
        await self.connection.receive(text)

    async def say(self, text: str, event_id: str | None = None) -> None:
        frame = {"type": "user.message", "text": text}
        await self.send(frame | ({"event_id": event_id} if event_id else {}))

    async def interrupt(self, **fields: object) -> None:
        await self.send({"type": "session.interrupt"} | fields)

    async def resume(self, last_seq: int, trace_id: str | None = None) -> Frame:
        """Resume and return the inner of the answer."""
        count = len(self.transport.raw)
        await self.send(
            {
                "type": "session.resume",
                "trace_id": trace_id or self.trace_id,
                "last_seq": last_seq,
            }
        )
        answers = (
            frame["payload"]["inner"]
            for frame in self.frames[count:]
            if kind_of(frame).startswith("resume")
        )
        return next(answers)

    @property
    def frames(self) -> list[Frame]:
        return self.transport.frames

    @property
    def last(self) -> Frame:
        return self.frames[-1]

    @property
    def trace_id(self) -> str:
        """The durable trace that the newest `opened` named."""
        opened = [frame for frame in self.frames if kind_of(frame) == "opened"]
        return str(opened[-1]["payload"]["inner"]["trace_id"])

    @property
    def logged(self) -> list[Frame]:
        """The frames of the session's log, in the order they came."""
        return [
            frame
            for frame in self.frames
            if frame.get("envelope", {}).get("trace_id") == self.trace_id
        ]

    @property
    def seqs(self) -> list[int]:
        return [frame["envelope"]["seq"] for frame in self.logged]

    async def until_closed(self, card_id: str) -> Frame:
        """Wait for the close of a card and return it."""
        await self.transport.until(lambda: self.closes_of(card_id))
        return self.closes_of(card_id)[0]

    def closes_of(self, card_id: str) -> list[Frame]:
        return [
            frame
            for frame in self.frames
            if frame["type"] == "card.close" and frame["envelope"]["card_id"] == card_id
        ]

    def closes(self) -> list[tuple[str, str]]:
        """Return kind and status of each close, in order."""
        return [
            (frame["envelope"]["card_kind"], frame["payload"]["status"])
            for frame in self.frames
            if frame["type"] == "card.close"
        ]

    def errors(self) -> list[Frame]:
        return [error_of(frame) for frame in self.frames if kind_of(frame) == "error"]


def kind_of(frame: Frame) -> str:
    return str(frame.get("payload", {}).get("kind", ""))


def error_of(frame: Frame) -> Frame:
    assert kind_of(frame) == "error", frame
    error: Frame = frame["payload"]["inner"]["error"]
    return error


class Idling(Protocol):
    """A session or its runtime."""

    @property
    def is_idle(self) -> bool: ...


async def until_idle(thing: Idling) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not thing.is_idle:
            # Nobody is told of it; the others get on while a thread answers.
            await run_in_database(int)


class House:
    """Hub, engine and clients; another one is another worker.

    Args:
        lease_s: 0 for a worker that the others take for lost.
        layer: To ring the other houses.
    """

    def __init__(
        self,
        *,
        shows_exceptions: bool = False,
        queue_limit: int = 8,
        session_limit: int = 0,
        windows_ms: dict[CardKind, int] | None = None,
        lease_s: float = 15,
        layer: object = None,
        engine: Engine | None = None,
        committer: Committer | None = None,
        time_to_live: timedelta | None = timedelta(days=15),
        local_paths: Sequence[Path] = (),
    ) -> None:
        self.engine = PlayedEngine()
        self.committer = committer or Committer(open_store)
        self.settings = RuntimeSettings(
            engine=engine or self.engine,
            tick_interval_ms=0,
            shows_exceptions=shows_exceptions,
            windows_ms=windows_ms or {},
        )
        self.book = StoredPromptBook(time_to_live=time_to_live)
        self._lock_dir = TemporaryDirectory()
        self.shelf = StoredArtifactShelf(
            incoming_dir=settings.CARDWIRE_INCOMING_DIR, max_bytes=MAX_FILE_BYTES
        )
        self._make_hub = partial(
            Hub,
            committer=self.committer,
            queue_limit=queue_limit,
            session_limit=session_limit,
            lock_dir=Path(self._lock_dir.name),
            lease_s=lease_s,
            book=self.book,
            shelf=self.shelf,
            local_paths=LocalPaths(local_paths),
            layer=layer,
        )
        self.hub = self._make_hub(settings=self.settings)
        self._is_closed = False
        self.clients: list[Client] = []

    def play_with(self, engine: Engine) -> None:
        """Have another engine answer from now on."""
        self.hub = self._make_hub(settings=replace(self.settings, engine=engine))

    async def connect(
        self, session_id: str | None = "sess_1", principal: Principal = ANONYMOUS
    ) -> Client:
        client = Client(self.hub, principal)
        self.clients.append(client)
        await client.connection.open(session_id)
        return client

    async def live(self, session_id: str = "sess_1") -> LiveSession:
        return await self.hub.attach(session_id, ANONYMOUS)

    async def log(self, session_id: str = "sess_1") -> list[bytes]:
        """Return the stored frames of a session."""
        record = (await self.live(session_id)).record
        assert record is not None
        return (await run_in_database(read_page, record.pk, after_seq=0)).frames

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for client in self.clients:
            client.connection.end()
        await self.hub.stop(grace_s=0)
        await self.committer.close()
        self._lock_dir.cleanup()


@asynccontextmanager
async def running_house(**options: Any) -> AsyncIterator[House]:
    house = House(**options)
    try:
        yield house
    finally:
        await house.close()


async def until_at_rest(house: House) -> None:
    """Wait until no turn runs or waits in this worker, and the session is back."""
    live = await house.live()
    async with asyncio.timeout(PATIENCE_S):
        while live.is_working:
            # Nobody is told of it; the others get on while a thread answers.
            await run_in_database(int)
