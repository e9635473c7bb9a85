"""What a client sees of conversations, on both databases."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema
import pytest

from cards.protocol.wire_schema import wire_schema
from tests.acceptance.client import (
    CardClient,
    Frame,
    error_of,
    inner_kind,
    seqs_of,
    text_of,
)
from tests.services import CardwireServer


def of_kind(frames: list[Frame], card_kind: str, frame_type: str) -> list[Frame]:
    return [
        frame
        for frame in frames
        if frame["type"] == frame_type and frame["envelope"]["card_kind"] == card_kind
    ]


class TestHandshake:
    def test_greets_with_opened_before_anything_else(
        self, scripted: CardwireServer
    ) -> None:
        """Spec: EMIT 2.2; Ruling E1."""
        with CardClient(scripted.socket_url) as client:
            inner = client.opened["payload"]["inner"]

            assert inner_kind(client.opened) == "opened"
            assert client.opened["envelope"]["seq"] == 1
            assert inner["protocol_version"] == "2.0"
            assert inner["model"] == "scripted"
            assert inner["last_seq"] == 0
            assert inner["capabilities"]["streaming"] is True

    def test_binds_to_the_session_of_the_url(self, scripted: CardwireServer) -> None:
        with CardClient(f"{scripted.socket_url}?session_id=sess_url") as client:
            assert client.session_id == "sess_url"

    def test_answers_create_with_a_fresh_opened(self, scripted: CardwireServer) -> None:
        """Spec: Ruling E1; case HC-02."""
        with CardClient(scripted.socket_url) as client:
            client.send({"type": "session.create", "session_id": "sess_lab_01"})
            opened = client.receive()
            client.say("hi")
            frames = client.until_turn_ends()

        assert inner_kind(opened) == "opened"
        ids = {frame["envelope"]["session_id"] for frame in [opened, *frames]}
        assert ids == {"sess_lab_01"}

    @pytest.mark.parametrize("given", ["sess lab", "../x", "sess_实验", "s" * 200, ""])
    def test_refuses_a_session_id_of_another_shape(
        self, scripted: CardwireServer, given: str
    ) -> None:
        with CardClient(scripted.socket_url) as client:
            client.send({"type": "session.create", "session_id": given})
            error = error_of(client.receive())
            client.say("hi")

            assert error["details"]["field"] == "session_id"
            assert client.until_turn_ends()


class TestTrace:
    def test_numbers_frames_without_holes_across_turns(
        self, scripted: CardwireServer
    ) -> None:
        """Spec: Ruling E2."""
        with CardClient(scripted.socket_url) as client:
            client.say("hi")
            frames = client.until_turn_ends()
            client.say("list")
            frames += client.until_turn_ends()

        seqs = seqs_of(frames, client.trace_id)
        assert seqs == list(range(1, len(frames) + 1))

    def test_keeps_the_frames_of_one_connection_out_of_the_log(
        self, scripted: CardwireServer
    ) -> None:
        """Spec: Ruling E2."""
        with CardClient(scripted.socket_url) as client:
            client.send({"type": "nope"})
            error = client.receive()

        assert error["envelope"]["trace_id"] == client.opened["envelope"]["trace_id"]
        assert error["envelope"]["trace_id"] != client.trace_id
        assert error["envelope"]["seq"] == 2

    def test_shows_two_connections_the_same_bytes(
        self, scripted: CardwireServer
    ) -> None:
        """Spec: Ruling E26; case HC-55."""
        url = f"{scripted.socket_url}?session_id=sess_two_tabs"
        with CardClient(url) as first, CardClient(url) as second:
            first.say("everything")
            first.until_turn_ends()
            second.until_turn_ends()

        assert first.raw[1:] == second.raw[1:]

    def test_reaches_three_hundred_sockets(self, scripted: CardwireServer) -> None:
        """Case FR-137, at the size that a test machine has files for."""
        url = f"{scripted.socket_url}?session_id=sess_many"
        with ThreadPoolExecutor(16) as pool:
            clients = list(pool.map(lambda _: CardClient(url), range(60)))
            clients[0].say("stream 50")
            frames = list(pool.map(lambda client: client.until_turn_ends(), clients))
            list(pool.map(lambda client: client.close(), clients))

        assert {len(each) for each in frames} == {54}
        assert len({tuple(client.raw[1:]) for client in clients}) == 1


@pytest.fixture(scope="module")
def frames(scripted: CardwireServer) -> list[Frame]:
    """A turn that uses every kind of card."""
    with CardClient(scripted.socket_url) as client:
        client.say("everything")
        return client.until_turn_ends()


class TestCards:
    def test_fit_the_wire_schema(self, frames: list[Frame]) -> None:
        validator = jsonschema.Draft202012Validator(wire_schema())

        for frame in frames:
            validator.validate(frame)

    def test_cover_the_kinds(self, frames: list[Frame]) -> None:
        kinds = {f["envelope"]["card_kind"] for f in frames if f["type"] == "card.add"}

        assert kinds == {
            "turn", "message", "agent", "plan", "step", "thinking", "memory_op",
            "budget", "todo", "team", "system",
        }  # fmt: skip

    def test_close_each_tracked_card_once(self, frames: list[Frame]) -> None:
        """Spec: EMIT 10.9; Ruling E12."""
        untracked = {"memory_op", "budget", "todo", "team", "system", ""}
        added = [
            f["envelope"]["card_id"]
            for f in frames
            if f["type"] == "card.add" and f["envelope"]["card_kind"] not in untracked
        ]
        closed = [f["envelope"]["card_id"] for f in frames if f["type"] == "card.close"]

        assert sorted(closed) == sorted(added)

    def test_show_a_system_topic_once(self, frames: list[Frame]) -> None:
        """Spec: EMIT 10.9."""
        (notice,) = of_kind(frames, "system", "card.add")

        assert notice["envelope"]["severity"] == "warn"
        assert notice["hint"]["icon"] == "warning"

    def test_nest_the_agent_of_a_step_under_it(self, frames: list[Frame]) -> None:
        """Spec: EMIT 10, topology."""
        (agent,) = of_kind(frames, "agent", "card.add")

        assert agent["envelope"]["parent_card_id"] == "step_s1"

    def test_close_steps_with_their_own_ends(self, frames: list[Frame]) -> None:
        statuses = {
            f["envelope"]["card_id"]: f["payload"]["status"]
            for f in of_kind(frames, "step", "card.close")
        }

        assert statuses == {"step_s1": "ok", "step_s2": "skipped"}

    def test_sum_up_metrics_on_the_turn(self, frames: list[Frame]) -> None:
        metrics = frames[-1]["metrics"]

        assert metrics["tokens_in"] == 15
        assert metrics["tokens_out"] == 2
        assert metrics["cost_usd"] == 0.5
        assert metrics["model"] == "m1"
        assert metrics["duration_ms"] >= 0

    def test_have_titles_without_tokens(self, frames: list[Frame]) -> None:
        """Spec: Ruling E6."""
        hints = [frame["hint"] for frame in frames if frame["type"] == "card.add"]

        assert all(hint["title"] and "{" not in hint["title"] for hint in hints)
        assert all(hint["icon"] for hint in hints)

    def test_carry_the_users_words(self, frames: list[Frame]) -> None:
        """Spec: Ruling E28."""
        turn = frames[0]

        assert turn["payload"]["input"]["text"] == "everything"
        assert turn["hint"]["summary"] == "everything"


class TestOddValues:
    def test_never_break_a_turn_or_a_replay(self, scripted: CardwireServer) -> None:
        """Cases FR-59, FR-61, FR-67, FR-75; engine-api.md, Details."""
        with CardClient(scripted.socket_url) as client:
            client.say("odd")
            frames = client.until_turn_ends()
            client.resume(0)
            replayed = client.until_turn_ends()

        output = of_kind(frames, "tool", "card.close")[0]["payload"]["inner"]["output"]
        assert output["big"] == "100000000000000000000"
        assert output["nan"] == "NaN"
        assert output["loop"] == [1, "(cycle)"]
        assert text_of(frames) == "a\ufffd and \ufffd and 实验😀"
        assert frames[-1]["payload"]["status"] == "ok"
        assert replayed == frames


class TestFailure:
    def test_closes_children_before_parents(self, scripted: CardwireServer) -> None:
        """Spec: Ruling E11; case HC-58."""
        with CardClient(scripted.socket_url) as client:
            client.say("boom")
            frames = client.until(lambda frame: inner_kind(frame) == "error")

        closes = [f for f in frames if f["type"] == "card.close"]
        kinds = [f["envelope"]["card_kind"] for f in closes]
        assert kinds == ["tool", "agent", "message", "turn"]
        assert {f["payload"]["status"] for f in closes} == {"failed"}
        assert all(f["payload"]["error"]["user_message"] for f in closes)
        assert all(f["envelope"]["severity"] == "error" for f in closes)

    def test_logs_one_session_error(self, scripted: CardwireServer) -> None:
        with CardClient(scripted.socket_url) as client:
            client.say("boom")
            client.until(lambda frame: inner_kind(frame) == "error")
            client.say("hi")
            after = client.until_turn_ends()
            client.resume(0)
            log = client.until(
                lambda f: f["envelope"]["seq"] == after[-1]["envelope"]["seq"]
            )

        assert len([f for f in log if inner_kind(f) == "error"]) == 1
        assert after[-1]["payload"]["status"] == "ok"

    def test_lets_the_engine_choose_the_error(self, scripted: CardwireServer) -> None:
        """Spec: EMIT 12; case HC-10."""
        with CardClient(scripted.socket_url) as client:
            client.say("refuse")
            frames = client.until(lambda frame: inner_kind(frame) == "error")

        tool = of_kind(frames, "tool", "card.close")[0]["payload"]
        assert tool["status"] == "failed"
        assert tool["error"]["type"] == "tool_timeout"
        assert tool["error"]["code"] == "BASH_TIMEOUT"
        assert tool["error"]["retryable"] is True
        error = error_of(frames[-1])
        assert (error["type"], error["code"]) == ("rate_limit", "UPSTREAM_429")
        assert error["retry_after_ms"] == 5000


class TestHistory:
    def test_gives_the_engine_earlier_turns(self, scripted: CardwireServer) -> None:
        with CardClient(scripted.socket_url) as client:
            client.say("hi")
            client.until_turn_ends()
            client.say("history")
            frames = client.until_turn_ends()

        assert text_of(frames) == "1 user: hi\n1 assistant: Hello World!\n"


class TestSameMessageTwice:
    def test_starts_one_turn(self, scripted: CardwireServer) -> None:
        """Spec: Ruling E8; cases FR-143, FR-145."""
        url = f"{scripted.socket_url}?session_id=sess_idem"
        with CardClient(url) as client:
            client.say("hi", event_id="c1")
            client.until_turn_ends()
        with CardClient(url) as client:
            client.say("hi", event_id="c1")
            answer = client.receive()
            rest = client.nothing_else()

        assert inner_kind(answer) == "updated"
        assert answer["payload"]["inner"]["turn_card_id"] == "turn_c1"
        assert rest == []

    def test_refuses_other_words_under_the_same_id(
        self, scripted: CardwireServer
    ) -> None:
        with CardClient(scripted.socket_url) as client:
            client.say("hi", event_id="c1")
            client.until_turn_ends()
            client.say("list", event_id="c1")

            error = error_of(client.receive())

        assert error["details"]["field"] == "event_id"
        assert error["details"]["event_id"] == "c1"


class TestQueue:
    def test_runs_messages_in_order(self, scripted: CardwireServer) -> None:
        """Spec: Ruling E9; case HC-56."""
        with CardClient(scripted.socket_url) as client:
            client.say("paced 20", event_id="a")
            client.say("hi", event_id="b")
            first = client.until_turn_ends()
            second = client.until_turn_ends()

        queues = [
            f["payload"]["inner"]["queue"]
            for f in first + second
            if "queue" in f["payload"].get("inner", {})
        ]
        assert queues == [[{"event_id": "b", "text": "hi"}], []]
        assert first[-1]["envelope"]["card_id"] == "turn_a"
        assert second[-1]["envelope"]["card_id"] == "turn_b"

    def test_refuses_what_does_not_fit(self, scripted: CardwireServer) -> None:
        with CardClient(scripted.socket_url) as client:
            client.say("paced 100")
            for _ in range(9):
                client.say("hi")
            frames = client.until(lambda frame: inner_kind(frame) == "error")

        error = error_of(frames[-1])
        assert (error["type"], error["retryable"]) == ("overloaded", True)


class TestRest:
    def get(self, server: CardwireServer, path: str) -> Any:
        import urllib.request

        with urllib.request.urlopen(server.url + path) as response:
            return json.load(response)

    def test_snapshot_equals_the_folded_frames(self, scripted: CardwireServer) -> None:
        """Spec: Ruling E5."""
        with CardClient(scripted.socket_url) as client:
            client.say("everything")
            frames = client.until_turn_ends()

        snapshot = self.get(scripted, f"/v1/sessions/{client.session_id}/snapshot")
        assert snapshot["last_seq"] == frames[-1]["envelope"]["seq"]
        assert snapshot["trace_id"] == client.trace_id
        assert snapshot["cards"][0]["status"] == "ok"
        assert [card["card_id"] for card in snapshot["cards"]] == [
            f["envelope"]["card_id"] for f in frames if f["type"] == "card.add"
        ]

    def test_events_are_the_frames_that_were_sent(
        self, scripted: CardwireServer
    ) -> None:
        with CardClient(scripted.socket_url) as client:
            client.say("list")
            frames = client.until_turn_ends()

        path = f"/v1/sessions/{client.session_id}/events"
        first = self.get(scripted, f"{path}?limit=5")
        rest = self.get(scripted, f"{path}?after_seq={first['next_after_seq']}")
        assert first["events"] + rest["events"] == frames
        assert rest["next_after_seq"] is None
