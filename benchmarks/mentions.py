"""What it costs to make mentions of artifacts links while a text streams."""

import time
from collections.abc import Sequence
from statistics import median

from benchmarks.orders import CHUNK
from benchmarks.results import Result, at_most
from benchmarks.servers import CARDWIRE, running
from benchmarks.streaming import measure_burst
from cards.protocol.mentions import KnownArtifacts, MentionRewriter

#: Deltas that the server streams to tell what one costs without names.
DELTAS = 4000

#: Measurements of each kind, in turn; the least disturbed one counts.
ROUNDS = 3

#: Characters of a chunk, about a token of a model.
TOKEN_LENGTH = 5

WORDS = (
    "The budget of this year grew by a third while costs stayed where they were. We"
    " looked at each team and at what it had planned, and in the end agreed on a plan"
    " that everybody can live with; see {} for the details, and {} for what is left."
    " 结果见{}，请查收。Use `{}` as it is, or [the last one](https://example.org/{}).\n\n"
)

STEMS = (
    *("report", "summary", "notes", "analysis", "budget", "draft", "chart", "index"),
    *("invoice", "minutes", "outline", "schedule", "Q3 review", "offer", "README"),
)

#: Texts that make a careless reader go back again and again.
HOSTILE = {
    "ticks": "`",
    "runs_of_ticks": "".join("`" * count + " " for count in range(1, 40)),
    "brackets": "[",
    "links_begun": "[a](b",
    "targets": "[a](b()",
    "tags": "<a b=",
    "escapes": "\\",
    "quotes": "> ",
    "names_begun": "report-1 report-",
    "names_in_brackets": "[report-1.md ",
}


def known_artifacts(count: int) -> KnownArtifacts:
    """Return artifacts with names as people and models give them."""
    known = KnownArtifacts()
    for number in range(count):
        known.learn(f"art_{number:016x}", _name(number))
    return known


def _name(number: int) -> str:
    stem = STEMS[number % len(STEMS)]
    return f"{stem}-{number}.{('md', 'csv', 'pdf', 'png')[number % 4]}"


def prose(length: int, names: int) -> str:
    """Return a text that mentions each of the names now and then."""
    paragraphs: list[str] = []
    number = written = 0
    while written < length:
        mentioned = [_name((number + each) % names) for each in range(5)]
        paragraphs.append(WORDS.format(*mentioned))
        number += 5
        written += len(paragraphs[-1])
    return "".join(paragraphs)[:length]


def _chunks(text: str, length: int) -> Sequence[str]:
    return [text[at : at + length] for at in range(0, len(text), length)]


def _seconds(known: KnownArtifacts, chunks: Sequence[str]) -> float:
    """Return the CPU time of streaming chunks, without that of going through them."""
    rewriter = MentionRewriter(known)
    started = time.process_time()
    for chunk in chunks:
        rewriter.feed(chunk)
    rewriter.flush()
    spent = time.process_time() - started
    started = time.process_time()
    for chunk in chunks:
        chunk.isspace()
    return spent - (time.process_time() - started)


def share_of_streaming() -> Result:
    """Compare a delta's way through the server with that through the rewriter."""
    chunks = [CHUNK] * DELTAS
    cpu_us: list[float] = []
    feed_us: dict[int, list[float]] = {0: [], 100: []}
    with running(CARDWIRE) as (server,):
        for _ in range(1 + ROUNDS):
            burst = measure_burst(server, session_count=1, deltas=DELTAS)
            cpu_us.append(burst.cpu_us_per_delta)
            for count, found in feed_us.items():
                seconds = _seconds(known_artifacts(count), chunks)
                found.append(seconds / DELTAS * 1e6)
    delta_us = median(cpu_us[1:])
    return Result(
        "mentions-100-names",
        {
            "share": min(feed_us[100]) / delta_us,
            "feed_us": min(feed_us[100]),
            "feed_us_no_names": min(feed_us[0]),
            "delta_cpu_us": delta_us,
        },
        (at_most("share", 0.05),),
    )


def growth() -> Result:
    """Stream twice the text, and know ten times the names."""
    known, fewer = known_artifacts(1000), known_artifacts(100)
    texts = {
        "whole": _chunks(prose(100_000, 1000), TOKEN_LENGTH),
        "half": _chunks(prose(50_000, 1000), TOKEN_LENGTH),
        "fewer": _chunks(prose(100_000, 100), TOKEN_LENGTH),
    }
    least = dict.fromkeys(texts, float("inf"))
    for _ in range(ROUNDS):
        for name, chunks in texts.items():
            spent = _seconds(fewer if name == "fewer" else known, chunks)
            least[name] = min(least[name], spent)
    return Result(
        "mentions-1000-names-100-kb",
        {
            "ratio_twice_the_text": least["whole"] / least["half"],
            "ratio_ten_times_the_names": least["whole"] / least["fewer"],
            "whole_ms": least["whole"] * 1e3,
            "chunk_us": least["whole"] / len(texts["whole"]) * 1e6,
        },
        (at_most("ratio_twice_the_text", 2.3), at_most("ratio_ten_times_the_names", 2)),
    )


def hostile() -> Result:
    """Stream texts, character by character, that hold back and resolve nothing."""
    known = known_artifacts(1000)
    figures: dict[str, float] = {}
    worst_ratio = 0.0
    for name, piece in HOSTILE.items():
        half, whole = (
            list((piece * (length // len(piece) + 1))[:length])
            for length in (5_000, 10_000)
        )
        pairs = [(_seconds(known, half), _seconds(known, whole)) for _ in range(ROUNDS)]
        least_half, least_whole = (min(each) for each in zip(*pairs, strict=True))
        worst_ratio = max(worst_ratio, least_whole / least_half)
        figures[f"{name}_us"] = least_whole / len(whole) * 1e6
    return Result(
        "mentions-hostile",
        {"worst_ratio_twice_the_text": worst_ratio, **figures},
        (at_most("worst_ratio_twice_the_text", 2.6),),
    )
