"""Packages of split units (`.dwp`): where in them each unit and type is (DWARF 5 §7.3.5, R85–R87)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from symbolize.core.arrays import UInt32, UInt64
from symbolize.dwarf.constants import *
from symbolize.dwarf.sections import Buffer, DebugSections

_SECTIONS = {DW_SECT_INFO: "info", DW_SECT_ABBREV: "abbrev", DW_SECT_STR_OFFSETS: "str_offsets"}
GNU_VERSION = 2
SECTION_IDS = {GNU_VERSION: _SECTIONS | {DW_SECT_TYPES: "types"}, DWARF_5: _SECTIONS | {DW_SECT_RNGLISTS: "rnglists"}}
"""The sections of a contribution by number; GNU's version 2 numbers them otherwise than DWARF 5 (R85, section numbers
of packages). The two agree up to 3 and on 6 only."""

HEADER = 16
MAX_COLUMNS = 16
WRAP = 1 << 32

CUTS_PER_BYTE = 4
"""How often a byte of the units may be handed out: the contributions of a sound package do not overlap."""


class PackageError(Exception):
    """A package or its index is unreadable; the text is the reason."""


@dataclass(eq=False)
class Index:
    """A `.debug_cu_index` or `.debug_tu_index`: the `signature` (ascending) and contributions of each unit.

    Column `c` of `offset` and `size` is of the section `names[c]`, empty for an unused one.
    """

    names: list[str]
    signature: UInt64
    offset: UInt32
    size: UInt32

    def row(self, signature: int) -> int:
        """The row of a unit, -1 if it is not in the index."""
        row = int(np.searchsorted(self.signature, np.uint64(signature)))
        return row if row < len(self.signature) and int(self.signature[row]) == signature else -1


def read_index(data: Buffer, big_endian: bool) -> Index:
    """Read an index section; an empty one has no units. Raises PackageError if it is corrupt.

    An index is a hash table; a slot that names row 0 is empty, whatever its signature (R86, index of a package).
    """
    if not len(data):
        return Index([], np.zeros(0, np.uint64), *np.zeros((2, 0, 0), np.uint32))
    order = ">" if big_endian else "<"
    if len(data) < HEADER:
        raise PackageError("its index is cut off")
    version, columns, rows, slots = np.frombuffer(data, order + "u4", 4).tolist()
    if version != GNU_VERSION:  # DWARF 5 has two bytes of padding behind a version of two bytes
        version = int(np.frombuffer(data, order + "u2", 1)[0])
    if version not in SECTION_IDS:
        raise PackageError(f"its index has the unknown version {version}")
    if columns > MAX_COLUMNS or HEADER + 12 * slots + 4 * columns * (1 + 2 * rows) > len(data):
        raise PackageError("its index is cut off")
    keys = np.frombuffer(data, order + "u8", slots, HEADER)
    numbers = np.frombuffer(data, order + "u4", slots, HEADER + 8 * slots)
    ids = np.frombuffer(data, order + "u4", columns, HEADER + 12 * slots).tolist()
    table = np.frombuffer(data, order + "u4", 2 * rows * columns, HEADER + 12 * slots + 4 * columns)
    used = np.flatnonzero((numbers > 0) & (numbers <= rows))  # an empty slot names row 0 (R86, index of a package)
    used = used[np.argsort(keys[used], kind="stable")]
    row = numbers[used].astype(np.int64) - 1
    offset, size = table.reshape(2, rows, columns).astype(np.uint32)
    names = [SECTION_IDS[version].get(number, "") for number in ids]
    return Index(names, keys[used].astype(np.uint64), offset[row], size[row])


class Package:
    """A package, whose `sections` are whole; `units` and `types` are its indexes. `label` names it in messages."""

    def __init__(self, label: str, sections: DebugSections, units: Index, types: Index) -> None:
        self.label = label
        self._sections = sections
        self._units = units
        self._types = types
        size = len(sections.info) + len(sections.types)
        self._left = CUTS_PER_BYTE * size * (1 + size // WRAP)

    def unit(self, dwo_id: int) -> Iterator[DebugSections]:
        """The sections of the unit `dwo_id`: none, one, or several of which one is right. Raises PackageError."""
        return self._cut(self._units, dwo_id)

    def type(self, signature: int) -> Iterator[DebugSections]:
        """The sections of the type unit `signature`, as `unit` gives them."""
        return self._cut(self._types, signature)

    def _cut(self, index: Index, signature: int) -> Iterator[DebugSections]:
        """The sections, cut to the contributions of a unit (R86, index of a package).

        Offsets of contributions have 32 bits. In a larger section of units every position that an offset may mean is
        tried, and the caller checks the unit (R87, large packages). Where another section is that large the package is
        not used for the unit, and a problem says so.
        """
        row = index.row(signature)
        if row < 0:
            return
        parts: dict[str, Buffer] = dict.fromkeys(("abbrev", "str_offsets", "rnglists"), b"")
        candidates: list[Buffer] = []
        holds_types = False
        for column, name in enumerate(index.names):
            offset, size = int(index.offset[row, column]), int(index.size[row, column])
            if not name or not size:
                continue
            whole = memoryview(getattr(self._sections, name))
            if offset + size > len(whole):
                raise PackageError(f"the .debug_{name}.dwo of {signature:#018x} is outside of its section")
            if name in ("info", "types"):
                holds_types = name == "types"
                candidates = [whole[at : at + size] for at in range(offset, len(whole) - size + 1, WRAP)]
            elif len(whole) >= WRAP:
                raise PackageError(f"its .debug_{name}.dwo is larger than the offsets into it")
            else:
                parts[name] = whole[offset : offset + size]
        for info in candidates:
            self._left -= len(info)
            if self._left < 0:
                raise PackageError("its units overlap absurdly")
            yield replace(
                self._sections,
                info=info,
                types=b"",
                abbrev=parts["abbrev"],
                str_offsets=parts["str_offsets"],
                rnglists=parts["rnglists"],
                holds_types=holds_types,
            )
