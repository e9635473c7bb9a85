"""How much the built-in engine reads, shows, runs and waits."""

from dataclasses import dataclass

#: Bytes of one KiB.
KIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The caps of one workspace; every one that cuts is told in the result."""

    #: Bytes of a file that `read` shows.
    read_bytes: int = 256 * KIB
    #: Files of one message that are looked at.
    attached_files: int = 10
    #: Bytes of a file that `stream` recites.
    stream_bytes: int = 1024 * KIB
    #: Bytes of a file that `search`, `count` and `summarise` look into.
    scan_bytes: int = 4 * 1024 * KIB
    #: Bytes that `write` and `append` leave in one file.
    write_bytes: int = 1024 * KIB
    #: Bytes of each side of a `diff`.
    diff_bytes: int = 256 * KIB
    #: Lines of each side of a `diff`: difflib is quadratic at worst.
    diff_lines: int = 3_000
    #: Rows of a listing.
    list_entries: int = 500
    #: Files that one walk through a folder meets.
    walk_files: int = 2_000
    #: Hits that one search shows.
    search_hits: int = 200
    #: Lines shown before and after a hit.
    search_context: int = 2
    #: Characters of one shown line.
    line_chars: int = 300
    #: Progress ticks of one walk, at most.
    progress_steps: int = 50
    #: Sub-agents of one summary.
    agents: int = 8
    #: Seconds a program may run.
    program_seconds: float = 30.0
    #: Bytes of a program's output that are kept.
    program_bytes: int = 64 * KIB
    #: Seconds between two heartbeats of long work.
    heartbeat_seconds: float = 2.0
    #: Numbers of one `count to`.
    count_to: int = 100_000
    #: Milliseconds between two chunks of a paced answer, at most.
    pace_ms: int = 10_000
