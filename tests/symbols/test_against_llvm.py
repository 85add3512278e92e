"""Frames against llvm-symbolizer on real binaries: every difference is of a class that a rule explains."""

import re
from collections.abc import Iterator
from functools import cache
from math import sqrt
from pathlib import Path

import pytest

from symbolize.core.cursor import COMPILED
from tests.support.needs import DEBUG_FILES, needs_compiled
from tools.llvm.compare_llvm import NEEDED, compare, label, subjects
from tools.llvm.judge import same_file

ADDRESSES = 400 if COMPILED else 60
DEVIATIONS = 4
"""By how many standard deviations of a sample a share may lie beside the published one."""
SPARE = 0.005

LARGE = 4 << 20
"""Bytes of a file that takes too long to decode interpreted."""


@cache
def published() -> dict[str, dict[str, float]]:
    """The share of each class in each file, as llvm_classes.md has them."""
    text = Path(__file__).with_name("llvm_classes.md").read_text()
    rows = re.findall(r"^\| (.*) \|$", text[text.index("| file | addresses |") :].partition("\n\n")[0], re.MULTILINE)
    kinds, *files = [[cell.strip(" *") for cell in row.split("|")] for row in rows if not row.startswith("---")]
    counts = {name: [int(cell.replace(",", "") or 0) for cell in cells] for name, *cells in files}
    return {
        name: {kind: count / total for kind, count in zip(kinds[2:], found, strict=True)}
        for name, (total, *found) in counts.items()
    }


INSTALLED = {path: pytest.mark.needs(name) for name, path in DEBUG_FILES.items()}


def marks(path: Path) -> Iterator[pytest.MarkDecorator]:
    """What a file needs; large ones are left to the full run."""
    if path in INSTALLED:
        yield INSTALLED[path]
        yield pytest.mark.full
    if path.exists() and path.stat().st_size > LARGE:
        yield needs_compiled


@pytest.mark.needs(*NEEDED)
@pytest.mark.parametrize("path", [pytest.param(path, marks=[*marks(path)], id=label(path)) for path in subjects()])
def test_against_llvm(path: Path) -> None:
    """Function, file, line, column, start line and inline chain are those of llvm-symbolizer, or the difference has a
    rule, about as often as llvm_classes.md says and no oftener."""
    result = compare(path, ADDRESSES)
    assert result.unexplained == []
    total = result.classes.total()
    assert total
    shares = published()[label(path)]
    for kind, count in result.classes.items():
        share = shares.get(kind, 0)
        spare = DEVIATIONS * sqrt(share * (1 - share) / total) + SPARE
        assert abs(count / total - share) <= spare, (kind, count / total, share)


def test_same_file() -> None:
    """Two spellings of a path name one file only if they differ in `/./` alone (rule R46)."""
    assert same_file("/a/./c/x.cc", "/a/c/x.cc")
    assert not same_file("/a/b/../c/x.cc", "/a/c/x.cc")
    assert not same_file("/a/c/x.cc", "/b/c/x.cc")
    assert not same_file("", "/a")
