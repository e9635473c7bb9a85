"""Plain-text search with context. Pure."""

from dataclasses import dataclass

from cards.engines.workspace.limits import Limits
from cards.engines.workspace.scanning import lines_of
from cards.engines.workspace.wording import shortened


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that holds the pattern."""

    path: str
    #: From 1.
    line_no: int
    line: str


class TextSearch:
    """The hits of one pattern in text after text, in any case, literally.

    Args:
        pattern: Not empty.
        limits: How many hits are kept and how much is shown around each.

    Attributes:
        hits: In order of discovery, at most `limits.search_hits`.
        output: The hits with their neighbours as `path:no: line` and `path-no- line`,
            with `--` between parts that do not touch.
        is_full: There was one more hit than are kept.
    """

    def __init__(self, pattern: str, limits: Limits) -> None:
        self.hits: list[Hit] = []
        self.output: list[str] = []
        self.is_full = False
        self._folded = pattern.casefold()
        self._limits = limits

    def look_into(self, path: str, text: str) -> None:
        """Add the hits of one text."""
        if self._folded not in text.casefold():
            return
        lines = lines_of(text)
        shown_until = -1
        for index, line in enumerate(lines):
            if self._folded not in line.casefold():
                continue
            if len(self.hits) == self._limits.search_hits:
                self.is_full = True
                return
            shown = shortened(line, self._limits.line_chars)
            self.hits.append(Hit(path, index + 1, shown))
            shown_until = self._show(path, lines, index, shown_until)

    def _show(self, path: str, lines: list[str], index: int, shown_until: int) -> int:
        """Show a hit and its neighbours; a line that is shown already becomes a hit.

        Returns:
            Index of the last line of this text that is shown.
        """
        context = self._limits.search_context
        first = max(index - context, shown_until + 1)
        last = min(index + context, len(lines) - 1)
        if self.output and (shown_until < 0 or first > shown_until + 1):
            self.output.append("--")
        if index <= shown_until:
            place = len(self.output) - 1 - (shown_until - index)
            self.output[place] = self._row(path, lines, index, ":")
        for number in range(first, last + 1):
            mark = ":" if number == index else "-"
            self.output.append(self._row(path, lines, number, mark))
        return max(last, shown_until)

    def _row(self, path: str, lines: list[str], index: int, mark: str) -> str:
        line = shortened(lines[index], self._limits.line_chars)
        return f"{path}{mark}{index + 1}{mark} {line}".rstrip()
