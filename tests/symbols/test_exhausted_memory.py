"""Memory that runs out while a binary is decoded ends the decoding: a table without some functions is no table."""

from typing import Any

import pytest

from symbolize.core.arrays import extended
from symbolize.dwarf import columns, lines, names
from symbolize.elf import ElfImage
from symbolize.symbols import build_table
from tests.support.fixture_files import BINARIES


@pytest.mark.parametrize("module", [columns, lines, names])
def test_columns_that_cannot_grow(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes, ranges, line rows, files and scopes are not lost where their columns have no memory to grow."""

    def exhausted(table: Any, names: tuple[str, ...], capacity: int) -> int:
        if capacity:
            raise MemoryError
        for name in names:
            setattr(table, name, extended(getattr(table, name), 4))
        return 4

    monkeypatch.setattr(module, "grow_columns", exhausted)
    with ElfImage.open(BINARIES / "gcc-pie" / "ledger") as image, pytest.raises(MemoryError):
        build_table([image])


def test_abbreviations_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are units whose abbreviations have no memory."""
    from symbolize.dwarf import abbrevs

    def exhausted(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(abbrevs, "distinct", exhausted)
    with ElfImage.open(BINARIES / "gcc-pie" / "ledger") as image, pytest.raises(MemoryError):
        build_table([image])
