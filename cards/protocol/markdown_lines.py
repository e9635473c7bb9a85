"""What the lines of a growing Markdown text are: text, code, or neither.

Block by block as CommonMark has it: quotes, list items, fences, indented code,
headings, rules, definitions. Each line is judged as soon as nothing that may follow
can change the verdict, so that little of it has to wait.

Different from CommonMark, on purpose: HTML blocks are text, as they are to a client
that shows no HTML; there are tables, and each row is a block; a definition has one
line.

Spec: Ruling E21; CommonMark 0.31, 3 to 5; GitHub Flavored Markdown 0.29, 4.10.
"""

import re
from dataclasses import dataclass
from typing import Final

#: Characters of a line that are looked at; those behind them change no verdict.
LINE_LIMIT: Final = 500

_QUOTE: Final = 0

#: The beginning of a line that may become something else by what follows.
_UNDECIDED: Final = re.compile(
    r"[ >]*+(?:(?:[-+*]|\d{1,9}[.)])[ ]+[ >]*+)*+"
    r"(?:\d{0,9}[.)]?|[-*_+ ]*|[-:| ]*|=*[ ]*|#{0,6}|`{0,2}|`{3,}[^`]*|~*[ ]*)"
)
_MARKER: Final = re.compile(r"([-+*]|\d{1,9}[.)])( +|$)")
_RULE: Final = re.compile(r"(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})")
_UNDERLINE: Final = re.compile(r"(?:=+|-+) *")
_HEADING: Final = re.compile(r"#{1,6}(?: |$)")
_DELIMITERS: Final = re.compile(r"(?=.*\|)\|? *:?-+:? *(?:\| *:?-+:? *)*+\|? *")
_FENCE: Final = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_FENCE_END: Final = re.compile(r"(`{3,}|~{3,}) *")

_TITLE: Final = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\((?:[^()\\]|\\.)*\))"""
_LABEL: Final = r"\[(?!\^)((?:[^\[\]\\]|\\.)+)\]"
_DEFINITION: Final = re.compile(rf"{_LABEL}: *(?:<[^<>]*>|[^\s<]\S*)(?: +{_TITLE})? *")
_DEFINITION_BEGUN: Final = re.compile(
    r"\[(?:(?!\^)(?:[^\[\]\\]|\\.?)*(?:\](?:: *(?:<[^<>]*>?|[^\s<]\S*)?"
    r"(?: +(?:\"(?:[^\"\\]|\\.?)*\"?|'(?:[^'\\]|\\.?)*'?|\((?:[^()\\]|\\.?)*\)?)?)?"
    r" *)?)?)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The verdict on one line.

    Attributes:
        text_at: Where its text begins; None when it has none, as code has.
        is_continued: The text belongs to the same block as the line before.
        is_single: The block ends with the line.
        label: What a definition defines; "" on other lines.
    """

    text_at: int | None = None
    is_continued: bool = False
    is_single: bool = False
    label: str = ""


_NO_TEXT: Final = Line()


class MarkdownLines:
    """The open blocks of one text, line after line."""

    def __init__(self) -> None:
        #: From the outside in: 0 for a quote, for a list item the columns of its
        #: indentation.
        self._containers: list[int] = []
        #: What closes the open fence; "" outside of one.
        self._fence = ""
        self._is_paragraph = False
        self._is_table = False
        #: The last line opened a list item and nothing in it.
        self._is_item_bare = False

    def read(self, line: str, *, is_whole: bool) -> Line | None:
        """Judge the next line, or return None when more of it is needed.

        Args:
            line: From its beginning, without its end.
            is_whole: There is no more of it.

        Spec: Ruling E21.
        """
        columns = line[:LINE_LIMIT].expandtabs(4).rstrip("\r")
        if len(line) >= LINE_LIMIT:
            is_whole = True
        if not is_whole and _UNDECIDED.fullmatch(columns):
            return None
        matched, begin = self._match_containers(columns)
        if self._fence:
            if matched == len(self._containers):
                self._close_fence(columns, begin)
                return _NO_TEXT
            # Its container has ended, and the fence with it.
            self._fence = ""
        if not columns[begin:].strip(" "):
            # Nothing after a blank line belongs to an item that has nothing yet.
            is_over = self._is_item_bare and matched == len(self._containers)
            del self._containers[matched - is_over :]
            self._is_paragraph = self._is_table = self._is_item_bare = False
            return _NO_TEXT
        new, begin = self._new_containers(columns, begin, matched)
        is_within = not new and self._is_paragraph
        text = columns[begin:].lstrip(" ")
        is_definition = not is_within and text.startswith("[")
        if is_definition and not is_whole and _DEFINITION_BEGUN.fullmatch(text):
            return None
        indent = len(columns) - begin - len(text)
        if is_within and self._continues(text, indent, matched):
            return Line(text_at=_place(line, columns, text), is_continued=True)
        return self._begin_block(
            line, columns, text, [*self._containers[:matched], *new], indent
        )

    def _match_containers(self, columns: str) -> tuple[int, int]:
        """Return how many open containers go on, and the column behind them."""
        begin = 0
        for matched, width in enumerate(self._containers):
            place = _text_column(columns, begin)
            if width == _QUOTE:
                if place - begin > 3 or not columns.startswith(">", place):
                    return matched, begin
                begin = place + 1 + columns.startswith(" ", place + 1)
            elif place < len(columns):
                if place - begin < width:
                    return matched, begin
                begin += width
        return len(self._containers), begin

    def _close_fence(self, columns: str, begin: int) -> None:
        place = _text_column(columns, begin)
        found = _FENCE_END.fullmatch(columns, place)
        if found and place - begin <= 3 and found[1].startswith(self._fence):
            self._fence = ""

    def _new_containers(
        self, columns: str, begin: int, matched: int
    ) -> tuple[list[int], int]:
        """Return the containers that the line opens, and the column behind them."""
        new: list[int] = []
        while True:
            place = _text_column(columns, begin)
            if place - begin > 3 or place == len(columns):
                return new, begin
            if columns.startswith(">", place):
                new.append(_QUOTE)
                begin = place + 1 + columns.startswith(" ", place + 1)
                continue
            marker = _MARKER.match(columns, place)
            if marker is None or _RULE.fullmatch(columns, place):
                return new, begin
            is_interrupting = (
                self._is_paragraph and not new and matched == len(self._containers)
            )
            is_empty = marker.end() == len(columns)
            if is_interrupting and (is_empty or marker[1][:-1] not in {"", "1"}):
                # "1986. It was a good year" goes on with its paragraph.
                return new, begin
            spaces = 1 if is_empty or len(marker[2]) > 4 else len(marker[2])
            new.append(place - begin + len(marker[1]) + spaces)
            begin = place + len(marker[1]) + spaces

    def _continues(self, text: str, indent: int, matched: int) -> bool:
        """Tell whether text goes on with the paragraph before."""
        if indent > 3:
            return True
        if matched == len(self._containers) and _is_second_line(text):
            return False
        return not (_FENCE.match(text) or _HEADING.match(text) or _RULE.fullmatch(text))

    def _begin_block(
        self, line: str, columns: str, text: str, containers: list[int], indent: int
    ) -> Line:
        is_inside = containers == self._containers
        is_row = is_inside and self._is_table
        is_second_line = is_inside and self._is_paragraph and _is_second_line(text)
        self._containers = containers
        self._is_paragraph = False
        self._is_item_bare = not text
        self._is_table = is_second_line and "|" in text
        if not text or indent > 3 or is_second_line or _RULE.fullmatch(text):
            return _NO_TEXT
        if fence := _FENCE.match(text):
            self._fence = fence[1] or fence[2]
            return _NO_TEXT
        if not is_row and (definition := _DEFINITION.fullmatch(text)):
            return Line(label=normalised_label(definition[1]))
        is_heading = bool(_HEADING.match(text))
        self._is_table = is_row and not is_heading
        self._is_paragraph = not is_row and not is_heading
        return Line(
            text_at=_place(line, columns, text), is_single=not self._is_paragraph
        )


def _is_second_line(text: str) -> bool:
    """Tell whether a line makes the one before a heading, or the head of a table."""
    return bool(_UNDERLINE.fullmatch(text) or _DELIMITERS.fullmatch(text))


def normalised_label(label: str) -> str:
    """Return the form in which labels of references are compared.

    Spec: CommonMark 0.31, 4.7.
    """
    return " ".join(label.split()).casefold()


def _text_column(columns: str, begin: int) -> int:
    return len(columns) - len(columns[begin:].lstrip(" "))


def _place(line: str, columns: str, text: str) -> int:
    """Return where text begins in a line whose tabs were expanded."""
    skipped = len(columns[: len(columns) - len(text)].replace(" ", ""))
    place = 0
    while skipped or line[place] in " \t":
        skipped -= line[place] not in " \t"
        place += 1
    return place
