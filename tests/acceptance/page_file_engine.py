"""The engine behind the tests of files on the page."""

from cards.engine import FileBlock, TextBlock, Turn
from tests.acceptance.page_engine import PageEngine
from tests.acceptance.page_shelf import paper, picture

#: A file of each kind that the page treats in its own way.
FILES: dict[str, str | bytes] = {
    "data.csv": "name,count\nred,1\nblue,2\n",
    "count.py": "def count(path):\n    return len(path)\n",
    "chart.png": picture(300, 200),
    "paper.pdf": paper(),
    "drawing.svg": '<svg xmlns="http://www.w3.org/2000/svg"><script>'
    "top.owned = 1</script></svg>",
    "site.html": "<!doctype html><script>top.owned = 1</script>",
    "notes.txt": "Some words.\n",
    "bytes.bin": bytes(range(256)),
    "empty.txt": "",
}

#: Names of which Markdown or a page could make something else.
NAMES = (
    "a](javascript:top.owned=1) [b.md",
    "<img src=x onerror=top.owned=1>.md",
    '"onmouseover="top.owned=1".md',
    "*a* _b_ `c` ~d~ |e|.md",
    "![x](beacon.png).md",
    "&lt;b&gt; &amp;.md",
    "\\[a\\].md",
    "实验 记录 é 😀.pdf",
)


class FileEngine(PageEngine):
    """Makes files, and says what is in those of the user."""

    async def run(self, turn: Turn) -> None:
        # The text of the input names the files, too.
        blocks = turn.input.blocks
        words = [block.text for block in blocks if isinstance(block, TextBlock)]
        word, _, rest = " ".join(words).partition(" ")
        await getattr(self, f"play_{word or 'read'}")(turn, rest)

    async def play_report(self, turn: Turn, words: str) -> None:
        text = f"# Report\n\n{words}\n\nThe end.\n"
        async with turn.tool("Write", input={"path": "report.md"}) as tool:
            report = await turn.artifact(
                "report.md", text, role="report", description="What was asked for"
            )
            tool.result(f"{report.size_bytes} bytes", artifacts=[report])
        async with turn.message() as message:
            await message.text("It is in rep")
            await message.text("ort.md.")

    async def play_files(self, turn: Turn, _rest: str) -> None:
        async with turn.message() as message:
            for name, content in FILES.items():
                await turn.artifact(name, content)
                await message.text(f"- {name}\n")

    async def play_names(self, turn: Turn, _rest: str) -> None:
        made = [await turn.artifact(name, "words") for name in NAMES]
        async with turn.message() as message:
            await message.text("".join(f"1. {each.name} is there\n" for each in made))

    async def play_read(self, turn: Turn, _rest: str) -> None:
        async with turn.message() as message:
            for file in turn.input.blocks:
                if not isinstance(file, FileBlock):
                    continue
                beginning = (await file.read())[:20]
                await message.text(
                    f"- {file.name} · {file.mime_type} · {file.size_bytes} ·"
                    f" `{beginning!r}`\n"
                )
