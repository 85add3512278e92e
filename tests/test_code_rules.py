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
MIN_IDEA = 40
"""Lines of code of a module that only one other imports, at least: what is shorter is a paragraph of that one."""
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


def code_lines(text: str, tree: ast.Module) -> int:
    """Lines that are neither empty, nor comments, nor in docstrings and other texts that stand for themselves."""
    texts = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and not line.startswith("#") and number not in texts for number, line in lines)


def importers_of(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """The modules that import each module, wherever in them the statement stands, or name it in a string, as tables of
    what is imported when it is needed do; all by their paths."""
    paths = {name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): name for name in trees}
    importers: dict[str, set[str]] = {name: set() for name in trees}
    for name, tree in trees.items():
        for node in ast.walk(tree):
            named: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module:
                base = node.module.removeprefix("cython.cimports.")
                named = [
                    module if (module := f"{base}.{each.name}".removeprefix("symbolize.")) in paths else base
                    for each in node.names
                ]
            elif isinstance(node, ast.Import):
                named = [each.name for each in node.names]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
                named = [node.value]
            for module in (each.removeprefix("symbolize.") for each in named):
                if paths.get(module, name) != name:
                    importers[paths[module]].add(name)
    return importers


def test_a_module_is_an_idea(trees: dict[str, ast.Module]) -> None:
    """Two functions that are only read together stand together."""
    aside = {name for name in trees if name.endswith(("__init__.py", "__main__.py"))}
    sizes = {name_of(path): code_lines(path.read_text(), trees[name_of(path)]) for path in SOURCES}
    small = [
        f"{name}: {sizes[name]} lines, for {importer}"
        for name, (importer, *others) in ((name, by) for name, by in importers_of(trees).items() if by)
        if not others and sizes[name] < MIN_IDEA and name not in aside
    ]
    assert not small, "\n".join(small)


def test_functions_have_few_parameters(trees: dict[str, ast.Module]) -> None:
    """What belongs together is one value."""
    long = []
    for name, tree in trees.items():
        for node in ast.walk(tree):
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
        if path.is_file()
        for found in re.finditer(r"\b(tests/[\w/.-]*\w)(?:::(\w+))?", path.read_text())
    ]
    missing = [
        f"{name}: {place}{f'::{function}' if function else ''}"
        for name, place, function in named
        if not (ROOT / place).exists() or (function and f"def {function}(" not in (ROOT / place).read_text())
    ]
    assert not missing, "\n".join(missing)
