"""Looks up all addresses of a binary at once, in a table that may change meanwhile."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from symbolize.core.arrays import Bool, UInt64
from symbolize.core.errors import ReadFailure
from symbolize.core.mapped import CHANGED, ChangedFile
from symbolize.symbols.binary import Binary
from symbolize.symbols.nearest import lookup_nearest
from symbolize.symbols.symbol_list_binary import SymbolListBinary
from symbolize.symbols.table import Frames, SymbolTable

MAX_TABLES = 3
"""Tables of one binary that are tried where one after the other changes while it is read."""


class Tables(Protocol):
    """Symbol tables that were made ahead for the addresses of many profiles."""

    def find(self, binary: Binary, vaddrs: UInt64) -> SymbolTable | None:
        """The table for all of `vaddrs` (ascending), None if there is none. Raises FailedTable if it could not be
        made."""


class BulkAnswer(NamedTuple):
    """A table, the frames at some addresses, and which have an approximate line (None: none has). `check` raises
    ReadFailure if a file has changed meanwhile."""

    table: SymbolTable
    frames: Frames
    approximate: Bool | None
    check: Callable[[], None]


def look_up(binary: Binary | SymbolListBinary, vaddrs: UInt64, nearest_line: bool, tables: Tables | None) -> BulkAnswer:
    """The frames at `vaddrs` (ascending), with `nearest_line` some with the nearest earlier line. Raises ReadFailure.

    A cached table that changed meanwhile is made anew (R280, files that change).
    """
    for _ in range(MAX_TABLES):
        table = None
        try:
            # With `nearest_line` one that is found is the whole one, and the binary's from now on.
            table = tables.find(binary, vaddrs) if tables is not None and isinstance(binary, Binary) else None
            if nearest_line:
                table, frames, approximate = lookup_nearest(binary, vaddrs)
            else:
                table = table or binary.table(vaddrs)
                frames, approximate = table.lookup(vaddrs), None
        except ReadFailure:
            raise
        except Exception:
            if not _drop_changed(binary, table):
                raise
        else:
            if not _drop_changed(binary, table):
                return BulkAnswer(table, frames, approximate, _check_of(binary, table))
        tables = None
    raise ChangedFile(binary.images[0].path, CHANGED)


def _drop_changed(binary: Binary | SymbolListBinary, table: SymbolTable | None) -> bool:
    """Have a table made anew if the file that it is read from has changed; whether it has."""
    is_of_binary = isinstance(binary, Binary) and binary.drop_changed()
    return is_of_binary or (table is not None and table.has_changed)


def _check_of(binary: Binary | SymbolListBinary, table: SymbolTable) -> Callable[[], None]:
    def check() -> None:
        table.check()
        if isinstance(binary, Binary):
            binary.check()

    return check
