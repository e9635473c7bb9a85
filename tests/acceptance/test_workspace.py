"""The built-in engine asks, also across the death of its server.

Spec: EMIT 7; Rulings E15, E18.
"""

import os
from pathlib import Path

from tests.acceptance.client import CardClient, Frame, text_of
from tests.acceptance.racing import is_prompt
from tests.services import CardwireServer


def ask(server: CardwireServer, text: str) -> Frame:
    """Return the prompt that a message leads to."""
    with CardClient(f"{server.socket_url}?session_id=s1") as client:
        client.say(text)
        return client.until(is_prompt)[-1]


def answer_late(
    server: CardwireServer, prompt: Frame, decision: str, **payload: object
) -> list[Frame]:
    """Kill the server, answer at the next one, and return the turn that goes on."""
    server.kill()
    server.start_again()
    with CardClient(server.socket_url) as client:
        client.send({"type": "session.create", "session_id": "s1"})
        assert client.until(is_prompt)[-1] == prompt
        client.until_turn_ends()
        client.send(
            {
                "type": "prompt.user_response",
                "request_id": prompt["payload"]["request_id"],
                "decision": decision,
                "payload": payload,
            }
        )
        return client.until_turn_ends()


def tools_of(frames: list[Frame]) -> list[tuple[str, str]]:
    """Return name and status of each tool."""
    added = {
        frame["envelope"]["card_id"]: frame["payload"]["name"]
        for frame in frames
        if frame["type"] == "card.add" and frame["envelope"]["card_kind"] == "tool"
    }
    return [
        (added[frame["envelope"]["card_id"]], frame["payload"]["status"])
        for frame in frames
        if frame["type"] == "card.close" and frame["envelope"]["card_id"] in added
    ]


def readme(server: CardwireServer) -> Path:
    return server.data_dir / "workspace" / "README.md"


class TestKilledServer:
    def test_does_what_was_allowed_once(self, server: CardwireServer) -> None:
        """Spec: Ruling E15; case FR-21."""
        prompt = ask(server, "overwrite README.md with new")
        assert "# Your workspace" in prompt["payload"]["inner"]["message"]

        frames = answer_late(server, prompt, "approved", scope="once")

        assert tools_of(frames) == [("Write", "ok")]
        assert readme(server).read_text() == "new\n"
        os.truncate(readme(server), 0)
        server.kill()
        server.start_again()
        with CardClient(f"{server.socket_url}?session_id=s1") as client:
            assert client.nothing_else() == []
            client.say("read README.md")
            client.until_turn_ends()
        assert readme(server).read_text() == ""

    def test_does_nothing_that_was_denied(self, server: CardwireServer) -> None:
        prompt = ask(server, "run ls")

        frames = answer_late(server, prompt, "denied", message="too late")

        assert tools_of(frames) == []
        assert text_of(frames).endswith("You said: too late")

    def test_resumes_what_was_asked_for(self, server: CardwireServer) -> None:
        prompt = ask(server, "search larch in plan.md")

        frames = answer_late(
            server, prompt, "approved", selected_options=["docs/plan.md"]
        )

        assert tools_of(frames) == [("Search", "ok")]
        assert "docs/plan.md:4" in text_of(frames)

    def test_remembers_what_is_allowed_for_the_session(
        self, server: CardwireServer
    ) -> None:
        """Spec: Ruling E18."""
        prompt = ask(server, "run ls -la src")
        answer_late(server, prompt, "approved", scope="session")
        server.kill()
        server.start_again()

        with CardClient(f"{server.socket_url}?session_id=s1") as client:
            client.say("run ls -la src")
            frames = client.until_turn_ends()

        assert tools_of(frames) == [("Run", "ok")]
        assert not any(is_prompt(frame) for frame in frames)
