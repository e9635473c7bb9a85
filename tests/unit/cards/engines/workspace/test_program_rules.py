"""Which programs may run: what would write, execute or look outside may not."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.engines.workspace.failures import WorkspaceFailure
from cards.engines.workspace.program_rules import PROGRAMS, plan_program


class TestPlanProgram:
    @pytest.mark.parametrize(
        "line",
        [
            "ls",
            "ls -la src",
            "cat README.md",
            "head -5 README.md",
            "head -n 5 README.md",
            "tail -n5 README.md",
            "tail -f README.md",
            "wc -l data/sales.csv",
            "grep -rn TODO src",
            "grep -A2 -i 'to do' README.md",
            "grep --include=*.py -r TODO .",
            "find . -name '*.md' -type f -maxdepth 3",
            "find . -mtime -1",
            "sort -t, -k2 -n data/sales.csv",
            "uniq -c data/sales.csv",
            "date -u +%F",
            "echo -n /etc/passwd -x ...",
            "sleep 0.5",
        ],
    )
    def test_allows(self, line: str) -> None:
        plan_program(line)

    @pytest.mark.parametrize(
        "line",
        [
            "python3 -c 'print(1)'",
            "/bin/ls",
            "sh -c ls",
            "env",
            "find . -exec rm {} +",
            "find . -execdir rm {} +",
            "find . -ok rm {} +",
            "find . -delete",
            "find . -fprint x",
            "find . -fls x",
            "find -L . -name x",
            "find . -follow",
            "find . -files0-from x",
            "sort -o x README.md",
            "sort -ox README.md",
            "sort -nox README.md",
            "sort --output=x README.md",
            "sort --compress-program=sh README.md",
            "sort -T . README.md",
            "sort --files0-from=x",
            "uniq README.md x",
            "uniq -f 1 README.md x",
            "uniq -- -c x",
            "wc --files0-from=x",
            "grep -f x README.md",
            "grep --file=x README.md",
            "grep -R x .",
            "ls -L",
            "ls --dereference",
            "date 01010000",
            "date -s tomorrow",
            "date --set=tomorrow",
            "date -f README.md",
            "cat /etc/passwd",
            "cat ../secret.txt",
            "cat sub/../../secret.txt",
            "ls ..",
            "head -n 5 /etc/passwd",
            "sleep infinity",
            "tail --pid=1 README.md",
        ],
    )
    def test_refuses(self, line: str) -> None:
        with pytest.raises(WorkspaceFailure) as caught:
            plan_program(line)

        assert caught.value.error_type == "permission_denied"

    @pytest.mark.parametrize("line", ["ls | wc", "ls > x", "ls ; ls", "ls && ls"])
    def test_says_that_there_is_no_shell(self, line: str) -> None:
        with pytest.raises(WorkspaceFailure) as caught:
            plan_program(line)

        assert caught.value.reason_code == "no_shell"

    @pytest.mark.parametrize("line", ["", "   ", "ls 'a", "echo \0", "echo \ud800"])
    def test_refuses_lines_it_cannot_split(self, line: str) -> None:
        with pytest.raises(WorkspaceFailure) as caught:
            plan_program(line)

        assert caught.value.reason_code == "bad_line"

    @given(st.sampled_from(sorted(PROGRAMS)), st.lists(st.text(max_size=8)))
    def test_raises_nothing_but_failures(
        self, program: str, arguments: list[str]
    ) -> None:
        with contextlib.suppress(WorkspaceFailure):
            plan_program(" ".join((program, *arguments)))
