"""An engine that tells what files it was given; servers name it in CARDWIRE_ENGINE."""

import asyncio
import hashlib

from cards.engine import Engine, FileBlock, Turn


class ReadingEngine(Engine):
    """Says of each file its name, its type and a hash; or waits for ever."""

    async def run(self, turn: Turn) -> None:
        if turn.input.text == "wait":
            await asyncio.Event().wait()
        for block in turn.input.blocks:
            if isinstance(block, FileBlock):
                async with turn.message() as message:
                    await message.text(await told_of(block))


async def told_of(block: FileBlock) -> str:
    digest = hashlib.sha256()
    async for chunk in block.chunks():
        digest.update(chunk)
    # In code, where names stay what they are. Spec: Ruling E21.
    return f"`{block.name}` {block.mime_type} {digest.hexdigest()}"
