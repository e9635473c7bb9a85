"""Files of a user message that need no storage."""

import io
from collections.abc import Awaitable, Callable
from typing import BinaryIO

from cards.engine import Artifact, FileBlock
from cards.protocol.user_blocks import StoredSource, stored_file_block


def file_block(
    content: bytes,
    *,
    name: str = "a.txt",
    mime_type: str = "text/plain",
    open_file: Callable[[], Awaitable[BinaryIO]] | None = None,
) -> FileBlock:
    """Return a block whose bytes are in memory, unless they come from elsewhere."""

    async def open_memory() -> BinaryIO:
        return io.BytesIO(content)

    source = StoredSource(
        artifact_id="art_1",
        version=1,
        name=name,
        mime_type=mime_type,
        size_bytes=len(content),
    )
    artifact = Artifact(
        artifact_id="art_1",
        name=name,
        version=1,
        type="file",
        mime_type=mime_type,
        size_bytes=len(content),
        role="",
        description="",
    )
    return FileBlock(
        stored_file_block("file", source),
        artifact=artifact,
        open_file=open_file or open_memory,
    )
