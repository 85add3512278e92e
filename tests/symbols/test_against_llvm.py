"""Frames against llvm-symbolizer on real binaries: every difference is of a class that a rule explains."""

from pathlib import Path

import pytest

from symbolize.cursor import COMPILED
from tests.symbols.compare_llvm import compare, find_symbolizer, label, same_file, subjects

ADDRESSES = 400 if COMPILED else 60

SYMBOLIZER = find_symbolizer()


@pytest.mark.skipif(SYMBOLIZER is None, reason="there is no llvm-symbolizer")
@pytest.mark.parametrize("path", subjects(), ids=label)
def test_against_llvm(path: Path) -> None:
    """Function, file, line, column, start line and inline chain are those of llvm-symbolizer, or the difference has a
    rule (see docs/correctness.md)."""
    if not COMPILED and path.stat().st_size > 4 << 20:
        pytest.skip("too large to decode interpreted")
    result = compare(path, ADDRESSES, SYMBOLIZER or "")
    assert result.unexplained == []
    assert result.classes.total() == ADDRESSES
    assert result.classes["equal"] > 0


def test_same_file() -> None:
    """Two spellings of a path name one file only if they differ in `/./` alone (rule R46)."""
    assert same_file("/a/./c/x.cc", "/a/c/x.cc")
    assert not same_file("/a/b/../c/x.cc", "/a/c/x.cc")
    assert not same_file("/a/c/x.cc", "/b/c/x.cc")
    assert not same_file("", "/a")
