"""What another principal can do with a session: nothing, and not even learn of it.

Spec: Ruling E27; cases FR-125, FR-127, FR-131.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from cards.principals import Principal
from tests.integration.cards.house import Client, House, error_of, running_house
from tests.integration.cards.test_runtime import Waiting

ANN, BOB = Principal("user:1"), Principal("user:2")


@pytest_asyncio.fixture
async def scene(transactional_db: None) -> AsyncIterator[tuple[House, Client, Waiting]]:
    """Ann with a running turn in her session."""
    async with running_house() as house:
        play = Waiting(house)
        ann = await house.connect("sess_ann", ANN)
        await ann.say("wait", "c1")
        await play.is_inside.wait()
        await ann.transport.until(lambda: len(ann.logged) == 3)
        yield house, ann, play


Scene = tuple[House, Client, Waiting]


class TestStranger:
    async def test_finds_no_such_session(self, scene: Scene) -> None:
        house, _, _ = scene
        by_url = await house.connect("sess_ann", BOB)
        by_frame = await house.connect("sess_bob", BOB)
        await by_frame.send({"type": "session.create", "session_id": "sess_ann"})

        for bob in (by_url, by_frame):
            error = error_of(bob.last)
            assert error["code"] == "SESSION_NOT_FOUND"
            assert bob.last["envelope"]["session_id"] != "sess_ann"

    async def test_finds_no_such_trace(self, scene: Scene) -> None:
        """The same answer as for a trace that nobody has."""
        house, ann, _ = scene
        answers = []
        for trace_id in (ann.trace_id, "tr_of_nobody"):
            for session_id in (None, "sess_bob"):
                bob = await house.connect(session_id, BOB)
                answers.append((await bob.resume(0, trace_id))["reason"])

        assert answers == ["unknown_trace"] * 4

    async def test_stops_nothing(self, scene: Scene) -> None:
        house, ann, play = scene
        bob = await house.connect("sess_bob", BOB)
        await bob.interrupt(trace_id=ann.trace_id)
        assert error_of(bob.last)["code"] == "UNKNOWN_TRACE"
        await bob.interrupt(turn_card_id="turn_c1", clear_queue=True)
        assert bob.last["payload"]["inner"] == {"state": "idle"}

        play.goes_on.set()

        assert (await ann.until_closed("turn_c1"))["payload"]["status"] == "ok"

    @pytest.mark.parametrize(
        ("frame", "code"),
        [
            ({"type": "user.inject", "text": "hi"}, "NO_RUNNING_TURN"),
            (
                {
                    "type": "prompt.user_response",
                    "request_id": "req_0123456789abcdef",
                    "decision": "approved",
                },
                "UNKNOWN_REQUEST_ID",
            ),
            (
                {"type": "tool.result", "tool_use_id": "tool_1", "status": "success"},
                "UNKNOWN_TOOL_USE_ID",
            ),
        ],
    )
    async def test_says_nothing_into_it(
        self, scene: Scene, frame: dict[str, str], code: str
    ) -> None:
        house, ann, _ = scene
        before = len(ann.frames)
        bob = await house.connect("sess_bob", BOB)

        await bob.send(frame)
        await bob.send(frame | {"session_id": "sess_ann"})

        assert [error["code"] for error in bob.errors()] == [code, code]
        assert len(ann.frames) == before

    async def test_has_a_session_of_its_own_under_a_free_id(self, scene: Scene) -> None:
        """Two who name the same new id: the first to write has it."""
        house, _, _ = scene
        ann, bob = [await house.connect("sess_new", who) for who in (ANN, BOB)]
        await ann.say("hi", "c1")
        await ann.until_closed("turn_c1")

        await bob.say("hi", "c1")

        assert error_of(bob.last)["code"] == "SESSION_NOT_FOUND"
        assert bob.logged == []


class TestOwner:
    async def test_loses_nothing_to_a_stranger_and_shares_with_a_second_tab(
        self, scene: Scene
    ) -> None:
        """Case FR-127."""
        house, ann, play = scene
        bob = await house.connect("sess_ann", BOB)
        tab = await house.connect("sess_ann", ANN)
        play.goes_on.set()
        await ann.until_closed("turn_c1")

        assert ann.seqs == list(range(1, len(ann.seqs) + 1))
        await tab.until_closed("turn_c1")
        assert tab.logged == ann.logged[-len(tab.logged) :]
        assert bob.logged == []


class TestSessionLimit:
    async def test_refuses_one_too_many(self, transactional_db: None) -> None:
        async with running_house(session_limit=2) as house:
            for number in range(2):
                client = await house.connect(f"sess_{number}", ANN)
                await client.say("hi", "c1")
                await client.until_closed("turn_c1")

            late = await house.connect("sess_late", ANN)
            await late.say("hi", "c1")
            await late.send({"type": "session.create", "session_id": "sess_later"})
            other = await house.connect("sess_bob", BOB)
            await other.say("hi", "c1")

            codes = [error["code"] for error in late.errors()]
            assert codes == ["TOO_MANY_SESSIONS"] * 2
            await other.until_closed("turn_c1")
            await client.say("hi", "c2")
            await client.until_closed("turn_c2")
