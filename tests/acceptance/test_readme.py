"""What the README shows works as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.client import CardClient, text_of
from tests.services import PROJECT, CardwireServer

README = (PROJECT / "README.md").read_text()


def example(name: str) -> str:
    """Return the code block that begins with the name of a file."""
    found = re.search(rf"```python\n(# {re.escape(name)}\n.*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]


class TestReadme:
    def test_engine_answers(self, tmp_path: Path) -> None:
        (tmp_path / "assistant.py").write_text(example("assistant.py"))
        server = CardwireServer(
            tmp_path,
            CARDWIRE_ENGINE="assistant.Assistant",
            PYTHONPATH=f"{PROJECT}:{tmp_path}",
        )
        try:
            server.start()
            with CardClient(server.socket_url) as client:
                client.say("hello")
                frames = client.until_turn_ends()
        finally:
            server.close()

        assert text_of(frames) == "You said **hello**."

    def test_client_holds_a_conversation(
        self, server: CardwireServer, tmp_path: Path
    ) -> None:
        script = tmp_path / "client.py"
        script.write_text(example("client.py"))
        command = [sys.executable, str(script), server.socket_url]
        done = subprocess.run(command, capture_output=True, text=True, check=True)

        assert "card.add turn" in done.stdout
        assert done.stdout.splitlines()[-1].startswith("card.close turn")

    @pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)\)", README))
    def test_links_lead_somewhere(self, target: str) -> None:
        assert target.startswith("http") or (PROJECT / target).exists()
