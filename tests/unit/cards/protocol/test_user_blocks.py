"""The blocks of a user message, without anything that stores them."""

import base64
import hashlib
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.protocol.client_messages import (
    UserMessage,
    blocks_of,
    read_client_message,
)
from cards.protocol.errors import ErrorInfo, RemoteProtocolError
from cards.protocol.kinds import ErrorType
from cards.protocol.user_blocks import (
    MAX_BLOCK_BYTES,
    MAX_INLINE_BYTES,
    MAX_VERSION,
    ContentBlock,
    Source,
    StoredSource,
    artifact_id_of,
    decode_inline,
    fingerprint_of,
    is_file,
    stored_file_block,
    stored_source_of,
    stored_text_block,
    thumbnail_path,
    wanted_name,
    words_of,
)

Frame = dict[str, Any]

TEXT = {"type": "text", "text": "look"}
UPLOAD = {"type": "artifact", "artifact_id": "art_1"}
INLINE = {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
PATH = {"type": "path", "path": "/srv/x.png"}


def read(*content: Frame) -> list[ContentBlock]:
    message = read_client_message({"type": "user.message", "content": list(content)})
    assert isinstance(message, UserMessage)
    return blocks_of(message)


def refusal_of(*content: Frame) -> ErrorInfo:
    with pytest.raises(RemoteProtocolError) as caught:
        read(*content)
    assert caught.value.error.type is ErrorType.INVALID_INPUT
    return caught.value.error


def field_of(error: ErrorInfo) -> object:
    assert isinstance(error.details, dict)
    return error.details["field"]


class TestFileBlock:
    @pytest.mark.parametrize(
        "source", [UPLOAD, INLINE, PATH], ids=["id", "data", "path"]
    )
    @pytest.mark.parametrize("block_type", ["image", "file", "pdf"])
    def test_is_read_with_each_source(self, block_type: str, source: Frame) -> None:
        """Case HC-52: path as in the source, without a media type. Spec: EMIT 9."""
        _, block = read(TEXT, {"type": block_type, "source": source, "name": "n"})

        assert block == ContentBlock(type=block_type, source=Source(**source), name="n")

    def test_needs_no_words_beside_it(self) -> None:
        (block,) = read({"type": "file", "source": UPLOAD})

        assert block.source == Source(type="artifact", artifact_id="art_1")

    def test_may_name_a_version(self) -> None:
        (block,) = read({"type": "file", "source": UPLOAD | {"version": 2}})

        assert block.source == Source(type="artifact", artifact_id="art_1", version=2)

    @pytest.mark.parametrize(
        "block_type", ["exe", "video", "hologram", "", "TEXT", "url"]
    )
    def test_of_another_type_is_refused(self, block_type: str) -> None:
        """Case HC-52: type "exe"; sample w01. Spec: Ruling E22."""
        error = refusal_of(TEXT, {"type": block_type, "source": UPLOAD})

        assert error.code == "UNSUPPORTED_BLOCK"
        assert error.details == {
            "field": "content[1].type",
            "allowed": "text, image, file, pdf",
        }

    @pytest.mark.parametrize("source_type", ["url", "", "file", "BASE64"])
    def test_from_elsewhere_is_refused(self, source_type: str) -> None:
        """Sample w06: nothing connects anywhere. Spec: Ruling E22."""
        source = {"type": source_type, "url": "http://localhost:9/", "data": "QQ=="}
        error = refusal_of(TEXT, {"type": "image", "source": source})

        assert error.code == "UNSUPPORTED_SOURCE"
        assert error.details == {
            "field": "content[1].source.type",
            "allowed": "artifact, base64, path",
        }

    @pytest.mark.parametrize(
        ("source", "field"),
        [
            (None, "source"),
            ({}, "source.type"),
            ({"data": "QQ=="}, "source.type"),
            ({"type": "artifact"}, "source.artifact_id"),
            ({"type": "base64"}, "source.data"),
            ({"type": "base64", "path": "/srv/x"}, "source.data"),
            ({"type": "path", "data": "QQ=="}, "source.path"),
        ],
    )
    def test_is_refused_without_what_it_needs(
        self, source: Frame | None, field: str
    ) -> None:
        """Sample w06. Spec: Ruling E22."""
        error = refusal_of(TEXT, {"type": "image", "source": source})

        assert error.code == "MISSING_FIELD"
        assert field_of(error) == f"content[1].{field}"

    @pytest.mark.parametrize(
        ("source", "field"),
        [
            (UPLOAD | {"artifact_id": ""}, "artifact_id"),
            (INLINE | {"data": ""}, "data"),
            (PATH | {"path": ""}, "path"),
        ],
    )
    def test_is_refused_when_that_is_empty(self, source: Frame, field: str) -> None:
        error = refusal_of({"type": "file", "source": source})

        assert error.code == "EMPTY_FIELD"
        assert field_of(error) == f"content[0].source.{field}"

    @pytest.mark.parametrize("version", [0, -1, 1.5, "1", True, MAX_VERSION + 1])
    def test_is_refused_with_a_version_that_is_none(self, version: object) -> None:
        error = refusal_of({"type": "file", "source": UPLOAD | {"version": version}})

        assert field_of(error) == "content[0].source.version"


def inline_of(length: int) -> Frame:
    return {"type": "file", "source": {"type": "base64", "data": "A" * length}}


class TestLimits:
    """Spec: Ruling E22; emit-tables 11: they count base64 text."""

    def test_are_those_of_the_ruling(self) -> None:
        assert MAX_BLOCK_BYTES == 10 * 2**20
        assert MAX_INLINE_BYTES == 20 * 2**20

    def test_are_reached_by_one_block(self) -> None:
        (block,) = read(inline_of(MAX_BLOCK_BYTES))

        assert len(decode_inline("A" * MAX_BLOCK_BYTES, "content[0]")) > 7 * 2**20
        assert block.source is not None

    def test_refuse_one_byte_more_in_a_block(self) -> None:
        """Case HC-52: 10 MiB + 1."""
        error = refusal_of(TEXT, inline_of(MAX_BLOCK_BYTES + 1))

        assert error.code == "PAYLOAD_TOO_LARGE"
        assert error.details == {
            "field": "content[1].source.data",
            "allowed": "at most 10485760; upload larger files",
        }

    def test_refuse_more_in_all_blocks_together(self) -> None:
        """Case HC-52: 3 times 10 MiB."""
        error = refusal_of(*[inline_of(MAX_BLOCK_BYTES)] * 3)

        assert error.code == "PAYLOAD_TOO_LARGE"
        assert field_of(error) == "content"

    def test_are_for_inline_files_alone(self) -> None:
        long = "A" * (MAX_BLOCK_BYTES + 1)

        read({"type": "text", "text": long, "source": {"type": "base64", "data": long}})


class TestDecodeInline:
    @given(st.binary(min_size=1, max_size=200))
    def test_gives_what_was_encoded(self, content: bytes) -> None:
        assert decode_inline(base64.b64encode(content).decode(), "f") == content

    @pytest.mark.parametrize(
        "data",
        [
            *("A", "QQ", "QQ=", "QQ===", "QQ==QQ==", "Q Q=", "QQ==\n", "-_-_", "é==="),
            *("AAAA=", "AAAA====", "AAAAAAA=="),
            *("data:image/png;base64,QQ==", "=", "====", "Q=Q=", "\0\0\0\0"),
        ],
    )
    def test_is_strict(self, data: str) -> None:
        """Spec: RFC 4648, 4; Ruling E22."""
        with pytest.raises(RemoteProtocolError) as caught:
            decode_inline(data, "content[2]")

        assert caught.value.error.code == "INVALID_BASE64"
        assert field_of(caught.value.error) == "content[2].source.data"

    @given(st.integers(min_value=0, max_value=4), st.booleans())
    def test_decodes_large_files_in_pieces(self, more: int, is_padded: bool) -> None:
        content = bytes(range(256)) * 600 + b"x" * more
        data = base64.b64encode(content).decode()

        assert decode_inline(data, "f") == content
        with pytest.raises(RemoteProtocolError):
            decode_inline(f"QQ=={data}" if is_padded else f"Q{data}", "f")
        with pytest.raises(RemoteProtocolError):
            decode_inline(f"{'A' * (64 * 1024 - 4)}QQ=={data}", "f")

    @given(st.text() | st.text("AQ=", max_size=12))
    def test_never_breaks(self, data: str) -> None:
        with suppress(RemoteProtocolError):
            content = decode_inline(data, "content[0]")
            assert len(data) == len(base64.b64encode(content))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(st.text(max_size=5), children, max_size=3)
    ),
    max_leaves=8,
)

WORDS = st.sampled_from(["text", "image", "file", "pdf", "artifact", "base64", "path"])

SOURCES = st.fixed_dictionaries(
    {},
    optional={
        "type": WORDS | JSON,
        "data": st.text(max_size=8) | JSON,
        "path": st.text(max_size=8) | JSON,
        "artifact_id": st.text(max_size=8) | JSON,
        "version": st.integers() | JSON,
    },
)

BLOCKS = st.fixed_dictionaries(
    {},
    optional={
        "type": WORDS | JSON,
        "text": st.text(max_size=3) | JSON,
        "name": st.text(max_size=3) | JSON,
        "source": SOURCES | JSON,
    },
)


class TestAnyContent:
    @given(st.lists(BLOCKS, max_size=3) | BLOCKS | JSON)
    def test_is_read_or_refused_by_one_error(self, content: Any) -> None:
        """Whatever the JSON, never anything else. Spec: Ruling E22."""
        error = error_at({"type": "user.message", "content": content})

        assert error is None or str(field_of(error)).startswith("content")


def error_at(frame: Frame) -> ErrorInfo | None:
    try:
        message = read_client_message(frame)
    except RemoteProtocolError as refusal:
        return refusal.error
    assert isinstance(message, UserMessage)
    assert fingerprint_of(blocks_of(message))
    files = [block for block in blocks_of(message) if is_file(block)]
    assert all(wanted_name(block, 0) is not None for block in files)
    return None


class TestWantedName:
    @pytest.mark.parametrize(
        ("block", "name"),
        [
            ({"type": "image", "name": "a.png", "source": PATH}, "a.png"),
            ({"type": "file", "source": PATH | {"path": "/srv/b.c"}}, "b.c"),
            ({"type": "file", "source": PATH | {"path": "/srv/b/"}}, "b"),
            ({"type": "image", "source": INLINE}, "image-3.png"),
            (
                {"type": "file", "source": INLINE | {"media_type": "Text/CSV; x=y"}},
                "file-3.csv",
            ),
            ({"type": "image", "source": {"type": "base64"}}, "image-3.img"),
            ({"type": "image", "name": " ", "source": INLINE}, "image-3.png"),
            ({"type": "pdf", "source": {"media_type": "x"}}, "document-3.pdf"),
            ({"type": "file", "source": {}}, "file-3.bin"),
        ],
    )
    def test_is_the_best_that_is_known(self, block: Frame, name: str) -> None:
        """Never a plain word, which would become a link. Spec: Ruling E21."""
        given = block | {"source": Source(**block["source"])}

        assert wanted_name(ContentBlock(**given), 2) == name


class TestArtifactIdOf:
    def test_is_the_same_for_the_same_file_of_the_same_message(self) -> None:
        """Spec: Ruling E7: `art_` and 16 hex digits."""
        digest = hashlib.sha256(b"x").hexdigest()
        others = [
            artifact_id_of("sess_2", "c1", 0, digest),
            artifact_id_of("sess_1", "c2", 0, digest),
            artifact_id_of("sess_1", "c1", 1, digest),
            artifact_id_of("sess_1", "c1", 0, "y"),
            artifact_id_of("sess_1c", "1", 0, digest),
        ]

        first = artifact_id_of("sess_1", "c1", 0, digest)

        assert first == artifact_id_of("sess_1", "c1", 0, digest)
        assert first.startswith("art_")
        assert len(first) == 20
        assert len({first, *others}) == 6


class TestFingerprintOf:
    def test_is_that_of_the_message_as_it_was_written(self) -> None:
        """Spec: Ruling E8."""
        one = ContentBlock(type="image", source=Source(type="path", path="/a"))
        messages = [
            fingerprint_of([one], None, None),
            fingerprint_of([one, one], None, None),
            fingerprint_of([one], "plan", None),
            fingerprint_of([one], None, "plan"),
            fingerprint_of([ContentBlock(type="image", name="n", source=one.source)]),
            fingerprint_of([ContentBlock(type="pdf", source=one.source)], None, None),
        ]

        assert len(set(messages)) == len(messages)
        assert fingerprint_of([one], None, None) == messages[0]

    def test_stays_the_same_in_later_releases(self) -> None:
        """Stored with messages that may come again."""
        block = ContentBlock(type="file", source=Source(type="base64", data="QQ=="))
        said = b'[{"type":"file","source":{"type":"base64","data":"QQ=="}}]'
        form = b'[%s,["plan",null]]' % said

        assert fingerprint_of([block], "plan", None) == hashlib.sha256(form).hexdigest()


def stored(name: str, block_type: str = "file", **fields: Any) -> dict[str, Any]:
    source = StoredSource(
        artifact_id="art_1",
        version=1,
        name=name,
        mime_type="text/plain",
        size_bytes=3,
        **fields,
    )
    return stored_file_block(block_type, source)


class TestStoredFileBlock:
    def test_names_an_artifact_and_holds_no_bytes(self) -> None:
        """Spec: Ruling E28."""
        assert stored("a.txt") == {
            "type": "file",
            "source": {
                "type": "artifact",
                "artifact_id": "art_1",
                "version": 1,
                "name": "a.txt",
                "mime_type": "text/plain",
                "size_bytes": 3,
            },
        }

    def test_tells_of_a_small_picture(self) -> None:
        block = stored("a", thumbnail=thumbnail_path("art_1", 2))

        assert block["source"]["thumbnail"] == "/v1/artifacts/art_1/thumbnail?version=2"

    def test_is_read_back(self) -> None:
        block = stored("a", thumbnail="/x")

        source = stored_source_of(block)

        assert source is not None
        assert stored_file_block("file", source) == block
        assert stored_source_of(stored_text_block("a")) is None


class TestWordsOf:
    def test_name_files_between_texts(self) -> None:
        """Spec: engine-api.md, Turn.input."""
        content = [
            stored_text_block("Compare"),
            stored("plan.png", "image"),
            stored_text_block(""),
            stored("old.pdf", "pdf"),
            stored_text_block("with care"),
        ]

        assert words_of(content) == (
            "Compare\n\n[image: plan.png]\n\n[pdf: old.pdf]\n\nwith care"
        )
