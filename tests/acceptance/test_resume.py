"""Continuing where a connection stopped: nothing lost, nothing doubled."""

import json
import urllib.request
from typing import Any

import pytest

from tests.acceptance.client import CardClient, Frame, inner_kind, seqs_of, text_of
from tests.services import CardwireServer


def resumed(frame: Frame) -> tuple[int, int]:
    inner = frame["payload"]["inner"]
    return inner["from_seq"], inner["to_seq"]


@pytest.fixture
def past(scripted: CardwireServer) -> CardClient:
    """A closed client that saw one whole turn of 24 frames."""
    with CardClient(scripted.socket_url) as client:
        client.say("stream 20")
        client.until_turn_ends()
    return client


def reconnect(server: CardwireServer, past: CardClient) -> CardClient:
    return CardClient(f"{server.socket_url}?session_id={past.session_id}")


class TestResume:
    @pytest.mark.parametrize("last_seq", [0, 1, 10, 23])
    def test_sends_exactly_what_is_missing(
        self, scripted: CardwireServer, past: CardClient, last_seq: int
    ) -> None:
        """Spec: Rulings E3, E5; cases FR-09, HC-50."""
        with reconnect(scripted, past) as client:
            missing = client.replay(last_seq)

        assert resumed(json.loads(client.raw[1])) == (last_seq + 1, 24)
        assert client.raw[2:-1] == past.raw[1 + last_seq :]
        assert len(missing) == 24 - last_seq

    def test_of_everything_is_what_a_missing_last_seq_means(
        self, scripted: CardwireServer, past: CardClient
    ) -> None:
        with reconnect(scripted, past) as client:
            client.send({"type": "session.resume", "trace_id": past.trace_id})
            answer = client.receive()
            frames = [client.receive() for _ in range(24)]

        assert resumed(answer) == (1, 24)
        assert seqs_of(frames, past.trace_id) == list(range(1, 25))

    def test_with_nothing_missing_replays_nothing(
        self, scripted: CardwireServer, past: CardClient
    ) -> None:
        with reconnect(scripted, past) as client:
            answer = client.resume(24)

            assert resumed(answer) == (25, 24)
            assert client.nothing_else() == []

    @pytest.mark.parametrize("last_seq", [25, 999_999, 2**53 - 1])
    def test_ahead_of_the_log_fails_and_live_frames_still_come(
        self, scripted: CardwireServer, past: CardClient, last_seq: int
    ) -> None:
        """Spec: Ruling E5; case FR-05."""
        with reconnect(scripted, past) as client:
            answer = client.resume(last_seq)
            client.say("hi")
            frames = client.until_turn_ends()

        assert answer["payload"]["inner"]["reason"] == "unknown_trace"
        assert seqs_of(frames, past.trace_id) == list(range(25, 25 + len(frames)))

    def test_of_less_does_not_cut_one_that_is_under_way(
        self, scripted: CardwireServer
    ) -> None:
        """Two resumes back to back: what the first promised comes. Ruling E5."""
        with CardClient(scripted.socket_url) as past:
            past.say("stream 30000")
            past.until_turn_ends()
        with reconnect(scripted, past) as client:
            for last_seq in (0, 30_004):
                frame = {"type": "session.resume", "trace_id": past.trace_id}
                client.send(frame | {"last_seq": last_seq})
            frames = client.until_turn_ends()

        assert seqs_of(frames, past.trace_id) == list(range(1, 30_005))

    def test_of_another_trace_fails(
        self, scripted: CardwireServer, past: CardClient
    ) -> None:
        with reconnect(scripted, past) as client:
            for trace in ("tr_none", client.opened["envelope"]["trace_id"]):
                answer = client.resume(0, trace)

                assert answer["payload"]["inner"]["reason"] == "unknown_trace"

    def test_by_trace_alone_binds_a_fresh_connection(
        self, scripted: CardwireServer, past: CardClient
    ) -> None:
        with CardClient(scripted.socket_url) as client:
            replayed = client.replay(0, past.trace_id)
            client.say("hi")
            live = client.until_turn_ends()

        answer = json.loads(client.raw[1])
        assert answer["envelope"]["session_id"] == past.session_id
        assert len(replayed) == 24
        assert live[0]["envelope"]["seq"] == 25

    def test_of_a_client_that_saw_only_opened_gets_all(
        self, scripted: CardwireServer
    ) -> None:
        """Case FR-11."""
        url = f"{scripted.socket_url}?session_id=sess_only_opened"
        with CardClient(url) as first, CardClient(url) as second:
            trace = first.trace_id
            first.close()
            second.say("hi")
            second.until_turn_ends()
        with CardClient(url) as client:
            assert seqs_of(client.replay(0, trace), trace) == [1, 2, 3, 4, 5, 6]

    def test_meets_live_frames_without_gap_or_double(
        self, scripted: CardwireServer
    ) -> None:
        """Cases FR-01, FR-03."""
        url = f"{scripted.socket_url}?session_id=sess_meets_live"
        for round_no in range(5):
            with CardClient(url) as first:
                first.say("paced 60")
                seen = first.until(lambda frame: "9 " in json.dumps(frame))
            last_seq = seen[-1]["envelope"]["seq"]
            with CardClient(url) as second:
                answer = second.resume(last_seq)
                frames = second.until_turn_ends()

            seqs = seqs_of(frames, first.trace_id)
            assert seqs == list(range(last_seq + 1, seqs[-1] + 1)), round_no
            assert resumed(answer)[0] == last_seq + 1
            assert text_of(seen + frames) == "".join(f"{n} " for n in range(60))

    def test_leaves_no_trace_of_mere_visits(
        self, scripted: CardwireServer, past: CardClient
    ) -> None:
        """Case FR-147."""
        for _ in range(10):
            with reconnect(scripted, past) as client:
                client.resume(24)

        with reconnect(scripted, past) as client:
            assert client.opened["payload"]["inner"]["last_seq"] == 24


class TestKill:
    def test_loses_no_frame_that_was_seen(self, own_server: CardwireServer) -> None:
        """Spec: Rulings E2, E3; case FR-07."""
        with CardClient(own_server.socket_url) as client:
            client.say("paced 2000")
            seen = client.until(lambda frame: "50 " in json.dumps(frame))
            own_server.kill()
        raw = client.raw[1:]
        own_server.start()
        url = f"{own_server.socket_url}?session_id={client.session_id}"
        with CardClient(url) as again:
            again.resume(0)
            start = len(again.raw)
            # The error that follows the close of the lost turn is its last frame.
            log = again.until(lambda frame: inner_kind(frame) == "error")
            newest = log[-1]["envelope"]["seq"]
            snapshot = self.get(own_server, client.session_id)

        assert again.trace_id == client.trace_id
        assert seqs_of(log, client.trace_id) == list(range(1, newest + 1))
        assert again.raw[start:][: len(raw)] == raw
        assert newest > seen[-1]["envelope"]["seq"]
        assert snapshot["last_seq"] == newest
        (message,) = [c for c in snapshot["cards"] if c["card_kind"] == "message"]
        assert message["channels"]["text"] == text_of(log)

    def get(self, server: CardwireServer, session_id: str) -> Any:
        path = f"{server.url}/v1/sessions/{session_id}/snapshot"
        with urllib.request.urlopen(path) as response:
            return json.load(response)

    def test_leaves_sessions_that_go_on(self, own_server: CardwireServer) -> None:
        url = f"{own_server.socket_url}?session_id=sess_on"
        with CardClient(url) as client:
            client.say("hi")
            client.until_turn_ends()
        own_server.kill()
        own_server.start()
        with CardClient(url) as client:
            client.say("history")
            frames = client.until_turn_ends()

        assert frames[0]["envelope"]["seq"] == 7
        assert "Hello World!" in text_of(frames)
        assert not [f for f in frames if inner_kind(f) == "error"]
