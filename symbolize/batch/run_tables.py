"""Symbol tables that answer for the addresses of a whole batch: made once a binary, used for every profile."""

from typing import Final

import numpy as np

from symbolize.core.arrays import UInt64
from symbolize.core.errors import InputError
from symbolize.storage.backend import Storage
from symbolize.symbols import Binary, DamagedTable, FailedTable, SymbolTable, read_table, was_made_of, write_table

FOLDER: Final = "tables"
TABLE, ADDRESSES, WHOLE, GIVEN_UP = ".symtab", ".vaddrs", ".whole", ".failed"
MAX_REASON: Final = 1000


class RunTables:
    """The tables of a batch, in the storage that its workers share.

    A table is stored with the addresses that it covers, and is used only for these. With `whole_only` tables of some
    addresses are not used at all. A binary that was given up is not decoded again, so that it costs no profile.
    """

    def __init__(self, storage: Storage, whole_only: bool) -> None:
        self._storage = storage
        self._whole_only = whole_only
        self._epoch = -1
        self._known: dict[str, tuple[SymbolTable, UInt64 | None] | FailedTable | None] = {}

    def begin(self, epoch: int) -> None:
        """Read the tables again, if `epoch` is new."""
        if epoch != self._epoch:
            self._epoch = epoch
            self.forget()

    def forget(self) -> None:
        """Close the tables that were read."""
        self._known.clear()

    def find(self, binary: Binary, vaddrs: UInt64) -> SymbolTable | None:
        """The table that covers all of `vaddrs` (ascending), None if there is none. Raises FailedTable if the binary
        was given up."""
        if binary.has_whole:
            return None
        key = binary.key
        if key not in self._known:
            self._known[key] = self._read(binary)
        known = self._known[key]
        if isinstance(known, FailedTable):
            raise FailedTable(known.source, known.problem)
        if known is None or known[0].has_changed:
            return None
        table, covered = known
        if covered is None:
            binary.adopt(table)
            return table
        return table if not self._whole_only and covers(covered, vaddrs) else None

    def write(self, binary: Binary, table: SymbolTable, vaddrs: UInt64 | None) -> int:
        """Store `table`, which covers `vaddrs` (None: all); its bytes. Raises OutputError and ReadFailure."""
        name = f"{FOLDER}/{binary.key}"
        # The addresses are written while there is no table: if this is interrupted, no table is used for more
        # addresses than it covers.
        for ending in (TABLE, WHOLE if vaddrs is not None else ADDRESSES):
            self._storage.remove(name + ending)
        with self._storage.write(name + (WHOLE if vaddrs is None else ADDRESSES)) as file:
            file.write((np.zeros(0, np.uint64) if vaddrs is None else vaddrs).tobytes())
        with self._storage.write(name + TABLE) as file:
            size = write_table(file, table, binary.facts_of_table)
            table.check()  # if it raises, the file is not stored
        return size

    def give_up(self, key: str, reason: str) -> None:
        """Record why a binary is not to be decoded again. Raises OutputError."""
        with self._storage.write(f"{FOLDER}/{key}{GIVEN_UP}") as file:
            file.write(reason[:MAX_REASON].encode(errors="replace"))

    def addresses(self, key: str) -> UInt64:
        """The addresses that the table of a binary covers so far."""
        name = f"{FOLDER}/{key}{ADDRESSES}"
        try:
            return read_addresses(self._storage.read_file(name), 0, -1)
        except (OSError, InputError):
            return np.zeros(0, np.uint64)

    def _read(self, binary: Binary) -> tuple[SymbolTable, UInt64 | None] | FailedTable | None:
        name = f"{FOLDER}/{binary.key}"
        try:
            if self._storage.exists(name + GIVEN_UP):
                with open(self._storage.read_file(name + GIVEN_UP), "rb") as file:
                    return FailedTable(binary.images[0].path, file.read(MAX_REASON).decode(errors="replace"))
            if not self._storage.exists(name + TABLE):
                return None
            table, facts = read_table(self._storage.read_file(name + TABLE))
            if not was_made_of(facts, binary.facts):
                return None
            if self._storage.exists(name + WHOLE):
                return table, None
            return table, read_addresses(self._storage.read_file(name + ADDRESSES), 0, -1)
        except (OSError, DamagedTable, InputError):  # the addresses are looked up without it
            return None


def read_addresses(path: str, start: int, count: int) -> UInt64:
    """`count` addresses (-1: all) of a file of them, from the one numbered `start` on."""
    return np.fromfile(path, np.uint64, count, offset=8 * start)


def covers(covered: UInt64, vaddrs: UInt64) -> bool:
    """Whether all of `vaddrs` are among `covered`; both ascend."""
    if not len(covered):
        return not len(vaddrs)
    row = np.minimum(np.searchsorted(covered, vaddrs), len(covered) - 1)
    return bool((covered[row] == vaddrs).all())
