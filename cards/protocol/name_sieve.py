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

#: Beginnings with the same first character that are told apart.
_MAX_TAILS: Final = 16

#: What most names have within them and most text has not.
_MARK: Final = re.compile(r"_|\.(?=\w)")

_is_letter: Final = re.compile(LETTER).match

_find_special: Final = re.compile(r"[\n`\[<\\/]").search


def _is_plain(chunk: str) -> bool:
    return _find_special(chunk) is None


class NameSieve:
    """The beginnings of names, and what is made of them when it is asked for."""

    def __init__(self) -> None:
        self._forms: list[str] = []
        self._firsts: set[str] = set()
        #: The beginnings of names without a mark.
        self._unmarked: set[str] = set()
        #: What may follow a space within a name, also where a text is cut.
        self._next_words: set[str] = set()
        self._head_length = _HEAD_LENGTH
        #: All beginnings, also those that the end of a text cuts.
        self._heads: set[str] = set()
        self._is_stale = True

    def add(self, form: str) -> None:
        """Know one more form in which a name is written."""
        before = (len(self._firsts), len(self._unmarked), self._head_length)
        self._forms.append(form)
        self._firsts.add(form[0])
        if PUNCTUATION.match(form):
            self._firsts.add("\\")
        if not _MARK.search(form):
            self._unmarked.add(form[:_HEAD_LENGTH])
        for space in re.finditer(" ", form):
            self._next_words.update(_cuts(form[space.end() :], _HEAD_LENGTH))
        if len(form) < self._head_length:
            self._head_length = len(form)
            self._heads.clear()
            for each in self._forms:
                self._heads.update(_cuts(each, len(form)))
        else:
            self._heads.update(_cuts(form, self._head_length))
        if before != (len(self._firsts), len(self._unmarked), self._head_length):
            self._is_stale = True

    @property
    def stops(self) -> re.Pattern[str]:
        """Finds what may begin a name, or be no plain text to Markdown."""
        self._renew()
        return self._stops

    @property
    def beginnings(self) -> re.Pattern[str]:
        """Finds what may begin a name."""
        self._renew()
        return self._beginnings

    @property
    def is_quiet(self) -> Callable[[str], bool]:
        """Tells whether a chunk within plain text surely has neither."""
        self._renew()
        return self._is_quiet

    def may_begin(self, text: str, at: int, end: int) -> bool:
        """Tell whether a name may begin at a place of a text that ends at another."""
        head = text[at : min(at + self._head_length, end)]
        return head in self._heads or ("\\" in head and head[0] in self._firsts)

    def _renew(self) -> None:
        """Compile the patterns anew; many names are often learnt at once."""
        if not self._is_stale:
            return
        self._is_stale = False
        firsts = _class_of(self._firsts)
        letters = _class_of({each for each in self._firsts if _is_letter(each)})
        # Letters begin a name where they begin a word.
        inner = rf"(?<!{LETTER}[{letters}])" if letters else ""
        self._stops = re.compile(
            rf"[\n`\[\]<\\/!{firsts}]"
            r"(?:(?<=[\n`\[\]<\\/])|(?<=!)(?:\[|\Z)"
            + (rf"|(?<=[{firsts}]){inner})" if firsts else ")")
        )
        self._beginnings = re.compile(rf"[{firsts}]{inner}" if firsts else r"(?!)")
        self._is_quiet = self._quiet_test() if firsts else _is_plain

    def _quiet_test(self) -> Callable[[str], bool]:
        find = self._loud_finder()
        may_hold = self._may_hold
        heads, next_words = self._heads, self._next_words
        head_length = self._head_length

        def is_quiet(chunk: str) -> bool:
            if find(chunk) is not None:
                return False
            # A name that the chunk cuts begins in its last word.
            word = chunk.rpartition(" ")[2]
            if word[:_HEAD_LENGTH] in next_words and may_hold(chunk):
                return False
            if word.isascii() and word.isalnum():
                return word[:head_length] not in heads
            return not may_hold(word)

        return is_quiet

    def _may_hold(self, text: str) -> bool:
        """Tell whether a name may begin somewhere in a text."""
        place, end = 0, len(text)
        while found := self._beginnings.search(text, place):
            place = found.start() + 1
            if self.may_begin(text, place - 1, end):
                return True
        return False

    def _loud_finder(self) -> Callable[[str], re.Match[str] | None]:
        """Return what finds special characters, and what gives a name away."""
        # A mark, or the beginning of one without.
        tails: dict[str, set[str]] = {}
        for head in self._unmarked:
            tails.setdefault(head[0], set()).add(head[1:])
        firsts = _class_of(set(tails))
        heads = "|".join(
            f"(?<={re.escape(first)}){_tail_pattern(found)}"
            for first, found in sorted(tails.items())
        )
        if len(tails) > _MAX_OTHERS:
            heads = rf"(?<=[{firsts}])"
        return re.compile(
            rf"[\n`\[<\\/_!.{firsts}]"
            r"(?:(?<=[\n`\[<\\/_])|(?<=\.)(?=\w)|(?<=!)\Z"
            + (f"|{heads})" if heads else ")")
        ).search


def _tail_pattern(tails: set[str]) -> str:
    """Return a pattern for what follows a first character."""
    if "" in tails:
        return ""
    if len(tails) > _MAX_TAILS:
        return f"[{_class_of({tail[0] for tail in tails})}]"
    return f"(?:{'|'.join(map(re.escape, sorted(tails)))})"


def _cuts(form: str, length: int) -> list[str]:
    return [form[:end] for end in range(length + 1)]


def _class_of(characters: set[str]) -> str:
    """Return the inside of a class of a pattern, perhaps with some more."""
    others = [each for each in characters if not each.isascii()]
    ascii_ones = sorted(each for each in characters if each.isascii())
    if len(others) > _MAX_OTHERS:
        return "".join(map(re.escape, ascii_ones)) + r"\x80-\U0010ffff"
    return "".join(map(re.escape, [*ascii_ones, *sorted(others)]))
