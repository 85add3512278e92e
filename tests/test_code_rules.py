"""What CONTRIBUTING asks of the code and a program can check: lengths, names for numbers, tests apart from tests."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(path for path in (ROOT / "symbolize").rglob("*.py") if path.parent.name != "proto")
MAX_MODULE = 1000
MAX_FUNCTION = 80
MAX_PARAMETERS = 8
HOT_LOOPS = {
    "core/kernels.py:sweep",
    "dwarf/abbrevs.py:fill_tables",
    "dwarf/die_walk.py:read_code_die",
    "dwarf/die_walk.py:walk_unit",
    "dwarf/lines.py:run",
    "symbol_files/breakpad_scan.py:read_records",
    "symbols/range_table.py:lookup",
}
"""Loops whose state is in local variables: a function of its own for a part would pass most of it."""
PLAIN = {0, 1, 2, 3, 4, 8, 10, 63, 64, 100}
"""Numbers that need no name: counts of parts and steps, bytes and bits of a word, powers of ten."""


def name_of(path: Path) -> str:
    """A module as the messages of these tests name it."""
    return str(path.relative_to(ROOT / "symbolize"))


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """The syntax of each module."""
    return {name_of(path): ast.parse(path.read_text()) for path in SOURCES}


def bare_numbers(tree: ast.Module) -> Iterator[str]:
    """Comparisons with a number that has no name, `match` included, with their lines."""
    for node in ast.walk(tree):
        operands: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            for each in (node.left, *node.comparators):
                operands += each.elts if isinstance(each, ast.Tuple | ast.Set | ast.List) else [each]
        elif isinstance(node, ast.MatchValue):
            operands = [node.value]
        for operand in operands:
            if isinstance(operand, ast.Constant) and type(operand.value) is int and operand.value not in PLAIN:
                yield f"{operand.lineno}: {ast.unparse(node)}"


def test_modules_are_short() -> None:
    """Generated ones aside."""
    long = [name_of(path) for path in SOURCES if path.read_text().count("\n") > MAX_MODULE]
    assert not long, "\n".join(long)


def test_functions_are_short(trees: dict[str, ast.Module]) -> None:
    """Hot loops aside."""
    long = {
        f"{name}:{node.name}"
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= MAX_FUNCTION
    }
    assert long == HOT_LOOPS


def test_class_names_stand_once(trees: dict[str, ast.Module]) -> None:
    """So that a search for one finds it alone."""
    modules: dict[str, list[str]] = {}
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                modules.setdefault(node.name, []).append(name)
    twice = [f"{name}: {', '.join(places)}" for name, places in modules.items() if len(places) > 1]
    assert not twice, "\n".join(twice)


def test_functions_have_few_parameters(trees: dict[str, ast.Module]) -> None:
    """Kernels aside, which get their columns one by one: what belongs together is one value."""
    kernels = {name_of(path) for path in SOURCES if path.read_text().startswith("# cython:")}
    long = []
    for name, tree in trees.items():
        for node in ast.walk(tree) if name not in kernels else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                own = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                if len(own) - (own[:1] in (["self"], ["cls"])) > MAX_PARAMETERS:
                    long.append(f"{name}:{node.name}")
    assert not long, "\n".join(long)


def test_numbers_have_names(trees: dict[str, ast.Module]) -> None:
    """What a specification names is compared by that name."""
    found = [f"{name}:{each}" for name, tree in trees.items() for each in bare_numbers(tree)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "count"),
    [("x == 0x1a", 1), ("x in (6, FORM, 5)", 2), ("x < 3 or x == FORM", 0), ("match x:\n    case 7:\n        pass", 1)],
)
def test_reader_of_comparisons(source: str, count: int) -> None:
    """Numbers in comparisons are found, small ones and names are not."""
    assert len(list(bare_numbers(ast.parse(source)))) == count


def test_no_test_imports_a_test() -> None:
    """What tests share is in tests/support."""
    found = {
        f"{path.relative_to(ROOT)}: {module}"
        for folder in ("tests", "tools", "benchmarks", "fixtures")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        for module in [node.module or "", *(f"{node.module}.{each.name}" for each in node.names)]
        if module.startswith("tests.") and module.rpartition(".")[2].startswith(("test_", "conftest"))
    }
    assert not found, "\n".join(sorted(found))


def test_tests_that_checks_name_exist() -> None:
    """Folders, files and functions of tests in `.ci`, which a source distribution has not."""
    named = [
        (path.name, *found.groups())
        for path in sorted((ROOT / ".ci").glob("*"))
        for found in re.finditer(r"\b(tests/[\w/.-]*\w)(?:::(\w+))?", path.read_text())
    ]
    missing = [
        f"{name}: {place}{f'::{function}' if function else ''}"
        for name, place, function in named
        if not (ROOT / place).exists() or (function and f"def {function}(" not in (ROOT / place).read_text())
    ]
    assert not missing, "\n".join(missing)
