"""Files that an engine makes.

Spec: engine-api.md, Scopes; EMIT 10.9, 13; Ruling E21.
"""

import os
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import msgspec

from cards.engine.artifact_desk import MadeFile
from cards.engine.block import Context, innermost_card, open_blocks
from cards.engine.values import listed, text_or_unset
from cards.ports import StoredArtifact
from cards.protocol.json_form import JSONValue
from cards.protocol.kinds import CardKind
from cards.protocol.payloads import ArtifactPayload, ArtifactRef

#: What an engine may give as a file's content.
Content = str | bytes | bytearray | memoryview | os.PathLike[str] | IO[bytes]

#: Bytes, or characters, that are written at a time.
_PIECE: Final = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file that is kept; what an engine can say of it.

    Attributes:
        artifact_id: The same for all versions.
        name: As it is shown; what could harm was taken out of the wanted one.
        version: From 1.
        type: Such as `file`, `data` or `image`.
        mime_type: As its bytes tell.
        size_bytes: Of this version.
        role: "" for none.
        description: "" for none.
    """

    artifact_id: str
    name: str
    version: int
    type: str
    mime_type: str
    size_bytes: int
    role: str
    description: str

    @property
    def uri(self) -> str:
        """The address that links in messages lead to. Spec: EMIT 10.9."""
        return f"artifact://{self.artifact_id}"

    def ref(self) -> dict[str, JSONValue]:
        """Return its ArtifactRef, as other cards name it. Spec: EMIT 10."""
        form: dict[str, JSONValue] = msgspec.to_builtins(ref_of(self))
        return form


class Filing:
    """The method of a scope that makes files."""

    _context: Context
    _scope_agent_id: str
    _scope_run_id: str

    async def artifact(
        self,
        name: str,
        content: Content,
        *,
        mime_type: str | None = None,
        role: str | None = None,
        description: str | None = None,
        type: str | None = None,  # noqa: A002 - the wire's word
    ) -> Artifact:
        """Keep a file for the user, and show its card once it is durable.

        The same name again is the next version. From then on its name and its id
        become links wherever the assistant's messages mention them.

        Args:
            name: A file name; path steps and characters that could harm are taken
                out.
            content: Text, which is stored as UTF-8; bytes; the path of a file, or an
                open binary one.
            mime_type: A hint for what the bytes do not tell.
            role: What it is in the work, such as `report` or `draft_email`.
            description: In a sentence.
            type: `file`, `data`, `image` or a word of yours; None derives it.

        Raises:
            EngineError: It is too large, or cannot be stored.
            OSError: The content cannot be read.
            TypeError: The content is something else.

        Spec: EMIT 10.9; Ruling E21.
        """
        context = self._context
        file = MadeFile(
            name=str(name),
            pieces=_pieces_of(content),
            may_wait=not isinstance(content, str | bytes | bytearray | memoryview),
            mime_type=str(mime_type or ""),
            type=str(type or ""),
            role=str(role or ""),
            description=str(description or ""),
            is_wanted=lambda: context.turn_card.is_open,
        )
        artifact = await context.artifacts.keep(file, self._show_artifact)
        await context.builder.writer.breathe()
        return artifact

    def _show_artifact(self, stored: StoredArtifact, icon: bytes) -> Artifact:
        artifact = _artifact_of(stored)
        if not self._context.may_emit():
            return artifact
        for block in open_blocks(self._context):
            block.made[artifact.artifact_id] = ref_of(artifact)
        builder = self._context.builder
        builder.add(
            CardKind.ARTIFACT,
            ArtifactPayload(
                artifact_id=artifact.artifact_id,
                name=artifact.name,
                type=artifact.type,
                mime_type=artifact.mime_type,
                size_bytes=artifact.size_bytes,
                description=text_or_unset(artifact.description),
                role=text_or_unset(artifact.role),
                uri=artifact.uri,
                version=artifact.version,
                thumbnail=text_or_unset(b64encode(icon).decode()),
            ),
            # The first version's card has the artifact's own id; one card, one id.
            card_id=builder.free_card_id(CardKind.ARTIFACT, artifact.artifact_id),
            parent=innermost_card(self._context),
            agent_id=self._scope_agent_id,
            agent_run_id=self._scope_run_id,
        )
        return artifact


def ref_of(artifact: Artifact) -> ArtifactRef:
    """Return how other cards name an artifact. Spec: EMIT 10."""
    return ArtifactRef(
        artifact_id=artifact.artifact_id,
        name=artifact.name,
        type=artifact.type,
        mime_type=artifact.mime_type,
        size_bytes=artifact.size_bytes,
        description=text_or_unset(artifact.description),
        role=text_or_unset(artifact.role),
    )


def refs_of(artifacts: Iterable[Artifact]) -> list[ArtifactRef]:
    """Return how other cards name artifacts.

    Raises:
        TypeError: One of them is none.
    """
    given = listed("artifacts", artifacts)
    for each in given:
        if not isinstance(each, Artifact):
            raise TypeError(
                f"artifacts holds {each!r}; allowed: what `turn.artifact` returned"
            )
    return [ref_of(each) for each in given]


def _artifact_of(stored: StoredArtifact) -> Artifact:
    return Artifact(
        artifact_id=stored.artifact_id,
        name=stored.name,
        version=stored.version,
        type=stored.type,
        mime_type=stored.mime_type,
        size_bytes=stored.size_bytes,
        role=stored.role,
        description=stored.description,
    )


def _pieces_of(content: Content) -> Iterator[bytes]:
    """Return the bytes of a content, a piece at a time.

    Raises:
        TypeError: It is nothing that has any.
    """
    if isinstance(content, str):
        return _encoded(content)
    if isinstance(content, bytes | bytearray | memoryview):
        return _sliced(memoryview(content).cast("B"))
    if isinstance(content, os.PathLike):
        return _read_path(Path(content))
    if callable(getattr(content, "read", None)):
        return _read(content)
    raise TypeError(
        f"the content is {content!r:.80}; allowed: text, bytes, a path or a file that"
        " is open for reading bytes"
    )


def _encoded(text: str) -> Iterator[bytes]:
    for start in range(0, len(text), _PIECE):
        # Half of a surrogate pair has no encoding.
        yield text[start : start + _PIECE].encode(errors="replace")


def _sliced(view: memoryview) -> Iterator[bytes]:
    for start in range(0, len(view), _PIECE):
        yield bytes(view[start : start + _PIECE])


def _read_path(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from _read(file)


def _read(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        if not isinstance(piece, bytes):
            raise TypeError("the content is a file of text; open it for reading bytes")
        yield piece
