"""Kill a streaming server again and again, and look for what was lost.

`make chaos` does it 200 times with 20 sessions; the test suite a few times.

What is counted, and must be 0:

| what | how it is found |
|---|---|
| frames lost | a hole in the seqs of a client or of the log |
| frames changed | a frame that a client saw and the log holds in other bytes |
| frames doubled | a seq that came twice in other bytes, or twice on one connection |
| cards left open | cards that are open in the snapshot when all is done |
| tools run twice | an event_id that is in the ledger twice |
| messages lost | a message that a client sent, and no turn shows |

Spec: Rulings E2, E3, E5, E8, E14; issue "Liveness and ownership", must reach.
"""

import argparse
import asyncio
import json
import random
import tempfile
import urllib.request
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.services import CardwireServer

ENGINE = "tests.acceptance.engines.ChaosEngine"

#: Frames of all clients after which the server is killed, at most.
MAX_FRAMES_PER_LIFE = 1500

#: Seconds after which a client that waits for a frame asks again.
PATIENCE_S = 5.0


@dataclass(slots=True)
class Report:
    """What was found; everything but the first two must be 0."""

    kills: int = 0
    frames: int = 0
    lost: int = 0
    changed: int = 0
    doubled: int = 0
    open_cards: int = 0
    tools_twice: int = 0
    messages_lost: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost, changed, doubled, left open or done twice."""
        kinds = asdict(self)
        return not any(kinds[each] for each in kinds if each not in {"kills", "frames"})


@dataclass
class Life:
    """One life of the server, which ends after so many frames."""

    frames_left: int
    is_over: asyncio.Event = field(default_factory=asyncio.Event)

    def count(self) -> None:
        self.frames_left -= 1
        if self.frames_left <= 0:
            self.is_over.set()


class ChaosClient:
    """Keeps one session busy across the server's lives, and every frame it saw."""

    def __init__(self, server: CardwireServer, session_id: str) -> None:
        self._url = f"{server.socket_url}?session_id={session_id}"
        self.session_id = session_id
        self.frames: dict[int, str] = {}
        self.sent: list[str] = []
        self.changed = 0
        self.doubled = 0
        self.life = Life(1)
        self.is_done = False
        self._trace_id = ""
        self._ended: set[str] = set()

    async def run(self) -> None:
        """Talk until told to stop and the last turn has ended."""
        while not (self.is_done and self._is_at_rest()):
            try:
                async with connect(self._url, max_size=None) as socket:
                    await self._talk(socket)
            except (OSError, ConnectionClosed, InvalidHandshake, TimeoutError):
                # The server is dead or dying: come back, as a page would.
                await asyncio.sleep(0.1)

    def _is_at_rest(self) -> bool:
        return all(f"turn_{event_id}" in self._ended for event_id in self.sent)

    async def _talk(self, socket: ClientConnection) -> None:
        opened = json.loads(await socket.recv())
        self._trace_id = opened["payload"]["inner"]["trace_id"]
        seen_here: set[int] = set()
        resume = {"type": "session.resume", "trace_id": self._trace_id}
        await socket.send(json.dumps(resume | {"last_seq": len(self.frames)}))
        await self._say_next(socket)
        while not (self.is_done and self._is_at_rest()):
            async with asyncio.timeout(PATIENCE_S):
                text = str(await socket.recv())
            frame = json.loads(text)
            if frame["envelope"]["trace_id"] != self._trace_id:
                continue
            self.life.count()
            self._keep(frame, text, seen_here)
            if self._ends_turn(frame):
                await self._say_next(socket)

    def _keep(self, frame: dict[str, Any], text: str, seen_here: set[int]) -> None:
        seq = frame["envelope"]["seq"]
        self.doubled += seq in seen_here and self.frames.get(seq) != text
        seen_here.add(seq)
        self.changed += self.frames.setdefault(seq, text) != text

    def _ends_turn(self, frame: dict[str, Any]) -> bool:
        envelope = frame["envelope"]
        if frame["type"] != "card.close" or envelope["card_kind"] != "turn":
            return False
        self._ended.add(envelope["card_id"])
        return True

    async def _say_next(self, socket: ClientConnection) -> None:
        """Say something new, or again what may not have arrived."""
        if self._is_at_rest():
            if self.is_done:
                return
            self.sent.append(f"{self.session_id}-{len(self.sent)}")
        message = {"type": "user.message", "text": "go", "event_id": self.sent[-1]}
        await socket.send(json.dumps(message))


async def run_chaos(
    *, kills: int, sessions: int, seed: int, data_dir: Path, **environment: str
) -> Report:
    """Kill the server so many times, then let it finish and look at everything."""
    chance = random.Random(seed)  # noqa: S311 - a schedule, not a secret
    server = CardwireServer(data_dir, CARDWIRE_ENGINE=ENGINE, **environment)
    await asyncio.to_thread(server.start)
    clients = [ChaosClient(server, f"sess_{number}") for number in range(sessions)]
    running = [asyncio.create_task(client.run()) for client in clients]
    try:
        for _ in range(kills):
            life = Life(chance.randint(1, MAX_FRAMES_PER_LIFE))
            for client in clients:
                client.life = life
            await life.is_over.wait()
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start_again)
        for client in clients:
            client.is_done = True
        await asyncio.gather(*running)
        return await asyncio.to_thread(look, server, clients, kills)
    finally:
        for task in running:
            task.cancel()
        server.close()


def look(server: CardwireServer, clients: list[ChaosClient], kills: int) -> Report:
    """Compare what the clients saw with what the log holds."""
    report = Report(kills=kills)
    for client in clients:
        log = {
            json.loads(text)["envelope"]["seq"]: text for text in events(server, client)
        }
        report.frames += len(log)
        report.lost += len(set(range(1, len(log) + 1)) - set(log))
        # It left with the close of its last turn; an error may have followed that.
        report.lost += max(client.frames) - len(client.frames)
        report.changed += client.changed
        report.changed += sum(
            log.get(seq) != text for seq, text in client.frames.items()
        )
        report.doubled += client.doubled
        cards = get(server, f"/v1/sessions/{client.session_id}/snapshot")["cards"]
        report.open_cards += sum(card["status"] == "open" for card in cards)
        turns = {c["card_id"] for c in cards if c["card_kind"] == "turn"}
        report.messages_lost += len({f"turn_{sent}" for sent in client.sent} - turns)
    ledger = (server.data_dir / "ledger").read_text().split()
    report.tools_twice = sum(count - 1 for count in Counter(ledger).values())
    return report


def events(server: CardwireServer, client: ChaosClient) -> list[str]:
    """Return a session's log, each frame as its stored text."""
    path = f"/v1/sessions/{client.session_id}/events?limit=5000&after_seq="
    texts: list[str] = []
    after_seq: int | None = 0
    while after_seq is not None:
        page = get(server, f"{path}{after_seq}")
        # The stored frames are compact JSON in the order of their keys.
        texts += [
            json.dumps(frame, separators=(",", ":"), ensure_ascii=False)
            for frame in page["events"]
        ]
        after_seq = page["next_after_seq"]
    return texts


def get(server: CardwireServer, path: str) -> Any:
    """Return what a route of the server answers."""
    with urllib.request.urlopen(server.url + path, timeout=60) as answer:
        return json.load(answer)


def main() -> None:
    """Run from the command line; exit 1 when something was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.chaos")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cardwire-chaos-") as data_dir:
        report = asyncio.run(
            run_chaos(
                kills=options.kills,
                sessions=options.sessions,
                seed=options.seed,
                data_dir=Path(data_dir),
            )
        )
    print(report)  # noqa: T201 - a command
    raise SystemExit(not report.is_clean)


if __name__ == "__main__":
    main()
