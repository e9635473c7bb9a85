"""The structure of the house, checked."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services import PROJECT

SOURCES = [
    path
    for folder in ("config", "cards", "prompts", "artifacts")
    for path in sorted((PROJECT / folder).rglob("*.py"))
    if "migrations" not in path.parts
]


def public_definitions(
    tree: ast.AST, prefix: str = ""
) -> Iterator[tuple[str, ast.AST]]:
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if node.name.startswith("_"):
            continue
        yield f"{prefix}{node.name}", node
        if isinstance(node, ast.ClassDef):
            yield from public_definitions(node, f"{prefix}{node.name}.")


def code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> int:
    body = lines[node.lineno - 1 : node.end_lineno]
    docstring = ast.get_docstring(node, clean=False) or ""
    written = [line for line in body if line.strip() and line.strip()[0] != "#"]
    return len(written) - len([line for line in docstring.splitlines() if line.strip()])


def test_import_contracts_are_kept() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports")],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "path", SOURCES, ids=lambda path: str(path.relative_to(PROJECT))
)
class TestSource:
    def test_has_docstrings_on_public_names(self, path: Path) -> None:
        tree = ast.parse(path.read_text())
        bare = [
            name
            for name, node in public_definitions(tree)
            if not ast.get_docstring(node)  # type: ignore[arg-type]
            and not name.endswith("Meta")
        ]

        assert ast.get_docstring(tree)
        assert bare == []

    def test_cites_sources_that_exist(self, path: Path) -> None:
        text = re.sub(r"\s+", " ", path.read_text())
        for cited in re.findall(r"Rulings? (E[\dE, to]*\d)", text):
            numbers = [int(number) for number in re.findall(r"E(\d+)", cited)]
            assert all(1 <= number <= 29 for number in numbers), cited
        for cited in re.findall(r"EMIT (\d+)", text):
            assert 1 <= int(cited) <= 18, cited

    def test_keeps_its_budgets(self, path: Path) -> None:
        text = path.read_text()
        lines = text.splitlines()
        functions = [
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]

        assert len(lines) <= 600
        assert [f.name for f in functions if code_lines(f, lines) > 50] == []
