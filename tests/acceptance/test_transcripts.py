"""The scenarios of EMIT 14, against a real server."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cards.protocol.wire_schema import wire_schema
from tests.acceptance.client import CardClient, Frame
from tests.services import CardwireServer

TRANSCRIPTS = sorted((Path(__file__).parent.parent / "transcripts").glob("*.jsonl"))


def read_transcript(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Names:
    """What the transcript's `$names` of cards stand for, bound at first sight."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def resolve(self, name: str | None, actual: str | None) -> str | None:
        if name is None or not name.startswith("$"):
            return name
        return self._ids.setdefault(name, str(actual))


def check_frame(line: dict[str, Any], frame: Frame, names: Names) -> None:
    envelope, payload = frame["envelope"], frame["payload"]
    assert frame["type"] == line["frame"]
    assert envelope["card_id"] == names.resolve(line["card"], envelope["card_id"])
    if "kind" in line:
        assert envelope["card_kind"] == line["kind"]
    if "parent" in line:
        parent = envelope.get("parent_card_id")
        assert parent == names.resolve(line["parent"], parent)
    assert envelope["agent_id"] == line.get("agent", "main")
    assert payload == deep_merge(payload, line.get("payload", {}))
    assert not set(line.get("absent", ())) & set(payload)
    assert set(line.get("metrics", ())) <= set(frame.get("metrics", {}))


def deep_merge(base: Any, patch: Any) -> Any:
    if isinstance(base, dict) and isinstance(patch, dict):
        return base | {key: deep_merge(base.get(key), patch[key]) for key in patch}
    return patch


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
class TestTranscript:
    def test_plays_in_exactly_this_order(
        self, scripted: CardwireServer, path: Path
    ) -> None:
        names = Names()
        with CardClient(scripted.socket_url) as client:
            for line in read_transcript(path)[1:]:
                if "send" in line:
                    client.send(line["send"])
                else:
                    check_frame(line, client.receive(), names)

            assert client.nothing_else() == []

    def test_fits_the_wire_schema(self, scripted: CardwireServer, path: Path) -> None:
        validator = jsonschema.Draft202012Validator(wire_schema())
        lines = read_transcript(path)
        with CardClient(scripted.socket_url) as client:
            client.send(lines[1]["send"])
            frames = client.until_turn_ends()

        for frame in [client.opened, *frames]:
            validator.validate(frame)
