"""Text of the user → command, by one table of phrasings. Pure.

Rows are tried in order and the first that matches wins; `patterns` says how they are
written. Mere courtesy in front of a phrase is gone before they are tried.
"""

import re

from cards.engines.workspace.commands import (
    AppendText,
    Command,
    CountLines,
    CountTo,
    DiffFiles,
    Help,
    ListFiles,
    ReadFile,
    ReportOn,
    RunProgram,
    SearchText,
    StreamFile,
    SummariseFolder,
    TooLong,
    Unknown,
    WriteFile,
)
from cards.engines.workspace.examples import LONG_EXAMPLE
from cards.engines.workspace.manual import suggestions_for
from cards.engines.workspace.patterns import (
    Phrase,
    Reach,
    phrase,
    prefix,
    verbatim,
)
from cards.engines.workspace.wording import unquoted

# Characters a pattern looks at; only the content of `write` and `append` is longer.
# Bounds what a match can cost, since some rows are quadratic in runs of white space.
_PHRASE_CHARS = 2_000

_COURTESY = re.compile(
    r"(?:(?:please|(?:hey|hi|hello)(?: there)?|ok|okay|so|now|just|kindly|then|and|"
    r"(?:can|could|would|will) you|i want (?:you )?to|"
    r"i(?: would|'d) like (?:you )?to|let us|let's)(?:[\s,.!]+|$)|/(?=[a-z]))*",
    re.IGNORECASE,
)
_AFTERTHOUGHT = re.compile(
    r"(?:[\s,]+(?:please|for me|thanks|thank you|now))?[\s?!]*$", re.IGNORECASE
)
_EVERYWHERE = frozenset(
    {"here", ".", "./", "/", "everything", "everywhere", "workspace", "root", "it"}
    | {"all files", "all the files"}
)


def parse(text: str) -> Command:
    """Return the command that `text` asks for; never raises.

    An empty text and a greeting ask for help. A text that no row matches is `Unknown`
    with the usages that come near it, or `TooLong`.
    """
    text = text.strip()
    text = text[_courtesy_length(text[:_PHRASE_CHARS]) :]
    if not text:
        return Help()
    whole = text if len(text) <= _PHRASE_CHARS else ""
    subjects = {
        Reach.PREFIX: text[:_PHRASE_CHARS],
        Reach.VERBATIM: whole,
        Reach.TRIMMED: _AFTERTHOUGHT.sub("", whole),
    }
    for row in PHRASES:
        found = row.match(subjects[row.reach])
        if found is not None:
            return row.build(found, text[found.end() :])
    if not whole:
        return TooLong(len(text), _PHRASE_CHARS)
    return Unknown(text, suggestions_for(text))


def _courtesy_length(text: str) -> int:
    found = _COURTESY.match(text)
    return found.end() if found else 0


def _name(found: re.Match[str], group: str = "name") -> str:
    """Return a name without quotes and the marks of a sentence; "" for everything."""
    given: str = found[group] or ""
    if given and given[0] in "\"'`":
        return given.rstrip(".,;")[1:-1]
    name = given.rstrip(",;?!")
    if name.strip("."):
        name = name.rstrip(".")
    return "" if " ".join(name.lower().split()) in _EVERYWHERE else name


def _pace(found: re.Match[str]) -> int | None:
    return int(found["pace"]) if found["pace"] else None


def _search(found: re.Match[str]) -> Command:
    pattern = unquoted(found["pattern"])
    # People ask for "TODOs"; the files say TODO.
    if pattern.lower() in {"todos", "fixmes"}:
        pattern = pattern[:-1]
    return SearchText(pattern, _name(found))


def _help(_: re.Match[str]) -> Command:
    return Help()


def _list(found: re.Match[str]) -> Command:
    return ListFiles(_name(found))


def _read(found: re.Match[str]) -> Command:
    return ReadFile(_name(found))


def _count(found: re.Match[str]) -> Command:
    return CountLines(_name(found))


def _summarise(found: re.Match[str]) -> Command:
    return SummariseFolder(_name(found))


def _report(found: re.Match[str]) -> Command:
    return ReportOn(_name(found))


def _stream(found: re.Match[str]) -> Command:
    return StreamFile(_name(found), _pace(found))


def _story(found: re.Match[str]) -> Command:
    return StreamFile(LONG_EXAMPLE, _pace(found))


def _count_to(found: re.Match[str]) -> Command:
    return CountTo(int(found["limit"]), _pace(found))


def _diff(found: re.Match[str]) -> Command:
    return DiffFiles(_name(found, "old"), _name(found, "new"))


def _run(found: re.Match[str]) -> Command:
    return RunProgram(unquoted(found["line"].strip()))


def _write(found: re.Match[str], content: str) -> Command:
    return WriteFile(_name(found), content)


def _write_said(found: re.Match[str]) -> Command:
    return WriteFile(_name(found), unquoted(found["content"]))


def _append(found: re.Match[str], content: str) -> Command:
    return AppendText(_name(found), content)


def _append_said(found: re.Match[str]) -> Command:
    return AppendText(_name(found), unquoted(found["content"]))


PHRASES: tuple[Phrase, ...] = (
    phrase(
        r"(?:(?:write|make|create|prepare|give)(?: me)? )?(?:an? |the )?"
        r"(?:new |short |quick )?report(?: (?:on|about))?ANYWHERE",
        _report,
    ),
    # Files written: the user's own text, so nothing of it is trimmed.
    prefix(r"(?:write|create|save|make) (?:to )?FILLERS(?P<name>KEY)SEP", _write),
    prefix(r"(?:overwrite|replace) FILLERS(?P<name>KEY)SEP", _write),
    prefix(r"append (?:to )?FILLERS(?P<name>FILEKEY)SEP", _append),
    prefix(r"(?:append|add) to FILLERS(?P<name>KEY)SEP", _append),
    verbatim(
        r"(?:append|add)(?: (?:the|a|this) (?:line|text|sentence))?(?: saying)?:?"
        r" (?P<content>.+) to (?:the end of )?FILLERS(?P<name>FILEKEY)KIND",
        _append_said,
    ),
    prefix(r"append FILLERS(?P<name>KEY)SEP", _append),
    verbatim(
        r"(?:write|save|put) (?P<content>.+) (?:to|into|in|as)"
        r" FILLERS(?P<name>FILEKEY)KIND",
        _write_said,
    ),
    # Programs.
    verbatim(
        r"(?:(?:run|execute|start) (?:the (?:program|command) )?|\$ ?)(?P<line>.+)",
        _run,
    ),
    verbatim(
        r"(?P<line>(?:cat|find|grep|ls|wc) (?:.+ )?--?[a-z].*"
        r"|(?:date|echo|head|sleep|sort|tail|uniq)(?: .+)?)",
        _run,
    ),
    # Talk.
    phrase(r"help(?: .*)?|\?|h|commands|usage|how (?:do|does) .{0,20} work", _help),
    phrase(r"what (?:can|do) (?:you|i) do(?: .*)?|what are you", _help),
    phrase(r"count (?:up )?to (?P<limit>\d{1,9})PACE", _count_to),
    phrase(r"tell(?: me)? a(?: \w+)? story(?: PACE)?", _story),
    phrase(
        r"(?:stream|recite|tell(?: me)?|read (?:aloud|out(?: loud)?)) PLACEPACE",
        _stream,
    ),
    # Two files.
    phrase(
        r"(?:diff|compare) (?:between )?(?:the )?(?:files? )?(?P<old>NAME)"
        r"(?: (?:and|with|to|against|vs\.?|versus))? FILLERS(?P<new>NAME)",
        _diff,
    ),
    phrase(
        r"(?:what (?:is|are) |show (?:me )?)?(?:the )?"
        r"(?:what changed|what differs|diff|differences?|changes) between"
        r" FILLERS(?P<old>NAME) and FILLERS(?P<new>NAME)",
        _diff,
    ),
    phrase(
        r"how (?:does|do) FILLERS(?P<old>NAME) (?:differ from|and|compare (?:to|with))"
        r" FILLERS(?P<new>NAME)(?: (?:differ|compare))?",
        _diff,
    ),
    # Folders.
    phrase(r"(?:summari[sz]e|sum up|describe|explain)ANYWHERE", _summarise),
    phrase(
        r"(?:(?:give|show) me )?(?:a |an |the )?(?:short |quick )?"
        r"(?:summary|overview)ANYWHERE",
        _summarise,
    ),
    phrase(
        r"(?:count|number of|how many)(?: (?:all )?(?:the )?(?:number of )?"
        r"(?:lines|words|bytes|characters|files|rows))?(?: (?:of|in) (?:code|text))?"
        r"(?: (?:are|is))?(?: there)?ANYWHERE",
        _count,
    ),
    phrase(
        r"how many (?:lines|words|bytes|characters|files|rows) (?:does|do) PLACE"
        r" (?:have|contain)",
        _count,
    ),
    phrase(r"(?:how (?:big|long|large) is|size of|wc) PLACE", _count),
    # Search.
    phrase(r"(?:find|locate|where is) (?:the |a |my )?file PLACE", _read),
    phrase(
        r"(?:show(?: me)?|list|find|are there|any|what are)(?: all)?(?: the| my| any)?"
        r" (?P<pattern>todos?|fixmes?)ANYWHERE",
        _search,
    ),
    phrase(
        r"(?:search|find|grep|look|look up|scan)(?: for)?(?: all| every| any)?"
        r"(?: the)?(?: (?:text|word|phrase|string|occurrences? of|mentions? of"
        r"|lines? (?:with|containing)))? TEXTWITHIN",
        _search,
    ),
    phrase(
        r"where (?:is|are|does|do)(?: the (?:text|word))? TEXT"
        r"(?: (?:mentioned|used|defined|written|occurs?|appears?))?WITHIN",
        _search,
    ),
    phrase(
        r"(?:which|what) (?:files?|lines?)"
        r" (?:mentions?|contains?|uses?|has|have|says?) TEXTWITHIN",
        _search,
    ),
    # Lists and files.
    phrase(
        r"(?:list|show|display|give)(?: me)?(?: all)?(?: the| my)?"
        r" (?:files|folders|entries)(?: and folders)?ANYWHERE",
        _list,
    ),
    phrase(
        r"(?:what|which) files (?:are|exist|do (?:you|i) have)(?: there)?ANYWHERE",
        _list,
    ),
    phrase(r"(?:list|show|open)(?: me)? FILLERS(?P<name>NAME) (?:folder|dir)", _list),
    phrase(r"(?:list|ls|dir|tree|files)ANYWHERE", _list),
    phrase(
        r"(?:read|cat|open|show|view|display|print|type)(?: me)?"
        r"(?: (?:the )?contents? of)? PLACE",
        _read,
    ),
    phrase(r"(?:what(?: is|'s) in|(?:the )?contents? of) PLACE", _read),
    phrase(r"what does PLACE (?:say|contain)", _read),
)
