"""Whatever happens in whatever order, a client gets the log without gap or double."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cards.database import run_in_database
from cards.live.session import LiveSession
from cards.log.tail import Tail
from cards.models import Event
from cards.operations import open_session
from cards.principals import ANONYMOUS
from cards.transport import Batch
from tests.integration.cards.conftest import NOW
from tests.integration.cards.house import Client, House, kind_of, running_house

_numbers: Iterator[int] = count(1)

#: Bytes of the tail: about four frames, so that most of the log is on disk only.
TAIL_BYTES = 600


@dataclass
class Commit:
    """So many frames become durable, and followers are told."""

    frames: int


@dataclass
class Drain:
    """The client has room for so many frames; None for any number."""

    room: int | None


@dataclass
class Resume:
    """The client asks again for this part of the log."""

    share: float


@dataclass
class Visit:
    """The client goes to another session, or comes back."""

    home: bool


@dataclass
class Pass:
    """The others get on."""

    database: bool


STEPS = st.lists(
    st.one_of(
        st.builds(Commit, st.integers(1, 6)),
        st.builds(Drain, st.none() | st.integers(0, 9)),
        st.builds(Resume, st.floats(0, 1)),
        st.builds(Visit, st.booleans()),
        st.builds(Pass, st.booleans()),
    ),
    max_size=30,
)


class Scene:
    """A session with a log that the test writes, and one client of it."""

    def __init__(self, house: House, live: LiveSession, client: Client) -> None:
        self.house = house
        self.live = live
        self.client = client
        self.log: list[bytes] = []

    async def play(self, step: Commit | Drain | Resume | Visit | Pass) -> None:
        match step:
            case Commit(frames):
                await self.commit(frames)
            case Drain(room):
                self.client.transport.drain(room)
            case Resume(share):
                last_seq = round(share * len(self.log))
                await self.client.resume(last_seq, self.live.trace_id)
            case Visit(home):
                session_id = self.live.session_id
                await self.client.send(
                    {
                        "type": "session.create",
                        "session_id": session_id if home else f"{session_id}_away",
                    }
                )
            case Pass(database):
                await (run_in_database(int) if database else asyncio.sleep(0))

    async def commit(self, size: int) -> None:
        seqs = [len(self.log) + number for number in range(1, size + 1)]
        frames = [
            msgspec.json.encode(
                {
                    "type": "card.append",
                    "envelope": {"trace_id": self.live.trace_id, "seq": seq},
                }
            )
            for seq in seqs
        ]
        await run_in_database(
            Event.objects.bulk_create,
            [
                Event(session_id=self.record_pk, seq=seq, data=frame)
                for seq, frame in zip(seqs, frames, strict=True)
            ],
        )
        self.log += frames
        self.live.tail.extend(frames)
        for follower in tuple(self.live.audience.followers):
            follower.pump()

    @property
    def record_pk(self) -> int:
        assert self.live.record is not None
        return self.live.record.pk

    def check(self) -> int | None:
        """Follow what the client got; return the next seq due, if it is at home."""
        due: int | None = None
        for raw, frame in zip(
            self.client.transport.raw, self.client.frames, strict=True
        ):
            inner = frame.get("payload", {}).get("inner", {})
            if kind_of(frame) == "opened":
                due = self.due_after_opened(frame["envelope"]["session_id"], inner, due)
            elif kind_of(frame) == "resumed":
                # What was due before stays due. Spec: Ruling E5.
                due = min(inner["from_seq"], due or inner["from_seq"])
            elif kind_of(frame) == "":
                assert due is not None
                assert frame["envelope"]["seq"] == due
                assert raw == self.log[due - 1]
                due += 1
        return due

    def due_after_opened(
        self, session_id: str, inner: dict[str, int], due: int | None
    ) -> int | None:
        if session_id != self.live.session_id:
            return None
        return inner["last_seq"] + 1 if due is None else due


async def play_all(steps: list[Commit | Drain | Resume | Visit | Pass]) -> None:
    session_id = f"sess_{next(_numbers)}"
    async with running_house() as house:
        await run_in_database(
            open_session,
            session_id=session_id,
            trace_id=f"tr_{session_id}",
            principal=ANONYMOUS,
            now=NOW,
            session_limit=0,
        )
        live = await house.live(session_id)
        live.audience.tail = Tail(0, Batch, max_bytes=TAIL_BYTES)
        with live.in_use():
            client = await house.connect(session_id)
            scene = Scene(house, live, client)
            for step in steps:
                await scene.play(step)
            client.transport.drain()
            await scene.play(Visit(home=True))
            await scene.commit(1)
            await client.transport.until(
                lambda: client.transport.raw[-1] == scene.log[-1]
            )

    assert scene.check() == len(scene.log) + 1
    assert not any(b'"card.append"' in each for each in client.transport.overruns)


class TestCursor:
    @settings(
        max_examples=80,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(steps=STEPS)
    def test_gives_each_frame_once_in_order(
        self,
        transactional_db: None,
        steps: list[Commit | Drain | Resume | Visit | Pass],
    ) -> None:
        """Spec: Rulings E3, E4, E5; cases FR-01, FR-03."""
        asyncio.run(play_all(steps))
