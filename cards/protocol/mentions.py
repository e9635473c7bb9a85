r"""Mentions of artifacts in a streamed text become links, whatever the chunks.

| in a text | becomes |
|---|---|
| a name or an id that stands apart | `[name](artifact://id)` |
| links, images, references, definitions, autolinks, tags | what it was |
| code, web addresses, paths | what it was |
| `!` before a mention | `\!`, for otherwise the link would be an image |

A name stands apart when it is no part of a word, a path, a mail or web address:
`my-report.md`, `report.md.bak` and `/tmp/report.md` do not mention `report.md`, while
`See report.md.` does. Scripts that are written without spaces need none beside it.

**What is held back.** The text that may still become a mention, and no other: the
beginning of a name, and a name whose reading depends on what follows it: behind a run
of backticks or a bracket that nothing has closed yet. The whole text decides how these
are read, as CommonMark says, with one limit that keeps the wait short: what nothing
closed within `SPAN_LIMIT` characters, or within its block, is plain text. A target of
a link that is longer than that is one nevertheless.

So what has come out depends on the text so far and on when artifacts were learnt, not
on how the text was split.

Spec: EMIT 13; Ruling E21; cases HC-48 and HC-49.
"""

import re
from collections import deque
from collections.abc import Callable
from typing import ClassVar, Final

from cards.protocol.artifact_names import (
    CONTEXT_LENGTH,
    KnownArtifacts,
    Mention,
    Unsettled,
)
from cards.protocol.markdown_lines import LINE_LIMIT, MarkdownLines, normalised_label
from cards.protocol.markdown_spans import PENDING, read_angle, read_label, read_target
from cards.protocol.name_sieve import UNSPACED

__all__ = ["SPAN_LIMIT", "KnownArtifacts", "MentionRewriter"]

#: Characters from what opens a span to what closes it.
SPAN_LIMIT: Final = 500

#: Labels of references that are remembered; of more, the others are read as text.
MAX_LABELS: Final = 1000

#: Characters that are done with and kept until they are dropped together.
_MAX_DONE: Final = 2048

_TICKS: Final = re.compile(r"`+")

#: What a path or a web address begins with, as seen from its first slash.
_PATH_BEGUN: Final = re.compile(rf"(?<![^\s\w.~:/-])(?<![{UNSPACED}])/")

#: What ends one, or is special within it.
_PATH_END: Final = re.compile(
    r"[\s`\[\]<>\"|\\\u2014\u2018-\u201f\u2026\u3000-\u303f\uff01-\uff0f\uff1a-\uff20"
    r"\uff3b-\uff40\uff5b-\uff65]|!(?:\[|\Z)"
)

#: Elements whose content is a link or code.
_ELEMENT: Final = re.compile(r"<(/?)(a|code|pre)(?=[\s>])", re.IGNORECASE)

_ESCAPABLE: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


class _Bracket:
    """An open bracket of a link or an image."""

    __slots__ = ("at", "element", "is_image")

    def __init__(self, at: int, element: str, *, is_image: bool) -> None:
        self.at = at
        self.element = element
        self.is_image = is_image


class MentionRewriter:
    """Rewrites one text while it streams.

    Args:
        known: What may be mentioned; shared, and read anew with each chunk.

    Spec: EMIT 13; Ruling E21.
    """

    def __init__(self, known: KnownArtifacts) -> None:
        self._known = known
        self._begin()

    def _begin(self) -> None:
        self._version = -1
        self._lines = MarkdownLines()
        self._labels: set[str] = set()
        #: What is not settled, and a few characters before it.
        self._text = ""
        #: Up to where the text has come out, is read by line, and is read.
        self._released = self._lined = self._at = 0
        self._is_line_begun = False
        self._is_code = False
        self._is_single = False
        #: Nothing waits, and the text goes on within a line.
        self._is_plain = False
        self._mentions: deque[tuple[int, int, str]] = deque()
        self._begin_block()

    def _begin_block(self) -> None:
        self._brackets: deque[_Bracket] = deque()
        self._ticks: dict[int, deque[int]] = {}
        self._ticks_to = 0
        self._is_path = False
        self._element = ""
        self._escaped_to = self._mentioned_to = -1

    def feed(self, chunk: str) -> str:
        """Take the next part of the text; return what is settled, perhaps nothing.

        Spec: Ruling E21.
        """
        if self._version != self._known.version:
            self._read_again()
        if self._is_plain:
            if "\n" not in chunk if self._is_code else self._is_quiet(chunk):
                if len(chunk) < CONTEXT_LENGTH:
                    self._text = self._text[-CONTEXT_LENGTH:] + chunk
                else:
                    self._text = chunk
                return chunk
            self._text = self._text[-CONTEXT_LENGTH:]
            self._released = self._lined = self._at = len(self._text)
            self._escaped_to = self._mentioned_to = -1
            self._ticks.clear()
            self._ticks_to = self._at
        self._text += chunk
        return self._advance(is_final=False)

    def flush(self) -> str:
        """Return the rest at the end of the text; what is fed later is a new text.

        Spec: Ruling E21.
        """
        rest = "" if self._is_plain else self._advance(is_final=True)
        self._begin()
        return rest

    def _read_again(self) -> None:
        """Let what is not settled be read with what was learnt."""
        self._version = self._known.version
        self._find = self._known.sieve.stops.search
        self._is_quiet = self._known.sieve.is_quiet
        if self._brackets:
            self._at = self._brackets[0].at
            self._element = self._brackets[0].element
            self._is_path = False
            self._brackets.clear()
            self._ticks.clear()
            self._ticks_to = self._at
        self._mentions.clear()

    def _advance(self, *, is_final: bool) -> str:
        self._read_lines(is_final=is_final)
        self._read_spans(self._lined, is_final=is_final)
        return self._release(is_final=is_final)

    # Lines

    def _read_lines(self, *, is_final: bool) -> None:
        text = self._text
        while self._lined < len(text):
            newline = text.find("\n", self._lined)
            if not self._is_line_begun:
                is_whole = is_final or newline >= 0
                if not self._begin_line(newline, is_whole=is_whole):
                    return
            self._lined = newline + 1 or len(text)
            if self._is_code:
                self._at = self._lined
            elif newline >= 0 and self._is_single:
                self._read_spans(self._lined, is_final=True)
                self._begin_block()
            if newline < 0:
                return
            self._is_line_begun = False

    def _begin_line(self, newline: int, *, is_whole: bool) -> bool:
        """Judge a line; return whether that was possible yet."""
        begin = self._lined
        end = begin + LINE_LIMIT
        line = self._text[begin : end if newline < 0 else min(newline, end)]
        verdict = self._lines.read(line, is_whole=is_whole)
        if verdict is None:
            return False
        self._is_line_begun = True
        self._is_code = verdict.text_at is None
        self._is_single = verdict.is_single
        if not verdict.is_continued:
            self._read_spans(begin, is_final=True)
            self._begin_block()
            self._at = begin + (verdict.text_at or 0)
        if verdict.label and len(self._labels) < MAX_LABELS:
            self._labels.add(verdict.label)
        return True

    # Spans

    def _read_spans(self, end: int, *, is_final: bool) -> None:
        """Read the text of a block as far as it can be."""
        self._is_name_open = False
        while self._at < end:
            find = _PATH_END.search if self._is_path else self._find
            found = find(self._text, self._at, end)
            if found is None:
                self._at = end
                break
            self._at = found.start()
            was_path, self._is_path = self._is_path, False
            behind = self._read_span(end, is_final=is_final)
            if behind == PENDING:
                self._is_path = was_path
                break
            self._at = behind
        self._forget_brackets(self._at)

    def _read_span(self, end: int, *, is_final: bool) -> int:
        """Return where the span ends that begins here, PENDING when that is open."""
        text, at = self._text, self._at
        is_excluded = self._element or at < self._released
        if not is_excluded and self._known.sieve.may_begin(text, at, end):
            mention = self._known.match(text, at, end, is_final=is_final)
            if isinstance(mention, Unsettled):
                self._is_name_open = True
                return PENDING
            if mention is not None and self._is_noted(mention):
                return mention.end
        read = self._READERS.get(text[at])
        return read(self, end, is_final) if read else at + 1

    def _is_noted(self, mention: Mention) -> bool:
        """Note a mention, unless a part of it has come out already."""
        begin, link = self._at, mention.link
        if self._is_exclaimed(begin):
            begin, link = begin - 1, f"\\!{link}"
        if begin < self._released:
            return False
        self._mentions.append((begin, mention.end, link))
        self._mentioned_to = mention.end
        return True

    def _is_exclaimed(self, at: int) -> bool:
        """Tell whether a bracket there would be read as the one of an image."""
        return self._text[at - 1 : at] == "!" and at not in {
            self._escaped_to,
            self._mentioned_to,
        }

    def _read_escape(self, end: int, is_final: bool) -> int:
        behind = self._at + 1
        if behind == end:
            return behind if is_final else PENDING
        if self._text[behind] in _ESCAPABLE:
            self._escaped_to = behind = behind + 1
        return behind

    def _read_slash(self, _end: int, _is_final: bool) -> int:
        self._is_path = _PATH_BEGUN.match(self._text, self._at) is not None
        return self._at + 1

    def _read_ticks(self, end: int, is_final: bool) -> int:
        behind = _TICKS.match(self._text, self._at, end).end()  # type: ignore[union-attr]
        if behind == end and not is_final:
            return PENDING
        count = behind - self._at
        self._find_ticks(behind, end, is_final=is_final)
        closers = self._ticks.get(count, deque())
        while closers and closers[0] < behind:
            closers.popleft()
        if closers:
            is_near = closers[0] - behind <= SPAN_LIMIT
            return closers[0] + count if is_near else behind
        is_over = is_final or self._ticks_to - behind > SPAN_LIMIT
        return behind if is_over else PENDING

    def _find_ticks(self, begin: int, end: int, *, is_final: bool) -> None:
        """Note the runs of backticks up to the end, each once."""
        for found in _TICKS.finditer(self._text, max(begin, self._ticks_to), end):
            if found.end() == end and not is_final:
                self._ticks_to = found.start()
                return
            self._ticks.setdefault(len(found[0]), deque()).append(found.start())
        self._ticks_to = end

    def _read_angle(self, end: int, is_final: bool) -> int:
        behind = read_angle(self._text, self._at, min(end, self._at + SPAN_LIMIT))
        if behind is None:
            return self._at + 1
        if behind == PENDING:
            is_over = is_final or end - self._at >= SPAN_LIMIT
            return self._at + 1 if is_over else PENDING
        if element := _ELEMENT.match(self._text, self._at, behind):
            self._element = "" if element[1] else element[2]
        return behind

    def _read_image(self, end: int, is_final: bool) -> int:
        behind = self._at + 1
        if behind == end:
            return behind if is_final else PENDING
        return self._open_bracket(self._text[behind] == "[")

    def _read_opener(self, _end: int, _is_final: bool) -> int:
        return self._open_bracket(is_image=False)

    def _open_bracket(self, is_image: bool) -> int:
        self._brackets.append(_Bracket(self._at, self._element, is_image=is_image))
        return self._at + 1 + is_image

    def _read_closer(self, end: int, is_final: bool) -> int:
        self._forget_brackets(self._at)
        behind = self._at + 1
        if not self._brackets:
            return behind
        if behind == end and not is_final:
            return PENDING
        link_end = self._link_end(behind, end, is_final=is_final)
        if link_end == PENDING:
            return PENDING
        opener = self._brackets.pop()
        if link_end is None:
            return behind
        while self._mentions and self._mentions[-1][0] >= opener.at:
            self._mentions.pop()
        if not opener.is_image:
            # A link holds no link: the brackets around it are text.
            self._brackets.clear()
        return link_end

    def _link_end(self, at: int, end: int, *, is_final: bool) -> int | None:
        """Return where a link ends whose text ended; None when it is none."""
        follower = self._text[at] if at < end else ""
        limit = min(end, at + SPAN_LIMIT)
        behind: int | None = None
        if follower == "(":
            behind = read_target(self._text, at, limit)
            if behind == PENDING and limit < at + SPAN_LIMIT:
                behind = None if is_final else PENDING
            elif behind == PENDING:
                self._is_path = True
                behind = limit
        elif follower == "[":
            behind = read_label(self._text, at, limit)
            if behind == PENDING and (is_final or limit == at + SPAN_LIMIT):
                behind = None
        if behind is None and self._is_defined(at - 1):
            behind = at
        return behind

    def _is_defined(self, closer: int) -> bool:
        opener = self._brackets[-1]
        begin = opener.at + 1 + opener.is_image
        return bool(self._labels) and (
            normalised_label(self._text[begin:closer]) in self._labels
        )

    def _forget_brackets(self, at: int) -> None:
        while self._brackets and at - self._brackets[0].at > SPAN_LIMIT:
            self._brackets.popleft()

    _READERS: ClassVar[dict[str, Callable[["MentionRewriter", int, bool], int]]] = {
        "\\": _read_escape,
        "/": _read_slash,
        "`": _read_ticks,
        "<": _read_angle,
        "!": _read_image,
        "[": _read_opener,
        "]": _read_closer,
    }

    # Releasing

    def _release(self, *, is_final: bool) -> str:
        text = self._text
        settled = self._brackets[0].at if self._brackets else self._at
        place = self._released
        parts: list[str] = []
        while self._mentions and (is_final or self._mentions[0][1] <= settled):
            begin, end, link = self._mentions.popleft()
            parts += (text[place:begin], link)
            place = end
        if is_final:
            held = len(text)
        elif self._mentions:
            held = self._mentions[0][0]
        elif self._is_name_open:
            held = self._begin_of_mention(self._at)
        else:
            held = self._first_possible(max(place, self._at))
        if held > place:
            parts.append(text[place:held])
            place = held
        self._released = place
        self._is_plain = (
            self._is_line_begun
            and self._at == place == len(text)
            and not (self._brackets or self._is_path or self._element)
            and not text.endswith("!")
        )
        self._drop(min(settled, place) - CONTEXT_LENGTH)
        return "".join(parts)

    def _begin_of_mention(self, at: int) -> int:
        """Return where what is replaced begins, if a name begins at a place."""
        return at - (at > self._released and self._is_exclaimed(at))

    def _first_possible(self, begin: int) -> int:
        """Return where the first mention may begin in what is not read yet."""
        text = self._text
        if not self._known:
            return len(text)
        place = begin
        while found := self._known.sieve.beginnings.search(text, place):
            at = found.start()
            place = at + 1
            if not self._known.sieve.may_begin(text, at, len(text)):
                continue
            if self._known.match(text, at, len(text), is_final=False) is not None:
                return self._begin_of_mention(at)
        return len(text) - (len(text) > begin and text.endswith("!"))

    def _drop(self, count: int) -> None:
        """Drop what is done with, once it is worth the work."""
        if self._is_plain or count < _MAX_DONE:
            return
        self._text = self._text[count:]
        self._released -= count
        self._lined -= count
        self._at -= count
        self._escaped_to -= count
        self._mentioned_to -= count
        for bracket in self._brackets:
            bracket.at -= count
        self._mentions = deque(
            (begin - count, end - count, link) for begin, end, link in self._mentions
        )
        self._ticks.clear()
        self._ticks_to = self._at
