"""Turns from the message to their truthful end, on the real database."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from cards.database import WriteBatches, run_in_database
from cards.engine import Engine, EngineError, PlanStep, Turn
from cards.live.artifact_desk import SessionArtifacts
from cards.live.new_turns import accepted_message
from cards.live.runtime import SessionRuntime
from cards.models import Session
from cards.models import Turn as TurnRow
from cards.operations import NewTurn, StopRequest, accept_message
from cards.protocol.client_messages import UserMessage
from cards.protocol.errors import ErrorInfo
from cards.protocol.kinds import CardKind
from cards.queries import SessionRecord, TurnRecord, read_history
from tests.integration.cards.conftest import NOW
from tests.integration.cards.house import (
    Client,
    House,
    error_of,
    kind_of,
    running_house,
    until_idle,
)


@pytest_asyncio.fixture(name="house")
async def _house(transactional_db: None) -> AsyncIterator[House]:
    async with running_house() as house:
        yield house


@pytest_asyncio.fixture(name="client")
async def _client(house: House) -> Client:
    return await house.connect()


class Waiting:
    """A play that opens a tool in a message and waits there."""

    def __init__(self, house: House) -> None:
        self.is_inside = asyncio.Event()
        self.goes_on = asyncio.Event()
        house.engine.plays["wait"] = self

    async def __call__(self, turn: Turn) -> None:
        async with turn.message(), turn.tool("Bash"):
            self.is_inside.set()
            await self.goes_on.wait()


def queues_of(client: Client) -> list[list[str]]:
    inners = [f["payload"].get("inner", {}) for f in client.logged]
    return [
        [message["event_id"] for message in inner["queue"]]
        for inner in inners
        if "queue" in inner
    ]


class FrameList:
    """Owns a runtime: keeps its frames, and takes the session back."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def committed(self, frames: Sequence[bytes]) -> None:
        self.frames.extend(frames)

    def trouble(self, error: ErrorInfo) -> None:
        raise AssertionError(error)

    async def lost(self, runtime: SessionRuntime) -> None:
        raise AssertionError("nobody else owns the session")

    async def give_back(self, fence: int) -> None:
        return None

    async def abandon(self, fence: int) -> None:
        raise AssertionError("nothing stops the runtime")


async def runtime_of(
    house: House, record: SessionRecord, owner: FrameList
) -> SessionRuntime:
    """Return a runtime of a new session that gives its frames to a list."""
    writes = WriteBatches()
    return SessionRuntime(
        record,
        owner,
        fence=0,
        history=await run_in_database(read_history, record.pk, turns=0),
        settings=house.settings,
        committer=house.committer,
        book=house.book,
        artifacts=SessionArtifacts(
            record.pk, fence=lambda: 0, shelf=house.shelf, writes=writes
        ),
        writes=writes,
    )


async def accepted(record: SessionRecord, text: str) -> TurnRecord:
    turn = NewTurn(
        event_id=text,
        card_id=f"turn_{text}",
        run_id="run_1",
        message=accepted_message(UserMessage(text=text)),
        title=text,
        accepted_at=NOW,
    )
    accepted = await run_in_database(
        accept_message, session_pk=record.pk, turn=turn, queue_limit=8, me=None
    )
    return accepted.turn


class TestTurn:
    async def test_ends_ok_when_the_engine_returns(self, client: Client) -> None:
        await client.say("hi", "c1")

        closed = await client.until_closed("turn_c1")

        assert closed["payload"] == {"status": "ok"}
        assert client.seqs == [1, 2, 3, 4, 5]

    async def test_cancels_what_the_engine_left_open(
        self, house: House, client: Client
    ) -> None:
        async def leave_open(turn: Turn) -> None:
            await turn.message().__aenter__()
            agent = await turn.agent("x").__aenter__()
            await agent.tool("Bash").__aenter__()

        house.engine.plays["leave"] = leave_open
        await client.say("leave", "c1")
        await client.until_closed("turn_c1")

        assert client.closes() == [
            ("tool", "cancelled"),
            ("agent", "cancelled"),
            ("message", "cancelled"),
            ("turn", "ok"),
        ]

    async def test_sends_nothing_after_its_end(
        self, house: House, client: Client
    ) -> None:
        """Spec: Ruling E10: of what a task does that the engine forgot."""
        goes_on = asyncio.Event()
        tasks: list[asyncio.Task[None]] = []

        async def late(turn: Turn) -> None:
            await goes_on.wait()
            await turn.todo("known", status="completed")
            await turn.system("gap", "late")
            await turn.set_title("late")
            async with turn.message() as message:
                await message.text("late")

        async def forget(turn: Turn) -> None:
            await turn.todo("known")
            tasks.append(asyncio.create_task(late(turn)))

        house.engine.plays["forget"] = forget
        await client.say("forget", "c1")
        await client.until_closed("turn_c1")
        goes_on.set()
        await asyncio.wait(tasks)
        await client.say("hi", "c2")
        await client.until_closed("turn_c2")

        assert "LocalProtocolError" in repr(tasks[0].exception())
        assert "late" not in str(client.frames)
        assert client.seqs == list(range(1, len(client.logged) + 1))


class Stops(BaseException):
    """An exception that no `except Exception` catches."""


def raises(exception: BaseException) -> Callable[[Turn], Any]:
    async def play(turn: Turn) -> None:
        async with turn.tool("Bash"):
            raise exception

    return play


class TestFailure:
    """Spec: Ruling E11."""

    @pytest.mark.parametrize(
        ("exception", "word"),
        [
            (RuntimeError("why \ud83d"), "why \ufffd"),
            (Stops(), "Stops"),
            (SystemExit(3), "SystemExit(3)"),
            (KeyboardInterrupt(), "KeyboardInterrupt()"),
            (ExceptionGroup("several", [OSError()]), "several"),
        ],
        ids=["exception", "base exception", "exit", "interrupt", "group"],
    )
    @pytest.mark.parametrize("shows", [False, True])
    async def test_of_any_kind_fails_the_turn_once(
        self, transactional_db: None, exception: BaseException, word: str, shows: bool
    ) -> None:
        async with running_house(shows_exceptions=shows) as house:
            house.engine.plays["fail"] = raises(exception)
            client = await house.connect()
            await client.say("fail", "c1")
            await client.transport.until(client.errors)
            await client.say("hi", "c2")
            await client.until_closed("turn_c2")

        kinds = ["tool", "turn", "message", "turn"]
        assert [kind for kind, _ in client.closes()] == kinds
        statuses = ["failed", "failed", "ok", "ok"]
        assert [status for _, status in client.closes()] == statuses
        (error,) = client.errors()
        assert error["type"] == "internal"
        assert (word in error["message"]) == shows

    @pytest.mark.parametrize("is_awaited", [True, False])
    async def test_of_a_task_of_the_engine_ends_no_other_session(
        self, house: House, client: Client, *, is_awaited: bool
    ) -> None:
        """Whatever it raises, its turn has failed, and the server goes on."""
        tasks: list[asyncio.Task[None]] = []

        async def leave(turn: Turn) -> None:
            async with turn.tool("Bash"):
                raise SystemExit(3)

        async def play(turn: Turn) -> None:
            tasks.append(asyncio.create_task(leave(turn)))
            if is_awaited:
                await tasks[0]
            await asyncio.wait(tasks)

        house.engine.plays["fail"] = play
        other = await house.connect("sess_2")
        waiting = Waiting(house)
        await other.say("wait", "c1")
        await waiting.is_inside.wait()

        await client.say("fail", "c1")
        closed = await client.until_closed("turn_c1")
        waiting.goes_on.set()

        status = "failed" if is_awaited else "ok"
        assert client.closes() == [("tool", "failed"), ("turn", status)]
        assert closed["payload"].get("error", {}).get("type", "internal") == "internal"
        assert "SystemExit(3)" in str(tasks[0].exception())
        assert (await other.until_closed("turn_c1"))["payload"]["status"] == "ok"

    async def test_is_told_as_the_engine_chose(
        self, house: House, client: Client
    ) -> None:
        house.engine.plays["fail"] = raises(
            EngineError("rate_limit", "half \ud83d", code="C\0", retry_after_ms=10**20)
        )
        await client.say("fail", "c1")
        closed = await client.until_closed("turn_c1")
        await client.transport.until(client.errors)

        error = closed["payload"]["error"]
        assert (error["message"], error["code"]) == ("half \ufffd", "C\ufffd")
        assert client.errors() == [error]
        assert kind_of(client.logged[-1]) == "error"

    @pytest.mark.parametrize(
        "play",
        [lambda turn: None, lambda: None, None],
        ids=["gives none", "takes none", "is none"],
    )
    async def test_of_an_engine_that_is_none_fails_the_turn(
        self, house: House, client: Client, play: Any
    ) -> None:
        house.engine.plays["fail"] = play

        await client.say("fail", "c1")

        assert (await client.until_closed("turn_c1"))["payload"]["status"] == "failed"


class Hasty(Engine):
    """Forgets that `run` is a coroutine function."""

    def run(self, turn: Turn) -> Any:
        return None


class TestEngineThatIsNoCoroutine:
    async def test_fails_the_turn(self, house: House) -> None:
        house.play_with(Hasty())
        client = await house.connect()

        await client.say("hi", "c1")

        assert (await client.until_closed("turn_c1"))["payload"]["status"] == "failed"


class TestInterrupt:
    """Spec: Ruling E10."""

    async def test_closes_children_before_parents(
        self, house: House, client: Client
    ) -> None:
        play = Waiting(house)
        await client.say("wait", "c1")
        await play.is_inside.wait()

        await client.interrupt(trace_id=client.trace_id)
        await client.until_closed("turn_c1")

        kinds = ["tool", "message", "turn"]
        assert client.closes() == [(kind, "cancelled") for kind in kinds]
        assert client.errors() == []

    async def test_right_behind_the_message_stops_it(
        self, house: House, client: Client
    ) -> None:
        """Case FR-47: before the first output."""
        Waiting(house)
        await client.say("wait", "c1")
        assert client.logged == []

        await client.interrupt()
        await client.until_closed("turn_c1")
        await client.say("hi", "c2")
        await client.until_closed("turn_c2")

        statuses = [status for kind, status in client.closes() if kind == "turn"]
        assert statuses == ["cancelled", "ok"]

    async def test_before_the_turn_has_begun_never_runs_it(self, house: House) -> None:
        """Case FR-47: before the turn card, which comes all the same."""
        play = Waiting(house)
        record = await (await house.live()).store()
        owner = FrameList()
        runtime = await runtime_of(house, record, owner)
        turns = [await accepted(record, text) for text in ["wait", "hi"]]

        runtime.take_up(turns[:1])
        assert runtime.interrupt(StopRequest(seen_seq=0))
        runtime.take_up(turns)
        await until_idle(runtime)

        assert not play.is_inside.is_set()
        statuses = [
            (frame["envelope"]["card_id"], frame["payload"]["status"])
            for frame in map(msgspec.json.decode, owner.frames)
            if frame["type"] == "card.close"
            and frame["envelope"]["card_kind"] == "turn"
        ]
        assert statuses == [("turn_wait", "cancelled"), ("turn_hi", "ok")]

    async def test_of_nothing_is_answered(self, client: Client) -> None:
        await client.interrupt()

        assert client.last["payload"] == {
            "kind": "updated",
            "inner": {"state": "idle"},
        }

    async def test_that_comes_late_spares_the_next_turn(self, client: Client) -> None:
        """Case FR-43."""
        await client.say("hi", "c1")
        await client.until_closed("turn_c1")
        await client.interrupt()
        answer = client.last["payload"]["inner"]
        await client.say("hi", "c2")

        assert answer == {"state": "idle"}
        assert (await client.until_closed("turn_c2"))["payload"]["status"] == "ok"

    async def test_of_another_trace_is_refused(
        self, house: House, client: Client
    ) -> None:
        play = Waiting(house)
        await client.say("wait", "c1")
        await play.is_inside.wait()

        await client.interrupt(trace_id="tr_other")
        error = error_of(client.last)
        play.goes_on.set()

        assert (error["code"], error["details"]["field"]) == (
            "UNKNOWN_TRACE",
            "trace_id",
        )
        assert (await client.until_closed("turn_c1"))["payload"]["status"] == "ok"

    @pytest.mark.parametrize("then", ["returns", "raises", "goes on"])
    async def test_is_shown_however_the_engine_takes_it(
        self, house: House, client: Client, then: str
    ) -> None:
        is_inside = asyncio.Event()

        async def stubborn(turn: Turn) -> None:
            try:
                is_inside.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if then == "raises":
                    raise RuntimeError("no way to clean up") from None
                if then == "goes on":
                    async with turn.message() as message:
                        await message.text("Goodbye")

        house.engine.plays["stubborn"] = stubborn
        await client.say("stubborn", "c1")
        await is_inside.wait()
        await client.interrupt()

        assert (await client.until_closed("turn_c1"))["payload"] == {
            "status": "cancelled"
        }
        assert client.errors() == []

    async def test_leaves_the_queue(self, house: House, client: Client) -> None:
        """Spec: Ruling E9."""
        play = Waiting(house)
        await client.say("wait", "c1")
        await play.is_inside.wait()
        await client.say("hi", "c2")

        await client.interrupt()

        assert (await client.until_closed("turn_c2"))["payload"]["status"] == "ok"


class TestQueue:
    """Spec: Ruling E9."""

    async def test_is_worked_off_in_order_and_shown(
        self, house: House, client: Client
    ) -> None:
        play = Waiting(house)
        await client.say("wait", "c1")
        await play.is_inside.wait()
        for name in ["c2", "c3"]:
            await client.say("hi", name)
        play.goes_on.set()
        await client.until_closed("turn_c3")

        turns = [
            f["envelope"]["card_id"]
            for f in client.logged
            if f["type"] == "card.add" and f["envelope"]["card_kind"] == "turn"
        ]
        assert turns == ["turn_c1", "turn_c2", "turn_c3"]
        assert queues_of(client) == [["c2"], ["c2", "c3"], ["c3"], []]

    async def test_forgets_nothing_that_comes_while_the_runtime_ends(
        self, house: House, session_row: Session
    ) -> None:
        """A look for answers is on its way when the session was given back."""
        record = SessionRecord.of(session_row)
        turns = [await accepted(record, text) for text in ("hi", "hi_again")]
        house.engine.plays["hi_again"] = house.engine.plays["hi"]

        class Interrupted(FrameList):
            async def give_back(self, fence: int) -> None:
                if not self.has_given_back:
                    self.has_given_back = True
                    runtime.look_for_settlements()
                    asyncio.get_running_loop().call_soon(runtime.take_up, turns[1:])

            has_given_back = False

        owner = Interrupted()
        runtime = await runtime_of(house, record, owner)
        runtime.take_up(turns[:1])
        await until_idle(runtime)

        log = b"".join(owner.frames)
        assert log.count(b'"channel":"chat"') == len(turns)

    async def test_has_a_limit(self, transactional_db: None) -> None:
        async with running_house(queue_limit=1) as house:
            play, client = Waiting(house), await house.connect()
            await client.say("wait", "c1")
            await play.is_inside.wait()
            for name in ["c2", "c3"]:
                await client.say("hi", name)
            play.goes_on.set()
            await client.until_closed("turn_c2")

        (error,) = client.errors()
        assert (error["code"], error["retryable"]) == ("QUEUE_FULL", True)


class TestSameMessage:
    """Spec: Ruling E8."""

    async def test_twice_starts_one_turn(self, client: Client) -> None:
        await client.say("hi", "c1")
        await client.until_closed("turn_c1")

        await client.say("hi", "c1")

        assert client.last["payload"]["inner"] == {"turn_card_id": "turn_c1"}

    async def test_with_other_words_is_refused(self, client: Client) -> None:
        await client.say("hi", "c1")
        await client.until_closed("turn_c1")

        await client.say("hi there", "c1")

        assert error_of(client.last)["code"] == "EVENT_ID_REUSED"


class TestGoneClient:
    """A turn outlives its sockets."""

    async def test_does_not_stop_its_turn(self, house: House, client: Client) -> None:
        play = Waiting(house)
        await client.say("wait", "c1")
        await play.is_inside.wait()

        client.connection.end()
        again = await house.connect()
        play.goes_on.set()
        closed = await again.until_closed("turn_c1")

        assert closed["payload"]["status"] == "ok"

    async def test_does_not_take_its_message_back(self, house: House) -> None:
        """Cancelled at each step of accepting: stored and run, or not stored."""
        for steps in range(12):
            client = await house.connect(f"sess_{steps}")
            saying = asyncio.create_task(client.say("hi", "c1"))
            for _ in range(steps):
                await asyncio.sleep(0)
            saying.cancel()
            await asyncio.wait([saying])
            await (await house.live(f"sess_{steps}")).store()
            await client.say("hi", "c1")
            await client.until_closed("turn_c1")

        unfinished = TurnRow.objects.exclude(state="ended").count
        assert await run_in_database(unfinished) == 0


class TestHistory:
    """What an engine knows of earlier turns is the same after a restart."""

    async def play_all(self, house: House, client: Client) -> None:
        async def speak(turn: Turn) -> None:
            for role, words in [("user", "quote"), ("assistant", "one"),
                                ("assistant", ""), ("assistant", "two\0")]:  # fmt: skip
                async with turn.message(role=role) as message:  # type: ignore[arg-type]
                    await message.text(words)
            async with turn.agent("x") as agent, agent.message() as message:
                await message.text("inside")

        house.engine.plays["speak"] = speak
        house.engine.plays["fail"] = raises(RuntimeError())
        for number, text in enumerate(["speak", "fail", "hi😀"]):
            await client.say(text, f"c{number}")
            await client.until_closed(f"turn_c{number}")

    async def test_is_bounded_text_by_role(self, house: House, client: Client) -> None:
        histories: list[Any] = []

        async def remember(turn: Turn) -> None:
            histories.append(list(turn.history))

        house.engine.plays["remember"] = remember
        house.engine.plays["hi😀"] = house.engine.plays["hi"]
        await self.play_all(house, client)
        await client.say("remember", "c8")
        await client.until_closed("turn_c8")
        await house.close()
        async with running_house() as after:
            after.engine.plays["remember"] = remember
            again = await after.connect()
            await again.say("remember", "c9")
            await again.until_closed("turn_c9")

        assert [tuple(entry) for entry in histories[0]] == [
            ("user", "speak", 1),
            ("user", "quote", 1),
            ("assistant", "one\n\ntwo\ufffd", 1),
            ("user", "fail", 2),
            ("user", "hi😀", 3),
            ("assistant", "Hello", 3),
        ]
        assert histories[1] == [*histories[0], ("user", "remember", 4)]


class TestRestart:
    async def test_goes_on_with_the_log(self, house: House, client: Client) -> None:
        """Spec: Rulings E2, E7; topics and ids are used once in a session."""

        async def use(turn: Turn) -> None:
            await turn.system("gap", "Gap")
            async with turn.tool("Bash", call_id="toolu_1"):
                pass

        house.engine.plays["use"] = use
        await client.say("use", "c1")
        await client.until_closed("turn_c1")
        await house.close()
        async with running_house() as after:
            after.engine.plays["use"] = use
            again = await after.connect()
            await again.say("use", "c2")
            await again.until_closed("turn_c2")
            seqs, frames = again.seqs, again.logged

        assert seqs[0] == client.seqs[-1] + 1
        assert again.trace_id == client.trace_id
        kinds = {f["envelope"]["card_kind"] for f in frames}
        assert kinds == {"turn", "tool"}
        assert "toolu_1" not in {f["envelope"]["card_id"] for f in frames}


class TestTitle:
    """Spec: Ruling E29."""

    async def test_is_the_beginning_until_the_engine_sets_one(
        self, house: House, client: Client
    ) -> None:
        async def name(turn: Turn) -> None:
            await turn.set_title("About cards")

        house.engine.plays["name"] = name
        titles = []
        for number, text in enumerate(["hi " + "x" * 200, "name", "hi"]):
            await client.say(text, f"c{number}")
            await client.until_closed(f"turn_c{number}")
            row = await run_in_database(Session.objects.get, session_id="sess_1")
            titles.append(row.title)

        assert titles == ["hi " + "x" * 76 + "…", "About cards", "About cards"]


class TestWatchdog:
    """Spec: Ruling E13; cases FR-49, FR-55."""

    async def test_closes_a_silent_tool_and_spares_its_turn(
        self, transactional_db: None
    ) -> None:
        async with running_house(windows_ms={CardKind.TOOL: 50}) as house:
            play = Waiting(house)
            client = await house.connect()
            await client.say("wait", "c1")
            await client.transport.until(client.closes)
            play.goes_on.set()

            assert (await client.until_closed("turn_c1"))["payload"]["status"] == "ok"
            closes = [f for f in client.logged if f["type"] == "card.close"]
            assert closes[0]["payload"]["error"]["type"] == "orphan_timeout"
            assert client.closes() == [
                ("tool", "failed"),
                ("message", "ok"),
                ("turn", "ok"),
            ]

    async def test_spares_what_has_a_longer_window(
        self, transactional_db: None
    ) -> None:
        """A sub-agent outlives the tool that it was started in."""
        async with running_house(windows_ms={CardKind.TOOL: 50}) as house:
            goes_on = asyncio.Event()

            async def work(turn: Turn) -> None:
                async with (
                    turn.tool("Agent"),
                    turn.agent("helper"),
                    turn.message() as message,
                ):
                    await goes_on.wait()
                    await message.text("done after all")

            house.engine.plays["work"] = work
            client = await house.connect()
            await client.say("work", "c1")
            await client.transport.until(client.closes)
            goes_on.set()
            await client.until_closed("turn_c1")

            assert client.closes() == [
                ("tool", "failed"),
                ("message", "ok"),
                ("agent", "ok"),
                ("turn", "ok"),
            ]

    async def test_spares_steps_that_have_not_begun(
        self, transactional_db: None
    ) -> None:
        """Spec: Ruling E19: all steps are shown when the plan is."""
        windows_ms = {CardKind.STEP: 60, CardKind.TOOL: 30}
        async with running_house(windows_ms=windows_ms) as house:
            goes_on = asyncio.Event()

            async def plan(turn: Turn) -> None:
                steps = [PlanStep("s1", "first"), PlanStep("s2", "second")]
                async with turn.plan(goal="goal", steps=steps) as plan:
                    async with turn.tool("Bash"):
                        await goes_on.wait()
                    for name in ("s1", "s2"):
                        async with plan.step(name):
                            pass

            house.engine.plays["plan"] = plan
            client = await house.connect()
            await client.say("plan", "c1")
            await client.transport.until(client.closes)
            goes_on.set()
            await client.until_closed("turn_c1")

            steps = [status for kind, status in client.closes() if kind == "step"]
            assert steps == ["ok", "ok"]

    async def test_ends_a_silent_turn(self, transactional_db: None) -> None:
        async with running_house(windows_ms={CardKind.TURN: 50}) as house:
            Waiting(house)
            client = await house.connect()
            await client.say("wait", "c1")

            closed = await client.until_closed("turn_c1")
            assert closed["payload"]["error"]["type"] == "orphan_timeout"
            assert {status for _, status in client.closes()} == {"failed"}
            await client.say("hi", "c2")
            assert (await client.until_closed("turn_c2"))["payload"]["status"] == "ok"


class TestDeafEngine:
    async def test_is_closed_over_its_head(self, house: House, client: Client) -> None:
        """An engine that does not stop: its turn does, and what it says is dropped."""
        is_inside, goes_on = asyncio.Event(), asyncio.Event()

        async def ignore(turn: Turn) -> None:
            async with turn.message() as message:
                is_inside.set()
                while not goes_on.is_set():
                    with suppress(asyncio.CancelledError):
                        await goes_on.wait()
                await message.text("too late")

        house.engine.plays["ignore"] = ignore
        await client.say("ignore", "c1")
        await is_inside.wait()
        await client.interrupt()
        await client.until_closed("turn_c1")
        goes_on.set()
        await client.say("hi", "c2")
        await client.until_closed("turn_c2")

        assert not any(b"too late" in frame for frame in client.transport.raw)
        statuses = [status for kind, status in client.closes() if kind == "turn"]
        assert statuses == ["cancelled", "ok"]


class TestInjectedWords:
    async def test_belong_to_the_history(self, house: House, client: Client) -> None:
        """In memory, and read back from the log by the next process. Ruling E28."""
        heard: list[list[tuple[str, str, int]]] = []

        async def listen(turn: Turn) -> None:
            async with turn.message() as message:
                await message.text("go on")
                await turn.flush()
                async for words in turn.injections():
                    await message.text(f", {words}")
                    return

        async def recall(turn: Turn) -> None:
            heard.append([(e.role, e.text, e.turn_no) for e in turn.history])

        house.engine.plays |= {"listen": listen, "recall": recall}
        await client.say("listen", "c1")
        await client.transport.until(lambda: len(client.logged) == 3)
        await client.send({"type": "user.inject", "text": "faster"})
        await client.until_closed("turn_c1")
        await client.say("recall", "c2")
        await client.until_closed("turn_c2")
        async with running_house() as other:
            other.engine.plays["recall"] = recall
            later = await other.connect()
            await until_idle_working(house)
            await later.say("recall", "c3")
            await later.until_closed("turn_c3")

        assert heard[0] == [
            ("user", "listen", 1),
            ("user", "faster", 1),
            ("assistant", "go on, faster", 1),
        ]
        assert heard[1][:3] == heard[0]


async def until_idle_working(house: House) -> None:
    live = await house.live()
    while live.is_working:
        await run_in_database(int)
