"""Short ways from a table to names and places, innermost frame only."""

from collections.abc import Iterable

from symbolize.symbols.table import SymbolTable
from tests.support.lookup import frames_of


def names_at(table: SymbolTable, addresses: Iterable[int]) -> list[bytes]:
    """The name at each of the ascending addresses, empty where there is none."""
    return [name for name, _, _ in places_at(table, addresses)]


def places_at(table: SymbolTable, addresses: Iterable[int]) -> list[tuple[bytes, bytes, int]]:
    """Name, file and line at each of the ascending addresses."""
    found = [frames[0] if frames else None for frames in frames_of(table, addresses)]
    return [(f.name.encode(), f.file.encode(), f.line) if f else (b"", b"", 0) for f in found]
