"""What the engine understands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.engines.workspace.commands import (
    AppendText,
    Command,
    CountLines,
    CountTo,
    DiffFiles,
    Help,
    ListFiles,
    ReadFile,
    ReportOn,
    RunProgram,
    SearchText,
    StreamFile,
    SummariseFolder,
    TooLong,
    Unknown,
    WriteFile,
)
from cards.engines.workspace.manual import MANUAL
from cards.engines.workspace.phrases import parse

SHORT: list[tuple[str, Command]] = [
    ("help", Help()),
    ("/help", Help()),
    ("ls", ListFiles()),
    ("list docs", ListFiles("docs")),
    ("list .", ListFiles()),
    ("read notes.md", ReadFile("notes.md")),
    ("cat notes.md", ReadFile("notes.md")),
    ("search TODO", SearchText("TODO")),
    ("search TODO in src", SearchText("TODO", "src")),
    ('search "a  in b" in src', SearchText("a  in b", "src")),
    ('search ""', SearchText("")),
    ("count", CountLines()),
    ("count src", CountLines("src")),
    ("wc src", CountLines("src")),
    ("write a.txt: hello", WriteFile("a.txt", "hello")),
    ("write a.txt\none\ntwo", WriteFile("a.txt", "one\ntwo")),
    ("write a.txt: please?", WriteFile("a.txt", "please?")),
    ('write "my notes.txt": x', WriteFile("my notes.txt", "x")),
    ("overwrite a.txt with b: c", WriteFile("a.txt", "b: c")),
    ("append a.txt: I went to b.txt", AppendText("a.txt", "I went to b.txt")),
    ("append done: yes to a.txt", AppendText("a.txt", "done: yes")),
    ("diff a b", DiffFiles("a", "b")),
    ("run ls -la", RunProgram("ls -la")),
    ("$ ls", RunProgram("ls")),
    ("run `wc -l a.txt`", RunProgram("wc -l a.txt")),
    ("ls -la src", RunProgram("ls -la src")),
    ("sleep 5", RunProgram("sleep 5")),
    ("summarise src", SummariseFolder("src")),
    ("report", ReportOn()),
    ("report on src", ReportOn("src")),
    ("make me a report about the src folder", ReportOn("src")),
    ("write a short report on notes/ideas.md", ReportOn("notes/ideas.md")),
    ("write report.md: text", WriteFile("report.md", "text")),
    ("read report.md", ReadFile("report.md")),
    ("stream a.txt", StreamFile("a.txt")),
    ("stream a.txt every 5 ms", StreamFile("a.txt", 5)),
    ("count to 200", CountTo(200)),
    ("count to 10 every 0ms", CountTo(10, 0)),
]

PLAIN: list[tuple[str, Command]] = [
    ("", Help()),
    ("Hello!", Help()),
    ("hi there", Help()),
    ("What can you do?", Help()),
    ("please show me the files in docs", ListFiles("docs")),
    ("Could you list the files in the docs folder, please?", ListFiles("docs")),
    ("what files are there?", ListFiles()),
    ("show me the docs folder", ListFiles("docs")),
    ("find TODO", SearchText("TODO")),
    ("find all TODOs in the src folder", SearchText("TODO", "src")),
    ("where is till mentioned?", SearchText("till")),
    ("which files mention larch in notes?", SearchText("larch", "notes")),
    ("how many lines are in src?", CountLines("src")),
    ("how many words does README.md have?", CountLines("README.md")),
    ("how big is data/sales.csv?", CountLines("data/sales.csv")),
    ("what is in notes.md?", ReadFile("notes.md")),
    ("show the README", ReadFile("README")),
    ("Please read README.md.", ReadFile("README.md")),
    ('read "my file.txt".', ReadFile("my file.txt")),
    ("compare a.txt and b.txt", DiffFiles("a.txt", "b.txt")),
    ("what is the difference between a and b?", DiffFiles("a", "b")),
    ("summarize the docs folder", SummariseFolder("docs")),
    ("give me an overview of src", SummariseFolder("src")),
    ("create a file called n/x.md with hello", WriteFile("n/x.md", "hello")),
    ('write "hi you" to x.md', WriteFile("x.md", "hi you")),
    ("add buy milk to notes.md", AppendText("notes.md", "buy milk")),
    ("tell me a long story", StreamFile("books/lighthouse.txt")),
]


_OWN_WORDS = [
    *("write", "append", "to", "in", "the", "files", "count", "show", "me", "diff"),
    *("and", "run", ":", '"', "'", "`", "/", ".", "a.txt", "every", "5", "ms"),
    *("please", "?", "how", "many", "lines", "\n", ""),
]


class TestParse:
    @pytest.mark.parametrize(("text", "command"), SHORT)
    def test_understands_short_commands(self, text: str, command: Command) -> None:
        assert parse(text) == command

    @pytest.mark.parametrize(("text", "command"), PLAIN)
    def test_understands_plain_phrasings(self, text: str, command: Command) -> None:
        assert parse(text) == command

    @pytest.mark.parametrize("row", MANUAL, ids=lambda row: row.usage)
    def test_understands_every_phrasing_of_the_help(self, row: object) -> None:
        phrasing = getattr(row, "phrasing", "")

        assert not isinstance(parse(phrasing), Unknown)

    @pytest.mark.parametrize(
        "text", ["delete README.md", "write a poem", "read me a bedtime tale", "no"]
    )
    def test_guesses_nothing_from_other_texts(self, text: str) -> None:
        assert isinstance(parse(text), Unknown)

    def test_proposes_the_usage_of_a_mistyped_verb(self) -> None:
        assert parse("raed README.md") == Unknown("raed README.md", ("read FILE",))

    def test_keeps_a_long_content_to_the_letter(self) -> None:
        content = "line with  spaces \n" * 100_000 + "end"

        assert parse(f"write long.txt: {content}") == WriteFile("long.txt", content)

    def test_takes_no_long_text_for_a_phrase(self) -> None:
        assert parse("search " + "x" * 100_000) == TooLong(100_007, 2_000)
        assert parse("say " + "x" * 1_997) == TooLong(2_001, 2_000)

    @given(st.text())
    def test_never_raises(self, text: str) -> None:
        parse(text)

    @given(st.lists(st.sampled_from(_OWN_WORDS)))
    def test_never_raises_on_words_of_its_own(self, words: list[str]) -> None:
        parse(" ".join(words))

    @pytest.mark.parametrize("filler", [" ", "so ", "the ", '"', "a:", "/", "in "])
    def test_is_not_slowed_down_by_repetition(self, filler: str) -> None:
        """A pattern that backtracks without bound would not come back from this."""
        parse(filler * 500_000)
        parse("find" + filler * 500)
