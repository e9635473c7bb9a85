"""Where a text names an artifact: which names there are, and where one may stand.

Spec: EMIT 13; Ruling E21.
"""

import re
import unicodedata
from bisect import bisect_right, insort
from dataclasses import dataclass
from typing import Final

from cards.protocol.ids import SAFE_ID, is_safe_id
from cards.protocol.name_sieve import UNSPACED, NameSieve

#: Characters of a name. Spec: none; file systems take no more.
MAX_NAME_LENGTH: Final = 255

#: Characters before a name that decide whether one may stand there.
CONTEXT_LENGTH: Final = 4

#: Characters that are read of a text with escapes before it is clear what it may name.
_GLANCE: Final = 8

_WORD: Final = rf"[^\W{UNSPACED}]"

#: Joins the character before with what follows it, whatever the scripts.
_JOINERS: Final = "\u200d\ufe0e\ufe0f\U0001f3fb-\U0001f3ff"

#: A place within a word, a path, an address of mail or of the web: no name begins or
#: ends there. It depends on nothing but the text, so that of two names side by side
#: none is left out because the other one became a link.
_WITHIN: Final = re.compile(
    rf"(?<={_WORD})(?={_WORD})(?!_{{1,3}}(?!{_WORD}))"
    rf"|(?<={_WORD})(?=[-.@\\]{_WORD})"
    rf"|(?<={_WORD}[-@])(?={_WORD})"
    rf"|(?<=\.)(?<!\.\.)(?={_WORD})"
    r"|(?<=[/\\\u200d])|(?=/|://)|(?<=!)(?=\[)"
    rf"|(?=[{_JOINERS}])"
)
#: What may become a place within a word.
_OPEN: Final = re.compile(r"[-.@\\]?|:/?|_{1,3}")
_EMPHASIS: Final = re.compile(rf"(?<!{_WORD})(?=_)(_{{1,3}})(?!_)")

_EMPHASIS_END: Final = re.compile(rf"_{{1,3}}(?!{_WORD})")

_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])")

#: What has a meaning of its own within the text of a link.
_SPECIAL: Final = re.compile(
    r"[\\\[\]`*~|]|<(?=[A-Za-z/!?])|&(?=#?\w+;)|(?<![^\W_])_+|_+(?![^\W_])"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A mention in a text.

    Attributes:
        end: Where it ends.
        link: The link that takes its place.
    """

    end: int
    link: str


class Unsettled:
    """Whether a name stands there depends on what follows."""


UNSETTLED: Final = Unsettled()


class KnownArtifacts:
    """The artifacts of a session, by name and by id.

    One for all texts of a session; what it learns meanwhile counts for the text that
    is not settled yet.

    Attributes:
        version: Changes with each thing learnt.
        sieve: Rules out most of a text.

    Spec: EMIT 13; Ruling E21.
    """

    def __init__(self) -> None:
        self.version = 0
        self._name_of_id: dict[str, str] = {}
        #: The id and the name that each written form of a name means.
        self._meant: dict[str, tuple[str, str]] = {}
        #: All that may be written, sorted.
        self._forms: list[str] = []
        self._max_length = 0
        self.sieve = NameSieve()

    def __bool__(self) -> bool:
        return bool(self._forms)

    def knows(self, artifact_id: str) -> bool:
        """Tell whether an artifact was learnt."""
        return artifact_id in self._name_of_id

    def learn(self, artifact_id: str, name: str) -> None:
        """Know an artifact, or know it by one more name.

        Of artifacts with equal names the one learnt last is meant. An id means its
        artifact even if another one has it as a name.

        Raises:
            ValueError: The id is not safe within an address, or the name is empty,
                too long or more than one line.

        Spec: EMIT 13; Ruling E21.
        """
        if not is_safe_id(artifact_id):
            raise ValueError(
                f"artifact_id must match {SAFE_ID.pattern}, got {artifact_id!r}"
            )
        if len(name) > MAX_NAME_LENGTH or name.splitlines() != [name]:
            raise ValueError(
                f"name must be one line of 1 to {MAX_NAME_LENGTH} characters,"
                f" got {name[:40]!r}"
            )
        self.version += 1
        self._add_form(artifact_id)
        self._name_of_id[artifact_id] = name
        composed = unicodedata.normalize("NFC", name)
        decomposed = unicodedata.normalize("NFD", name)
        for form in {name, composed, decomposed}:
            self._add_form(form)
            self._meant[form] = (artifact_id, name)

    def _add_form(self, form: str) -> None:
        if form in self._name_of_id or form in self._meant:
            return
        insort(self._forms, form)
        self._max_length = max(self._max_length, len(form))
        self.sieve.add(form)

    def match(
        self, text: str, at: int, end: int, *, is_final: bool
    ) -> Mention | Unsettled | None:
        """Return the longest mention that begins at a place.

        Args:
            end: Where the text ends as far as it is known.
            is_final: Nothing of the same block follows.

        Spec: Ruling E21.
        """
        written = text[at : min(end, at + 2 * self._max_length)]
        plain, lengths = self._read(written)
        is_cut = at + (lengths[-1] if lengths else len(written)) == end and not is_final
        if is_cut and self._may_become_name(plain):
            return UNSETTLED
        while form := self._longest_form(plain):
            place = at + (lengths[len(form)] if lengths else len(form))
            verdict = self._is_apart(text, at, place, end, is_final=is_final)
            if verdict is None:
                return UNSETTLED
            if verdict:
                return Mention(end=place, link=self._link(form))
            plain = form[:-1]
        return None

    def _read(self, written: str) -> tuple[str, list[int] | None]:
        """Return what is written without its escapes, and where its characters end.

        Of much that begins as no name does, only the beginning: it holds all that
        could be found.
        """
        plain, lengths = _unescaped(written, _GLANCE)
        if lengths and len(plain) == _GLANCE and self._begins_form(plain):
            return _unescaped(written, len(written))
        return plain, lengths

    def _may_become_name(self, plain: str) -> bool:
        if plain.endswith("\\"):
            # It may escape what follows.
            return self._may_become_name(plain[:-1]) or self._begins_form(plain)
        return self._begins_form(plain)

    def _begins_form(self, plain: str) -> bool:
        place = bisect_right(self._forms, plain)
        return place < len(self._forms) and self._forms[place].startswith(plain)

    def _longest_form(self, plain: str) -> str:
        """Return the longest form that a text begins with; "" for none."""
        while plain:
            place = bisect_right(self._forms, plain)
            if not place:
                return ""
            form = self._forms[place - 1]
            if plain.startswith(form):
                return form
            # Any other one is a beginning of what the two have in common.
            plain = plain[: _common_length(plain, form)]
        return ""

    @staticmethod
    def _is_apart(
        text: str, begin: int, place: int, end: int, *, is_final: bool
    ) -> bool | None:
        """Tell whether a word begins and ends there; None when that is open."""
        if not is_final and _OPEN.fullmatch(text, place, end):
            return None
        is_within = _WITHIN.match(text, begin, end) or _WITHIN.match(text, place, end)
        if is_within and not _is_emphasised(text, begin, place, end):
            return False
        return not (place < end and _is_mark(text[place]))

    def _link(self, form: str) -> str:
        name = self._name_of_id.get(form)
        artifact_id = form
        if name is None:
            artifact_id, name = self._meant[form]
        return f"[{_SPECIAL.sub(_escape, name)}](artifact://{artifact_id})"


def _escape(found: re.Match[str]) -> str:
    return "".join("\\" + character for character in found[0])


def _is_emphasised(text: str, begin: int, place: int, end: int) -> bool:
    """Tell whether equal runs of underscores stand on both sides of a name."""
    before = text[max(0, begin - CONTEXT_LENGTH) : begin]
    count = len(before) - len(before.rstrip("_"))
    opener = _EMPHASIS.match(text, begin - count, end)
    closer = _EMPHASIS_END.match(text, place, end)
    return (
        opener is not None
        and closer is not None
        and opener.end() == begin
        and len(closer[0]) == count
    )


def _is_mark(character: str) -> bool:
    """Tell whether a character changes the one before it."""
    return not character.isascii() and unicodedata.category(character)[0] == "M"


def _unescaped(written: str, count: int) -> tuple[str, list[int] | None]:
    """Return a text without its escapes, and where its characters end.

    The second is None when there are none, and each ends where it ends.

    Args:
        count: Characters that are wanted if there are escapes.
    """
    if "\\" not in written:
        return written, None
    plain: list[str] = []
    lengths = [0]
    place = 0
    while place < len(written) and len(plain) < count:
        found = _ESCAPED.match(written, place)
        plain.append(found[1] if found else written[place])
        place = found.end() if found else place + 1
        lengths.append(place)
    return "".join(plain), lengths


def _common_length(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
