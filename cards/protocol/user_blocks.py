"""The blocks of a user message: words, and the files that go with them.

| `source.type` | where a file's bytes are |
|---|---|
| `artifact` | in the session already, as an upload or by the assistant |
| `base64` | in the message itself |
| `path` | on the server, where the operator allows it |

Whichever it was, the stored message names an artifact, and no bytes.

Spec: EMIT 9; Rulings E22, E28.
"""

import binascii
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cards.protocol.errors import RemoteProtocolError, refuse
from cards.protocol.json_form import JSONValue

#: Bytes of base64 text in one block, and in one message. Spec: Ruling E22;
#: emit-tables 11.
MAX_BLOCK_BYTES: Final = 10 * 1024 * 1024
MAX_INLINE_BYTES: Final = 20 * 1024 * 1024

#: Blocks in one message unless the operator wants it otherwise; more than any composer
#: makes, so that a frame full of empty blocks costs nothing. Spec: none; ours.
MAX_BLOCKS: Final = 256

#: What a block is to the user. Spec: EMIT 9; Ruling E22.
FILE_TYPES: Final = ("image", "file", "pdf")
BLOCK_TYPES: Final = ("text", *FILE_TYPES)

SOURCE_TYPES: Final = ("artifact", "base64", "path")

#: Beyond it databases have no number.
MAX_VERSION: Final = 2**31 - 1

# Of base64 that are decoded at a time; a multiple of 4.
_PIECE_CHARS: Final = 64 * 1024

# What a file without a name is called, by what its sender says it is. Never a plain
# word: wherever the assistant used it, it would become a link (Ruling E21).
_STEM_OF_TYPE: Final = {"image": "image", "file": "file", "pdf": "document"}
_SUFFIX_OF_MEDIA_TYPE: Final = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "text/csv": ".csv",
    "text/markdown": ".md",
    "text/plain": ".txt",
}
_SUFFIX_OF_TYPE: Final = {"image": ".img", "file": ".bin", "pdf": ".pdf"}


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a block's bytes are; which fields count depends on the type.

    `media_type` is a hint: what the bytes are, they tell themselves. `version` is
    that of an artifact, None for the newest.

    Spec: EMIT 9; Ruling E22.
    """

    type: str | None = None
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    path: str | None = None
    artifact_id: str | None = None
    version: Annotated[int, Meta(ge=1, le=MAX_VERSION)] | None = None


class ContentBlock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One piece of a user message; `{"text": …}` alone is text.

    Spec: EMIT 9, 14.1; Ruling E22.
    """

    type: str = "text"
    text: str | None = None
    source: Source | None = None
    name: str | None = None


def check_blocks(blocks: Sequence[ContentBlock], max_blocks: int) -> None:
    """Refuse blocks that break a rule; what their base64 holds is not looked at.

    Raises:
        RemoteProtocolError: They do; the error names the field and what is allowed.

    Spec: EMIT 9; Ruling E22.
    """
    if not blocks:
        raise refuse(
            "the message is empty",
            code="EMPTY_MESSAGE",
            field="content",
            allowed="at least one block",
        )
    if len(blocks) > max_blocks:
        raise refuse(
            f"content has {len(blocks)} blocks",
            code="TOO_MANY_BLOCKS",
            field="content",
            allowed=f"at most {max_blocks}",
        )
    for index, block in enumerate(blocks):
        _check_block(field_of(index), block)
    if not any(is_file(block) or _has_words(block) for block in blocks):
        raise refuse(
            "the message has neither text nor a file",
            code="EMPTY_MESSAGE",
            field="content",
            allowed="at least one text block with text, or one with a file",
        )
    _check_inline_sum(blocks)


def field_of(index: int) -> str:
    """Return how errors name a block."""
    return f"content[{index}]"


def is_file(block: ContentBlock) -> bool:
    """Tell whether a block is a file."""
    return block.type in FILE_TYPES


def _has_words(block: ContentBlock) -> bool:
    return bool(block.text and block.text.strip())


def _check_block(field: str, block: ContentBlock) -> None:
    if is_file(block):
        _check_source(f"{field}.source", block.source)
    elif block.type != "text":
        raise refuse(
            f"{field}.type is not supported",
            code="UNSUPPORTED_BLOCK",
            field=f"{field}.type",
            allowed=", ".join(BLOCK_TYPES),
        )
    elif block.text is None:
        raise _missing(f"{field}.text")


def _check_source(field: str, source: Source | None) -> None:
    if source is None:
        raise _missing(field)
    if source.type is None:
        raise _missing(f"{field}.type", allowed=", ".join(SOURCE_TYPES))
    if source.type not in SOURCE_TYPES:
        raise refuse(
            f"{field}.type is not supported",
            code="UNSUPPORTED_SOURCE",
            field=f"{field}.type",
            allowed=", ".join(SOURCE_TYPES),
        )
    name, content = {
        "artifact": ("artifact_id", source.artifact_id),
        "base64": ("data", source.data),
        "path": ("path", source.path),
    }[source.type]
    if content is None:
        raise _missing(f"{field}.{name}")
    if not content:
        raise refuse(
            f"{field}.{name} is empty", code="EMPTY_FIELD", field=f"{field}.{name}"
        )
    if source.type == "base64" and len(content) > MAX_BLOCK_BYTES:
        raise refuse(
            f"{field}.data has {len(content)} bytes of base64",
            code="PAYLOAD_TOO_LARGE",
            field=f"{field}.data",
            allowed=f"at most {MAX_BLOCK_BYTES}; upload larger files",
            user_message="This file is too large to be sent within a message.",
        )


def _check_inline_sum(blocks: Iterable[ContentBlock]) -> None:
    total = sum(len(_inline_text(block) or "") for block in blocks)
    if total > MAX_INLINE_BYTES:
        raise refuse(
            f"content has {total} bytes of base64",
            code="PAYLOAD_TOO_LARGE",
            field="content",
            allowed=f"at most {MAX_INLINE_BYTES}; upload larger files",
            user_message="These files are too large to be sent within a message.",
        )


def _inline_text(block: ContentBlock) -> str | None:
    source = block.source
    is_inline = is_file(block) and source is not None and source.type == "base64"
    return source.data if source is not None and is_inline else None


def _missing(field: str, *, allowed: str | None = None) -> RemoteProtocolError:
    return refuse(
        f"{field} is missing", code="MISSING_FIELD", field=field, allowed=allowed
    )


def decode_inline(base64: str, field: str) -> bytes:
    """Return the bytes of an inline file; for threads, as it takes its time.

    Args:
        field: Of the block.

    Raises:
        RemoteProtocolError: It is not the strict base64 of anything.

    Spec: EMIT 9; Ruling E22; RFC 4648, 4.
    """
    try:
        content = b"".join(_decoded_pieces(base64))
    except ValueError as error:
        raise refuse(
            f"{field}.source.data is not base64",
            code="INVALID_BASE64",
            field=f"{field}.source.data",
            allowed="base64 with padding, without line breaks or a data: prefix",
        ) from error
    if not content:
        raise refuse(
            f"{field}.source.data is empty",
            code="EMPTY_FIELD",
            field=f"{field}.source.data",
        )
    return content


def _decoded_pieces(base64: str) -> Iterator[bytes]:
    # The decoder is less strict than it says about padding.
    digits = base64.rstrip("=")
    if "=" in digits or len(base64) - len(digits) != -len(digits) % 4:
        raise ValueError("the padding is not that of its length")
    # In pieces, because no other thread runs while one is decoded.
    for start in range(0, len(base64), _PIECE_CHARS):
        piece = base64[start : start + _PIECE_CHARS]
        yield binascii.a2b_base64(piece, strict_mode=True)


def wanted_name(block: ContentBlock, index: int) -> str:
    """Return what a file is to be called: its name, that in its path, or a made one.

    Args:
        index: Of its block.
    """
    source = block.source or Source()
    if block.name and block.name.strip():
        return block.name
    if source.type == "path" and source.path:
        return source.path.rstrip("/").rpartition("/")[2]
    media_type = (source.media_type or "").partition(";")[0].strip().lower()
    suffix = _SUFFIX_OF_MEDIA_TYPE.get(media_type) or _SUFFIX_OF_TYPE[block.type]
    return f"{_STEM_OF_TYPE[block.type]}-{index + 1}{suffix}"


def artifact_id_of(session_id: str, event_id: str, index: int, sha256: str) -> str:
    """Return the id of the artifact that a file of a message becomes.

    The same file in the same message gets the same id, whoever works it out.

    Args:
        index: Of its block.
        sha256: Of its bytes.

    Spec: Ruling E7.
    """
    parts = (session_id, event_id, str(index), sha256)
    # None of them may hold a NUL.
    return "art_" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def fingerprint_of(blocks: Iterable[ContentBlock], *modes: str | None) -> str:
    """Return what tells a message with files from any other, as its sender wrote it.

    What it refers to may change or go before the message comes a second time, so that
    is not part of it. Takes milliseconds for large ones.

    Args:
        modes: What counts beside the blocks.

    Spec: Ruling E8.
    """
    return hashlib.sha256(msgspec.json.encode([list(blocks), modes])).hexdigest()


class StoredSource(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag_field="type",
    tag="artifact",
):
    """Where the bytes of a stored file block are: in an artifact of the session.

    `thumbnail` is the path of a small picture; left out when there is none.

    Spec: Ruling E28.
    """

    artifact_id: str
    version: int
    name: str
    mime_type: str
    size_bytes: int
    thumbnail: str | UnsetType = UNSET


def thumbnail_path(artifact_id: str, version: int) -> str:
    """Return where the small picture of a version is. Spec: interfaces.md, REST."""
    return f"/v1/artifacts/{artifact_id}/thumbnail?version={version}"


def stored_text_block(text: str) -> dict[str, JSONValue]:
    """Return a text block in the form that is stored and logged. Spec: Ruling E28."""
    return {"type": "text", "text": text}


def stored_file_block(block_type: str, source: StoredSource) -> dict[str, JSONValue]:
    """Return a file's block in the form that is stored and logged: without its bytes.

    Spec: Ruling E28.
    """
    return {"type": block_type, "source": msgspec.to_builtins(source)}


def stored_source_of(block: Mapping[str, JSONValue]) -> StoredSource | None:
    """Return where the bytes of a stored block are; None of a text block."""
    if "source" not in block:
        return None
    return msgspec.convert(block["source"], StoredSource)


def words_of(content: Iterable[Mapping[str, JSONValue]]) -> str:
    """Return a stored message as words alone, each block apart by a blank line.

    A file is named in brackets, such as `[image: plan.png]`.

    Spec: engine-api.md, Turn.input; Ruling E28.
    """
    return "\n\n".join(filter(None, (_words_of_block(block) for block in content)))


def _words_of_block(block: Mapping[str, JSONValue]) -> str:
    source = stored_source_of(block)
    if source is None:
        return str(block.get("text") or "")
    return f"[{block['type']}: {source.name}]"
