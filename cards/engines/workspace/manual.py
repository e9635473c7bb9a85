"""The commands as a user reads them: usage, meaning, another way to say it."""

import difflib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the help."""

    usage: str
    meaning: str
    phrasing: str
    #: First words by which a near miss is recognised.
    verbs: tuple[str, ...]


MANUAL: tuple[Entry, ...] = (
    Entry(
        "list FOLDER",
        "list a folder (`list` alone: the workspace)",
        "show me the files in docs",
        ("list", "ls", "dir", "show", "files"),
    ),
    Entry(
        "read FILE",
        "show a file",
        "what is in notes/ideas.md?",
        ("read", "cat", "open", "view", "display"),
    ),
    Entry(
        "search TEXT in FOLDER",
        "find lines with TEXT, with their neighbours; quotes keep TEXT as it is",
        "where is TODO mentioned?",
        ("search", "find", "grep", "look", "where"),
    ),
    Entry(
        "count NAME",
        "count lines, words and bytes of a file or folder",
        "how many lines are in src?",
        ("count", "wc", "lines", "size"),
    ),
    Entry(
        "write FILE: TEXT",
        "write a file; I ask before I replace one",
        "create a file notes/new.md with hello",
        ("write", "create", "save", "make"),
    ),
    Entry(
        "overwrite FILE with TEXT",
        "the same",
        "replace notes/new.md with goodbye",
        ("overwrite", "replace"),
    ),
    Entry(
        "append FILE: TEXT",
        "add text at the end of a file",
        "add call the plumber to notes/ideas.md",
        ("append", "add"),
    ),
    Entry(
        "diff FILE FILE",
        "show what differs between two files",
        "compare docs/plan.md and notes/plan.md",
        ("diff", "compare", "difference"),
    ),
    Entry(
        "run PROGRAM …",
        "run a program of the allow-list, without a shell; I ask first",
        "run ls -la src",
        ("run", "execute", "start"),
    ),
    Entry(
        "summarise FOLDER",
        "one sub-agent for each subfolder, all at once",
        "give me an overview of the src folder",
        ("summarise", "summarize", "overview", "summary", "describe"),
    ),
    Entry(
        "report on FOLDER",
        "write a report into a file that you can open here",
        "make me a report about src",
        ("report",),
    ),
    Entry(
        "stream FILE every MS ms",
        "recite a file slowly, word by word (the pace may be left out)",
        "tell me books/lighthouse.txt",
        ("stream", "recite", "tell"),
    ),
    Entry(
        "count to N every MS ms",
        "count aloud: an answer as long as you like",
        "count to 200",
        ("count",),
    ),
    Entry("help", "show this", "what can you do?", ("help", "commands", "usage")),
)

#: What is proposed when nothing comes near.
USUAL_SUGGESTIONS = ("list FOLDER", "read FILE", "search TEXT in FOLDER", "help")

# Share of equal letters from which a mistyped verb is taken for a known one.
_NEAR = 0.7


def suggestions_for(text: str) -> tuple[str, ...]:
    """Return the usages whose verb comes near one of the first words of `text`."""
    words = text[:200].lower().split()[:4]
    for word in words:
        near = _usages_near(word.strip("?!.,:;"))
        if near:
            return near
    return USUAL_SUGGESTIONS


def _usages_near(word: str) -> tuple[str, ...]:
    verbs = {verb for entry in MANUAL for verb in entry.verbs}
    close = difflib.get_close_matches(word, sorted(verbs), n=1, cutoff=_NEAR)
    return tuple(entry.usage for entry in MANUAL if {*close} & {*entry.verbs})


def help_text() -> str:
    """Return the help as Markdown: a sentence, a table, the notes below it."""
    rows = [f"| `{row.usage}` | {row.meaning} | *{row.phrasing}* |" for row in MANUAL]
    return "\n".join(
        (
            "I work on the files of your workspace. There is no model behind me, but "
            "what I do is real.",
            "",
            "| command | what it does | or say it like this |",
            "|---|---|---|",
            *rows,
            "",
            "Names are relative to the workspace; put quotes around names with "
            "spaces. A file is found by its bare name too; when several have it, I "
            "ask which one you mean, once in a session.",
            "",
            "Before I run a program or replace a file I ask you, and show exactly "
            "what I would do. You may allow it for the session: then the same program "
            "line, or writing to that file, needs no question any more.",
            "",
            "What I write you can open here; each change is a version of its own. "
            "Send me a file, and I show you what is in it.",
        )
    )
