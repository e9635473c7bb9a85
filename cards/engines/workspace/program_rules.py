"""Which programs may run, and with which arguments. Pure.

The list names what is allowed, option by option: an option that nobody thought of is
refused. Left out on purpose is whatever writes (`sort -o`, `uniq IN OUT`,
`find -delete`), runs other programs (`find -exec`, `sort --compress-program`), reads
names or patterns from a file (`wc --files0-from`, `grep -f`) or follows links
(`grep -R`, `find -L`, `ls -L`).
"""

import re
import shlex
from dataclasses import dataclass

from cards.engines.workspace.confinement import is_outside
from cards.engines.workspace.failures import denied, invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRule:
    """What one program may be told."""

    #: One-letter options without a value; digits are always allowed (`head -5`).
    flags: str = ""
    #: One-letter options with a value, in the same word or the next.
    valued: str = ""
    #: Long options, and the primaries of `find`.
    words: frozenset[str] = frozenset()
    #: Pattern of every word that is no option; None for any.
    operand: str | None = None
    #: Words that are no option, at most; None for any number.
    max_operands: int | None = None
    #: Everything is text to the program: no options, no paths.
    is_talk: bool = False
    #: Exit statuses that are an answer and no failure.
    answers: frozenset[int] = frozenset({0})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PROGRAMS: dict[str, ProgramRule] = {
    "cat": ProgramRule(flags="AbeEnstTv", words=_words("--number --squeeze-blank")),
    "date": ProgramRule(
        flags="uR",
        valued="I",
        words=_words("--utc --iso-8601 --rfc-3339 --rfc-email --date"),
        # A word without the plus would set the clock.
        operand=r"\+.*",
    ),
    "echo": ProgramRule(is_talk=True),
    "find": ProgramRule(
        words=_words(
            "-a -and -o -or -not -name -iname -path -ipath -type -size -empty "
            "-mtime -mmin -maxdepth -mindepth -print -ls"
        )
    ),
    "grep": ProgramRule(
        flags="cEFGhHiLlnoqrsvwx",
        valued="ABCem",
        words=_words(
            "--ignore-case --count --line-number --recursive --invert-match "
            "--word-regexp --max-count --context --include --exclude --exclude-dir"
        ),
        # 1 says that nothing matched.
        answers=frozenset({0, 1}),
    ),
    "head": ProgramRule(flags="qv", valued="cn", words=_words("--lines --bytes")),
    "ls": ProgramRule(
        flags="1aAcdFghlmnopQrRsStuUvxX",
        words=_words(
            "--all --almost-all --human-readable --recursive --reverse --size "
            "--sort --time --full-time --group-directories-first"
        ),
    ),
    "sleep": ProgramRule(operand=r"\d+(?:\.\d+)?[smhd]?"),
    "sort": ProgramRule(
        flags="bdfghiMnrsuVcC",
        valued="kt",
        words=_words(
            "--numeric-sort --reverse --unique --ignore-case --key "
            "--field-separator --human-numeric-sort --check"
        ),
    ),
    "tail": ProgramRule(flags="fqv", valued="cn", words=_words("--lines --bytes")),
    # A second operand would be the file to write.
    "uniq": ProgramRule(flags="cdDiu", valued="fsw", max_operands=1),
    "wc": ProgramRule(
        flags="clmwL",
        words=_words("--bytes --chars --lines --words --max-line-length"),
    ),
}

_SHELL_WORDS = frozenset({"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramPlan:
    """A program that may run."""

    program: str
    arguments: tuple[str, ...]
    rule: ProgramRule

    @property
    def line(self) -> str:
        """The plan as one would type it."""
        return shlex.join((self.program, *self.arguments))

    @property
    def operands(self) -> tuple[str, ...]:
        """The arguments that may be paths."""
        if self.rule.is_talk:
            return ()
        return tuple(word for word in self.arguments if not _is_option(word))


def plan_program(line: str) -> ProgramPlan:
    """Return what a typed line would run.

    Raises:
        WorkspaceFailure: The line cannot be split, its program is not on the list, or
            an argument is not allowed.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise invalid("A quote in that line is not closed.", code="bad_line") from error
    if not words:
        raise invalid("I need the name of a program.", code="bad_line")
    if "\0" in line or line.encode("utf-8", "ignore").decode() != line:
        sentence = "That line holds characters that no program takes."
        raise invalid(sentence, code="bad_line")
    program, arguments = words[0], tuple(words[1:])
    rule = PROGRAMS.get(program)
    if rule is None:
        allowed = ", ".join(f"`{name}`" for name in sorted(PROGRAMS))
        raise denied(
            f"`{program}` is not on the list of programs I may run. These are: "
            f"{allowed}.",
            code="program_not_allowed",
        )
    if _SHELL_WORDS.intersection(arguments):
        raise denied(
            "I run one program without a shell, so there are no pipes, redirections "
            "or chains.",
            code="no_shell",
        )
    plan = ProgramPlan(program=program, arguments=arguments, rule=rule)
    _check_arguments(plan)
    return plan


def _check_arguments(plan: ProgramPlan) -> None:
    rule = plan.rule
    if rule.is_talk:
        return
    for word in plan.arguments:
        if _is_option(word) and not _is_allowed_option(rule, word):
            raise denied(
                f"`{plan.program}` may not be run with `{word}`.",
                code="argument_not_allowed",
            )
    for word in plan.operands:
        _check_operand(plan, word)
    most = rule.max_operands
    if most is not None and len(plan.operands) > most:
        raise denied(
            f"`{plan.program}` may be given {most} file name, and values only right "
            "behind their option (`-f1`).",
            code="argument_not_allowed",
        )


def _check_operand(plan: ProgramPlan, word: str) -> None:
    if is_outside(word):
        raise denied(
            f"`{word}` looks like a path outside the workspace.",
            code="outside_workspace",
        )
    pattern = plan.rule.operand
    if pattern is not None and not re.fullmatch(pattern, word, re.DOTALL):
        raise denied(
            f"`{plan.program}` may not be run with `{word}`.",
            code="argument_not_allowed",
        )


def _is_option(word: str) -> bool:
    # A lone dash is the standard input, which is empty here.
    return len(word) > 1 and word.startswith("-")


def _is_allowed_option(rule: ProgramRule, word: str) -> bool:
    if word.partition("=")[0] in rule.words:
        return True
    letters = f"[0-9{re.escape(rule.flags)}]*"
    value = f"(?:[{rule.valued}].*)?" if rule.valued else ""
    return re.fullmatch(f"-{letters}{value}", word, re.DOTALL) is not None
