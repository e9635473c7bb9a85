"""Mentions as a slow reader finds them: one who has the whole text and much time.

Written from the rules alone, character by character, and for plain text: what is code
or a link is left to a reader of Markdown.
"""

from collections.abc import Mapping

#: The scripts in the tests' texts that need no space beside a name.
_FIRST_UNSPACED = "\u2e80"
_CONNECTORS = "-.@\\"
_PATH_ENDS = ' \t\n，。、"|<>`[]\\'


def _is_word(character: str) -> bool:
    is_spaced = character < _FIRST_UNSPACED
    return (character.isalnum() and is_spaced) or character == "_"


class PlainText:
    """A text, as one asks it about its places."""

    def __init__(self, text: str) -> None:
        self.text = text

    def at(self, place: int) -> str:
        """Return a character; a space beyond the ends."""
        return self.text[place] if 0 <= place < len(self.text) else " "

    def is_within(self, place: int) -> bool:
        """Tell whether a place is within a word, a path or an address."""
        before, after = self.at(place - 1), self.at(place)
        if _is_word(before) and _is_word(after):
            return not self._is_run_of_underscores(place)
        if _is_word(before) and after in _CONNECTORS and _is_word(self.at(place + 1)):
            return True
        if before == "." and self.at(place - 2) != "." and _is_word(after):
            return True
        if before in "-@" and _is_word(after) and _is_word(self.at(place - 2)):
            return True
        is_joined = after in "\u0301\u200d🏽" or before in "\u200d"
        is_address = before in "/\\" or after == "/" or self.text[place:][:3] == "://"
        return is_joined or is_address

    def _is_run_of_underscores(self, place: int) -> bool:
        rest = self.text[place:]
        count = len(rest) - len(rest.lstrip("_"))
        return 0 < count <= 3 and not _is_word((rest + " ")[count])

    def is_emphasised(self, begin: int, end: int) -> bool:
        """Tell whether equal runs of underscores stand on both sides."""
        before, after = self.text[:begin], self.text[end:]
        count = len(before) - len(before.rstrip("_"))
        return (
            0 < count <= 3
            and count == len(after) - len(after.lstrip("_"))
            and not _is_word(self.at(begin - count - 1))
            and not _is_word(self.at(end + count))
        )

    def path_places(self) -> set[int]:
        """Return the places that are within a path or an address of the web."""
        found: set[int] = set()
        is_path = False
        for place, character in enumerate(self.text):
            before = self.at(place - 1)
            if character in _PATH_ENDS:
                is_path = False
            elif character == "/" and (
                before.isspace() or _is_word(before) or before in ".~:/-"
            ):
                is_path = True
            if is_path:
                found.add(place)
        return found


def mentions_in(text: str, names: Mapping[str, str]) -> list[tuple[int, str]]:
    """Return where which names are mentioned, in order."""
    plain = PlainText(text)
    paths = plain.path_places()
    longest_first = sorted(names, key=len, reverse=True)
    found: list[tuple[int, str]] = []
    place = 0
    while place < len(text):
        for name in longest_first:
            end = place + len(name)
            is_apart = not (plain.is_within(place) or plain.is_within(end))
            if (
                text.startswith(name, place)
                and place not in paths
                and (is_apart or plain.is_emphasised(place, end))
            ):
                found.append((place, name))
                place = end
                break
        else:
            place += 1
    return found
