"""Stop, restart, crash, several workers: nothing hangs, nothing is lost.

Spec: Rulings E8, E9, E10, E14, E23, E26.
"""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from tests.acceptance.client import CardClient, Frame, seqs_of
from tests.services import CardwireServer, postgres_database

SCRIPTED = {"CARDWIRE_ENGINE": "tests.acceptance.engines.ScriptedEngine"}


@pytest.fixture(scope="module")
def workers(
    tmp_path_factory: pytest.TempPathFactory, redis_url: str
) -> Iterator[tuple[CardwireServer, CardwireServer]]:
    """Two workers of one database, on disks of their own, as on two machines."""
    with postgres_database() as url:
        servers = [
            CardwireServer(
                tmp_path_factory.mktemp("worker"),
                DATABASE_URL=url,
                REDIS_URL=redis_url,
                CARDWIRE_LEASE_S="2",
                CARDWIRE_SECRET_KEY="both-workers-have-the-same-one",
                **SCRIPTED,
            )
            for _ in range(2)
        ]
        try:
            for server in servers:
                server.start()
            yield servers[0], servers[1]
        finally:
            for server in servers:
                server.close()


def on(server: CardwireServer, session_id: str) -> CardClient:
    return CardClient(f"{server.socket_url}?session_id={session_id}")


def is_working(frame: Frame) -> bool:
    return bool(frame["type"] == "card.tick")


def is_close_of(frame: Frame, kind: str) -> bool:
    return bool(
        frame["type"] == "card.close" and frame["envelope"]["card_kind"] == kind
    )


def closes_of(frames: list[Frame]) -> list[tuple[str, str]]:
    return [
        (frame["envelope"]["card_kind"], frame["payload"]["status"])
        for frame in frames
        if frame["type"] == "card.close"
    ]


def until_closed_socket(client: CardClient) -> int:
    with pytest.raises(ConnectionClosed) as closed:
        client.until(lambda frame: False)
    assert closed.value.rcvd is not None
    return int(closed.value.rcvd.code)


class TestInterrupt:
    """Spec: Ruling E10; cases HC-47, FR-41, FR-47."""

    def test_closes_fifty_parallel_tools(self, scripted: CardwireServer) -> None:
        with CardClient(scripted.socket_url) as client:
            client.say("many_tools 50")
            opened = 0
            while opened < 50:
                frame = client.receive()
                opened += (
                    frame["type"] == "card.add"
                    and frame["envelope"]["card_kind"] == "tool"
                )
            client.send({"type": "session.interrupt", "trace_id": client.trace_id})
            frames = client.until_turn_ends()

            assert closes_of(frames) == [("tool", "cancelled")] * 50 + [
                ("turn", "cancelled")
            ]
            assert client.nothing_else() == []

    def test_before_the_first_output_stops_the_turn(
        self, scripted: CardwireServer
    ) -> None:
        """Case FR-47: right behind the message, many times."""
        with CardClient(scripted.socket_url) as client:
            for _ in range(50):
                client.say("wait")
                client.send({"type": "session.interrupt"})
                frames = client.until_turn_ends()

                assert frames[-1]["payload"]["status"] == "cancelled"

    def test_with_the_queue_stops_all(self, scripted: CardwireServer) -> None:
        """Spec: Ruling E9."""
        with CardClient(scripted.socket_url) as client:
            for number in range(3):
                client.say("wait", event_id=f"c{number}")
            client.until(is_working)
            client.send({"type": "session.interrupt", "clear_queue": True})
            ends = [client.until_turn_ends()[-1] for _ in range(3)]

            assert [end["payload"]["status"] for end in ends] == ["cancelled"] * 3

    def test_of_a_turn_that_is_over_spares_the_next(
        self, scripted: CardwireServer
    ) -> None:
        """Case FR-43: a client that names the turn can never hit another."""
        with CardClient(scripted.socket_url) as client:
            client.say("hi", event_id="c1")
            client.until_turn_ends()
            client.say("stream 50", event_id="c2")
            client.send({"type": "session.interrupt", "turn_card_id": "turn_c1"})
            frames = client.until_turn_ends()

            assert frames[-1]["payload"]["status"] == "ok"


class TestInject:
    """Spec: Ruling E23."""

    def test_reaches_the_running_turn(self, scripted: CardwireServer) -> None:
        with CardClient(scripted.socket_url) as client:
            client.say("listen")
            client.until(lambda frame: is_close_of(frame, "message"))
            for words in ("more", "enough"):
                client.send({"type": "user.inject", "text": words})
            frames = client.until_turn_ends()

        said = [
            frame["payload"]["chunk"]
            for frame in frames
            if frame["type"] == "card.append"
        ]
        assert sorted(said) == ["enough", "more", "you said enough", "you said more"]

    def test_into_nothing_is_refused(self, scripted: CardwireServer) -> None:
        with CardClient(scripted.socket_url) as client:
            client.send({"type": "user.inject", "text": "hello?"})
            error = client.receive()["payload"]["inner"]["error"]

            assert (error["type"], error["code"]) == (
                "invalid_input",
                "NO_RUNNING_TURN",
            )


class TestEngineThatEndsTheProcess:
    """Spec: Ruling E11: it fails its own turn, and nobody else's."""

    @pytest.mark.parametrize("where", ["task", "group", "engine"])
    def test_fails_its_turn_alone(self, scripted: CardwireServer, where: str) -> None:
        with (
            CardClient(scripted.socket_url) as client,
            CardClient(scripted.socket_url) as other,
        ):
            other.say("wait")
            other.until(is_working)

            client.say(f"exit {where}")
            end = client.until_turn_ends()[-1]
            error = client.receive()["payload"]["inner"]["error"]
            client.say("hi")
            next_end = client.until_turn_ends()[-1]
            other.send({"type": "session.interrupt"})
            other_end = other.until_turn_ends()[-1]

        assert end["payload"]["status"] == "failed"
        assert error["type"] == "internal"
        assert end["payload"]["error"] == error
        assert next_end["payload"]["status"] == "ok"
        assert other_end["payload"]["status"] == "cancelled"


class TestKilledServer:
    """Spec: Ruling E14; cases FR-49, FR-57."""

    def test_leaves_no_card_open_and_runs_nothing_again(
        self, own_server: CardwireServer
    ) -> None:
        with on(own_server, "sess_1") as client:
            client.say("wait", event_id="c1")
            client.say("hi", event_id="c2")
            client.until(is_working)
            trace_id = client.trace_id
            before = list(client.raw[1:])
            own_server.kill()
        own_server.start()

        with on(own_server, "sess_1") as client:
            client.resume(0)
            frames = client.until_turn_ends()
            frames += client.until_turn_ends()

        resumed = next(n for n, raw in enumerate(client.raw) if '"resumed"' in raw)
        assert client.raw[resumed + 1 :][: len(before)] == before
        assert seqs_of(frames, trace_id) == list(range(1, len(frames) + 1))
        ends = [frame for frame in frames if is_close_of(frame, "turn")]
        assert [end["payload"]["status"] for end in ends] == ["failed", "ok"]
        assert ends[0]["payload"]["error"]["code"] == "WORKER_LOST"
        opened = {
            frame["envelope"]["card_id"]
            for frame in frames
            if frame["type"] == "card.add"
        }
        closed = [
            frame["envelope"]["card_id"]
            for frame in frames
            if frame["type"] == "card.close"
        ]
        assert sorted(closed) == sorted(opened)

    def test_goes_on_with_its_queue_without_any_client(
        self, own_server: CardwireServer
    ) -> None:
        """Spec: Ruling E9: the queue survives a restart."""
        with on(own_server, "sess_1") as client:
            client.say("wait", event_id="c1")
            client.say("hi", event_id="c2")
            client.until(lambda frame: frame["type"] == "session.event")
            own_server.kill()
        own_server.start()

        with on(own_server, "sess_1") as client:
            client.resume(0)
            frames = client.until_turn_ends() + client.until_turn_ends()

        assert closes_of(frames)[-1] == ("turn", "ok")


class TestStoppedServer:
    """Spec: design.md 1; cases HC-59, FR-177."""

    def test_closes_turns_and_sockets_truthfully(self, tmp_path: Path) -> None:
        server = CardwireServer(tmp_path, CARDWIRE_STOP_GRACE_S="0", **SCRIPTED)
        try:
            server.start()
            with on(server, "sess_1") as client:
                client.say("wait", event_id="c1")
                client.until(is_working)
                client.say("hi", event_id="c2")
                server.send_signal(signal.SIGTERM)
                frames = client.until_turn_ends()
                code = until_closed_socket(client)
            server.stop()
            server.start()
            with on(server, "sess_1") as client:
                client.resume(0)
                replayed = client.until_turn_ends() + client.until_turn_ends()
        finally:
            server.close()

        assert frames[-1]["payload"]["status"] == "cancelled"
        assert code == 1001
        assert error_codes(replayed) == ["SERVER_STOPPED"]
        assert closes_of(replayed)[-1] == ("turn", "ok")


def error_codes(frames: list[Frame]) -> list[str]:
    inners = [frame["payload"].get("inner") or {} for frame in frames]
    return [str(inner["error"]["code"]) for inner in inners if "error" in inner]


class TestTwoWorkers:
    """Spec: Ruling E26; design.md 4."""

    def test_show_the_same(self, workers: tuple[CardwireServer, ...]) -> None:
        """Cases HC-55, FR-127."""
        first, other = workers
        with on(first, "sess_same") as here:
            here.say("hi")
            here.until_turn_ends()
            with on(other, "sess_same") as there:
                there.replay(0)
                here.say("stream 500")
                here_frames = here.until_turn_ends()
                there_frames = there.until_turn_ends()

        assert there_frames == here_frames

    def test_queue_stop_and_inject_across(
        self, workers: tuple[CardwireServer, ...]
    ) -> None:
        first, other = workers
        with on(first, "sess_across") as here:
            here.say("listen", event_id="c1")
            here.until(lambda frame: is_close_of(frame, "message"))
            with on(other, "sess_across") as there:
                there.say("wait", event_id="c2")
                there.send({"type": "user.inject", "text": "enough"})
                here.until_turn_ends()
                there.until(is_working)
                there.send({"type": "session.interrupt"})
                end = here.until_turn_ends()[-1]

        assert end["envelope"]["card_id"] == "turn_c2"
        assert end["payload"]["status"] == "cancelled"

    def test_replace_one_that_stood_still(
        self, workers: tuple[CardwireServer, ...]
    ) -> None:
        """It wakes, stops what it ran, and shows its clients what became of it."""
        first, other = workers
        with on(other, "sess_still") as there, on(first, "sess_still") as here:
            here.say("wait", event_id="c1")
            before = here.until(is_working)
            first.send_signal(signal.SIGSTOP)
            try:
                there.send({"type": "ping"})
                seen_there = there.until_turn_ends()
                there.say("hi", event_id="c2")
                seen_there += there.until_turn_ends()
            finally:
                first.send_signal(signal.SIGCONT)
            seen_here = before + here.until_turn_ends() + here.until_turn_ends()
            here.say("hi", event_id="c3")
            end = here.until_turn_ends()[-1]

        assert closes_of(seen_here) == [
            ("message", "ok"),
            ("tool", "failed"),
            ("turn", "failed"),
            ("message", "ok"),
            ("turn", "ok"),
        ]
        assert seqs_of(seen_here, here.trace_id) == list(range(1, len(seen_here) + 1))
        assert end["payload"]["status"] == "ok"

    def test_replace_one_that_died(self, workers: tuple[CardwireServer, ...]) -> None:
        """The lease decides: these two share neither disk nor lock files."""
        first, other = workers
        with on(other, "sess_died") as there, on(first, "sess_died") as here:
            here.say("wait", event_id="c1")
            here.until(is_working)
            first.kill()
            there.send({"type": "ping"})
        with on(other, "sess_died") as there:
            there.resume(0)
            frames = there.until_turn_ends()
        first.start()

        assert closes_of(frames) == [
            ("message", "ok"),
            ("tool", "failed"),
            ("turn", "failed"),
        ]
        assert seqs_of(frames, there.trace_id) == list(range(1, len(frames) + 1))
