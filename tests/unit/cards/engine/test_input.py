"""What the user said, as an engine reads it."""

import asyncio
import io
import threading
from contextlib import aclosing
from typing import BinaryIO

import pytest

from cards.engine import EngineError, TextBlock
from cards.engine.input import CHUNK_BYTES
from cards.protocol.json_form import json_form
from tests.unit.cards.engine.files import file_block


class Disk:
    """Opens one file and says what became of it."""

    def __init__(self, content: bytes = b"", error: Exception | None = None) -> None:
        self.file = io.BytesIO(content)
        self.error = error

    async def open(self) -> BinaryIO:
        if self.error is not None:
            raise self.error
        return self.file


async def refusal_of(disk: Disk) -> EngineError:
    with pytest.raises(EngineError) as caught:
        await file_block(b"", open_file=disk.open).read()
    return caught.value


class TestTextBlock:
    def test_has_its_words(self) -> None:
        assert TextBlock({"type": "text", "text": "Hi"}).text == "Hi"
        assert TextBlock({"type": "text", "text": ""}).text == ""

    def test_is_the_mapping_that_the_log_shows(self) -> None:
        logged = {"type": "text", "text": "Hi"}
        block = TextBlock(logged)

        assert block == logged
        assert json_form(block) == logged
        assert (block.type, block["text"], len(block)) == ("text", "Hi", 2)
        assert repr(block) == f"TextBlock({logged!r})"


class TestFileBlock:
    async def test_is_read_at_once(self) -> None:
        content = bytes(range(256)) * 2000

        assert await file_block(content).read() == content

    async def test_is_read_in_pieces(self) -> None:
        content = b"x" * (2 * CHUNK_BYTES + 1)

        chunks = [chunk async for chunk in file_block(content).chunks()]

        assert [len(chunk) for chunk in chunks] == [CHUNK_BYTES, CHUNK_BYTES, 1]

    async def test_may_be_empty(self) -> None:
        assert await file_block(b"").read() == b""
        assert [chunk async for chunk in file_block(b"").chunks()] == []

    async def test_may_be_read_again(self) -> None:
        block = file_block(b"a")

        assert [await block.read() for _ in "ab"] == [b"a", b"a"]

    async def test_that_is_larger_than_wanted_is_not_opened(self) -> None:
        disk = Disk(error=AssertionError("it was opened"))
        block = file_block(b"abc", open_file=disk.open)

        with pytest.raises(EngineError) as caught:
            await block.read(max_bytes=2)

        assert caught.value.error.code == "FILE_TOO_LARGE"
        assert str(caught.value) == "a.txt has 3 bytes; allowed: 2"
        assert await file_block(b"abc").read(max_bytes=3) == b"abc"

    async def test_that_is_gone_is_told_as_such(self) -> None:
        error = (await refusal_of(Disk(error=FileNotFoundError("x")))).error

        assert (error.type, error.code) == ("dependency_fail", "FILE_GONE")
        assert not error.retryable

    async def test_that_cannot_be_read_may_be_later(self) -> None:
        error = (await refusal_of(Disk(error=OSError("x")))).error

        assert (error.type, error.code) == ("dependency_fail", "FILE_NOT_READABLE")
        assert error.retryable

    async def test_is_closed_when_its_reader_stops(self) -> None:
        disk = Disk(b"x" * 3 * CHUNK_BYTES)

        async with aclosing(file_block(b"", open_file=disk.open).chunks()) as chunks:
            await anext(chunks)

        assert disk.file.closed

    async def test_is_closed_when_its_reader_is_cancelled(self) -> None:
        is_reading, goes_on = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        class Slow(io.BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                loop.call_soon_threadsafe(is_reading.set)
                goes_on.wait()
                return super().read(size)

        disk = Disk()
        disk.file = Slow(b"x")
        task = asyncio.create_task(file_block(b"", open_file=disk.open).read())
        await is_reading.wait()
        task.cancel()
        goes_on.set()
        await asyncio.wait([task])

        assert task.cancelled()
        assert disk.file.closed
