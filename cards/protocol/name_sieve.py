r"""What cannot name an artifact, told at little cost.

Nearly all text names nothing, and a stream is searched chunk by chunk: the sieve lets
through what certainly is nothing, and stops at what may be something.

Spec: Ruling E21; issue "Artifacts", must reach.
"""

import re
from collections.abc import Callable
from typing import Final

#: Scripts that are written without spaces, or join particles to a word: a name needs
#: no space beside them.
UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u9fff\ua000-\ua4cf"
    "\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00016fe0-\U00018dff"
    "\U0001b000-\U0001b2ff\U00020000-\U0003ffff"
)

#: A letter or digit of the other scripts.
LETTER: Final = rf"[^\W_{UNSPACED}]"

PUNCTUATION: Final = re.compile(r"[!-/:-@\[-`{-~]")

#: Characters of a name's beginning that are compared.
_HEAD_LENGTH: Final = 6

#: First characters outside of ASCII that are told apart; with more, none are.
_MAX_OTHERS: Final = 256

#: What most names have within them and most text has not.
_MARK: Final = re.compile(r"_|\.(?=\w)")

_is_letter: Final = re.compile(LETTER).match


class NameSieve:
    """The beginnings of names.

    Attributes:
        find: Finds in a text, from a place to another, what may begin a name, and
            what Markdown may read as no plain text.
        find_name: Finds what may begin a name.
        is_quiet: Tells whether a chunk within plain text surely has neither.
    """

    def __init__(self) -> None:
        self._forms: list[str] = []
        self._firsts: set[str] = set()
        self._firsts_of_spaced: set[str] = set()
        self._unmarked: dict[str, set[str]] = {}
        self._head_length = _HEAD_LENGTH
        #: What may follow the first character, also where the text is cut.
        self._tails: set[str] = set()
        self._compile()

    def add(self, form: str) -> None:
        """Know one more form in which a name is written."""
        before = (len(self._firsts), len(self._firsts_of_spaced), self._head_length)
        marks = sum(map(len, self._unmarked.values()))
        self._forms.append(form)
        self._firsts.add(form[0])
        if PUNCTUATION.match(form):
            self._firsts.add("\\")
        if " " in form:
            self._firsts_of_spaced.add(form[0])
        if not _MARK.search(form):
            self._unmarked.setdefault(form[0], set()).add(form[1:2])
        if len(form) < self._head_length:
            self._head_length = len(form)
            self._tails = {tail for each in self._forms for tail in self._cuts(each)}
        else:
            self._tails.update(self._cuts(form))
        after = (len(self._firsts), len(self._firsts_of_spaced), self._head_length)
        if before != after or marks != sum(map(len, self._unmarked.values())):
            self._compile()

    def _cuts(self, form: str) -> list[str]:
        return [form[1:end] for end in range(1, self._head_length + 1)]

    def may_begin(self, text: str, at: int, end: int) -> bool:
        """Tell whether a name may begin at a place of a text that ends at another."""
        first = text[at]
        if first not in self._firsts:
            return False
        tail = text[at + 1 : min(at + self._head_length, end)]
        return tail in self._tails or first == "\\" or "\\" in tail

    def _compile(self) -> None:
        firsts = _class_of(self._firsts)
        letters = _class_of({each for each in self._firsts if _is_letter(each)})
        # Letters begin a name where they begin a word.
        inner = rf"(?<!{LETTER}[{letters}])" if letters else ""
        self.find = re.compile(
            rf"[\n`\[\]<\\/!{firsts}]"
            rf"(?:(?<![!{firsts}])|(?<=!)(?:\[|\Z)"
            + (rf"|(?<=[{firsts}]){inner})" if firsts else ")")
        ).search
        self.find_name = re.compile(rf"[{firsts}]{inner}" if firsts else r"(?!)").search
        self.is_quiet = self._quiet_test(firsts, inner)

    def _quiet_test(self, firsts: str, inner: str) -> Callable[[str], bool]:
        if not firsts:
            find_special = re.compile(r"[\n`\[<\\/]").search
            return lambda chunk: find_special(chunk) is None
        # A name within the chunk has a mark.
        find = re.compile(r"[\n`\[<\\/_!.](?:(?<![!.])|(?<=\.)(?=\w)|(?<=!)\Z)").search
        # One that the chunk cuts begins in its last word.
        tails_of = self._tails_finder(firsts, inner)
        is_no_tail = self._tails.isdisjoint
        # Unless it has no mark, or a space.
        find_unmarked = self._unmarked_finder()
        spaced = _class_of(self._firsts_of_spaced)
        tails_of_spaced = self._tails_finder(spaced, inner) if spaced else None

        def is_quiet(chunk: str) -> bool:
            return (
                find(chunk) is None
                and is_no_tail(tails_of(chunk, chunk.rfind(" ") + 1))
                and (find_unmarked is None or find_unmarked(chunk) is None)
                and (tails_of_spaced is None or is_no_tail(tails_of_spaced(chunk)))
            )

        return is_quiet

    def _tails_finder(self, firsts: str, inner: str) -> Callable[..., list[str]]:
        width = self._head_length - 1
        return re.compile(rf"[{firsts}]{inner}(?=(.{{0,{width}}}))", re.DOTALL).findall

    def _unmarked_finder(self) -> Callable[[str], re.Match[str] | None] | None:
        if not self._unmarked:
            return None
        if len(self._unmarked) > _MAX_OTHERS:
            return self.find_name
        heads = "|".join(
            re.escape(first) + ("" if "" in seconds else f"[{_class_of(seconds)}]")
            for first, seconds in sorted(self._unmarked.items())
        )
        return re.compile(heads).search


def _class_of(characters: set[str]) -> str:
    """Return the inside of a class of a pattern, perhaps with some more."""
    others = [each for each in characters if not each.isascii()]
    ascii_ones = sorted(each for each in characters if each.isascii())
    if len(others) > _MAX_OTHERS:
        return "".join(map(re.escape, ascii_ones)) + r"\x80-\U0010ffff"
    return "".join(map(re.escape, [*ascii_ones, *sorted(others)]))
