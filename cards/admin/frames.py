"""A stored frame as an operator sees it, from its beginning alone."""

import codecs
import json
import re
from dataclasses import dataclass

import msgspec

from cards.admin.reads import FrameHead
from cards.admin.shown_text import shown, shown_size

#: Characters of a frame, behind its envelope, that a list shows.
EXCERPT_CHARS = 160

#: Characters of an id that a list shows.
ID_CHARS = 128

_TYPE = re.compile(r'\{"type":"([^"\\]{1,40})"')
_ENVELOPE = '"envelope":'
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d(?:\.\d+)?)Z")
_json = json.JSONDecoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRow:
    """A line of the log; what is shown has been made safe to look at.

    Attributes:
        card_id: As stored, to compare and to link with; "" for none.
        envelope: Names and values, shown.
        excerpt: What follows the envelope, shown and cut.
    """

    seq: int
    size: str
    action: str
    card_kind: str
    card_id: str
    shown_card_id: str
    time: str
    envelope: list[tuple[str, str]]
    excerpt: str

    @classmethod
    def of(cls, head: FrameHead) -> "FrameRow":
        """Return the line of a frame; what is no frame of ours has empty fields."""
        text = decode_cut(head.head)
        kind = _TYPE.match(text)
        envelope, end = _read_envelope(text)
        rest = text[end:].removeprefix(",").removeprefix('"payload":')
        is_cut = head.size_bytes > len(head.head) and len(rest) <= EXCERPT_CHARS
        return cls(
            seq=head.seq,
            size=shown_size(head.size_bytes),
            action=shown(kind[1]) if kind else "",
            card_kind=shown(envelope.get("card_kind", ""), ID_CHARS),
            card_id=envelope.get("card_id", ""),
            shown_card_id=shown(envelope.get("card_id", ""), ID_CHARS),
            time=_shown_timestamp(envelope.get("timestamp", "")),
            envelope=[
                (shown(name, ID_CHARS), shown(value, ID_CHARS))
                for name, value in envelope.items()
            ],
            excerpt=shown(rest, EXCERPT_CHARS) + ("…" if is_cut else ""),
        )


def decode_cut(data: bytes) -> str:
    """Return UTF-8 text that may end inside a character; wrong bytes as U+FFFD."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data)


def _read_envelope(text: str) -> tuple[dict[str, str], int]:
    start = text.find(_ENVELOPE)
    if start < 0:
        return {}, 0
    try:
        value, end = _json.raw_decode(text, start + len(_ENVELOPE))
    except (ValueError, RecursionError):
        return {}, 0
    if not isinstance(value, dict):
        return {}, 0
    return {name: str(each) for name, each in value.items()}, end


def _shown_timestamp(timestamp: str) -> str:
    match = _TIMESTAMP.fullmatch(timestamp)
    return f"{match[1]} {match[2]}" if match else shown(timestamp, ID_CHARS)


def pretty_json(data: bytes) -> str:
    """Return JSON with line breaks, its numbers and strings as they were written.

    What is not JSON comes back as the text that it is. The text is not safe to look
    at yet.
    """
    try:
        return decode_cut(msgspec.json.format(data, indent=2))
    except (msgspec.DecodeError, RecursionError):
        return decode_cut(data)
