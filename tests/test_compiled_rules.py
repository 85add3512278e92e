"""What holds for the modules that are compiled, read off their sources."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DIRECTIVES = re.compile(r"# cython: .*\bwraparound=False\b")


def compiled() -> dict[Path, str]:
    """The sources of the modules that setup.py compiles: those whose first line is for Cython."""
    sources = {path: path.read_text() for path in sorted((ROOT / "symbolize").rglob("*.py"))}
    return {path: source for path, source in sources.items() if source.startswith("# cython:")}


def is_negative(node: ast.expr | None) -> bool:
    """Whether an index is a negative literal, or a minus before anything."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def negative_subscripts(source: str) -> Iterator[str]:
    """Line and text of every subscript that counts from the end."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Subscript):
            for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
                bounds = [part.lower, part.upper] if isinstance(part, ast.Slice) else [part]
                if any(is_negative(bound) for bound in bounds):
                    yield f"{node.lineno}: {ast.unparse(node)}"


def test_nothing_counts_from_the_end() -> None:
    """With wraparound off `x[-1]` is undefined, whatever `x` is: numpy 2.5 raises IndexError, others read on."""
    sources = {path: source for path, source in compiled().items() if DIRECTIVES.match(source)}
    assert len(sources) > 30
    found = [f"{path}:{each}" for path, source in sources.items() for each in negative_subscripts(source)]
    assert not found, "\n".join(found)


def test_directives() -> None:
    """Modules that declare C arrays turn wraparound off and leave boundscheck on for all of the file."""
    wrong = []
    for path, source in compiled().items():
        declarations = path.with_suffix(".pxd")
        has_arrays = "::1]" in source or (declarations.exists() and "::1]" in declarations.read_text())
        if has_arrays and not source.startswith("# cython: boundscheck=True, wraparound=False"):
            wrong.append(str(path))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "count"),
    [("x[-1]", 1), ("x[:-1]", 1), ("x[-n:]", 1), ("x[:, -1]", 1), ("x[1:, :-2]", 1), ("x[n - 1]", 0), ("x[::-1]", 0)],
)
def test_reader_of_subscripts(source: str, count: int) -> None:
    """Each form of index from the end is found; a step backwards over the whole is none."""
    assert len(list(negative_subscripts(source))) == count
