"""The debug sections of one binary, as buffers; where they are in packages of split units (`.dwp`, DWARF 5 §7.3.5,
R85–R87); and links to supplementary files (R91, supplementary files)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from symbolize.core.arrays import Bool, UInt8, UInt32, UInt64
from symbolize.core.records import record
from symbolize.dwarf.constants import *
from symbolize.dwarf.constants import DWARF_5, LEB_MORE, DW_UT_compile, DW_UT_skeleton

Buffer = bytes | memoryview
MAX_LINK = 1 << 16
"""Links are names; what is longer is none."""
_SECTIONS = {DW_SECT_INFO: "info", DW_SECT_ABBREV: "abbrev", DW_SECT_STR_OFFSETS: "str_offsets"}
GNU_VERSION = 2
SECTION_IDS = {GNU_VERSION: _SECTIONS | {DW_SECT_TYPES: "types"}, DWARF_5: _SECTIONS | {DW_SECT_RNGLISTS: "rnglists"}}
"""The sections of a contribution by number; GNU's version 2 numbers them otherwise than DWARF 5 (R85, section numbers
of packages). The two agree up to 3 and on 6 only."""

INDEX_HEADER = 16
MAX_COLUMNS = 16
WRAP = 1 << 32

CUTS_PER_BYTE = 4
"""How often a byte of the units may be handed out: the contributions of a sound package do not overlap."""


@record(frozen=True)
class DebugSections:
    """Contents of the `.debug_*` sections, decompressed and relocated; an absent one is empty (R100, decompression on
    demand).

    `is_split` marks the `.dwo` sections of a split unit, whose tables have other bases (R78, bases of split units). If
    `holds_types`, `info` is a `.debug_types`, whose unit headers have a signature. If `has_discriminators`, the columns
    of lines and calls that are read are their discriminators (R493, discriminators for columns).
    """

    info: Buffer = b""
    abbrev: Buffer = b""
    str: Buffer = b""
    line: Buffer = b""
    line_str: Buffer = b""
    ranges: Buffer = b""
    rnglists: Buffer = b""
    addr: Buffer = b""
    str_offsets: Buffer = b""
    types: Buffer = b""
    big_endian: bool = False
    is_split: bool = False
    holds_types: bool = False
    has_discriminators: bool = False


def holds_code(kind: UInt8) -> Bool:
    """Which kinds of units may hold code: compile and skeleton units (R90, units with code)."""
    result: Bool = (kind == DW_UT_compile) | (kind == DW_UT_skeleton)
    return result


@dataclass(frozen=True)
class Link:
    """A link to the supplementary file `name`, whose build id, or whose checksum if `is_checksum`, is `identifier`."""

    name: bytes
    identifier: bytes
    is_checksum: bool


def read_altlink(data: Buffer) -> Link | None:
    """The link in a `.gnu_debugaltlink` section: a name, then a build id. None if it is cut off."""
    name, end, identifier = bytes(data[:MAX_LINK]).partition(b"\0")
    return Link(name, identifier, False) if end and identifier else None


def read_sup(data: Buffer, big_endian: bool) -> tuple[bool, Link] | None:
    """A `.debug_sup` section (DWARF 5 §7.3.6): whether the file is a supplementary one, and the link; None if
    unreadable.

    A supplementary file's own section has no name, and the checksum of its file. `ref_sup4`, `ref_sup8` and `strp_sup`
    lead to it, as `GNU_ref_alt` and `GNU_strp_alt` do to that of `.gnu_debugaltlink` (R91, supplementary files).
    """
    raw = bytes(data[:MAX_LINK])
    if int.from_bytes(raw[:2], "big" if big_endian else "little") != DWARF_5:
        return None
    name, _, rest = raw[3:].partition(b"\0")
    size = shift = 0
    for k, byte in enumerate(rest[:5]):
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < LEB_MORE:
            checksum = rest[k + 1 : k + 1 + size]
            return (raw[2] != 0, Link(name, checksum, True)) if len(checksum) == size else None
    return None


class PackageError(Exception):
    """A package or its index is unreadable; the text is the reason."""


@record
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
    if len(data) < INDEX_HEADER:
        raise PackageError("its index is cut off")
    version, columns, rows, slots = np.frombuffer(data, order + "u4", 4).tolist()
    if version != GNU_VERSION:  # DWARF 5 has two bytes of padding behind a version of two bytes
        version = int(np.frombuffer(data, order + "u2", 1)[0])
    if version not in SECTION_IDS:
        raise PackageError(f"its index has the unknown version {version}")
    if columns > MAX_COLUMNS or INDEX_HEADER + 12 * slots + 4 * columns * (1 + 2 * rows) > len(data):
        raise PackageError("its index is cut off")
    keys = np.frombuffer(data, order + "u8", slots, INDEX_HEADER)
    numbers = np.frombuffer(data, order + "u4", slots, INDEX_HEADER + 8 * slots)
    ids = np.frombuffer(data, order + "u4", columns, INDEX_HEADER + 12 * slots).tolist()
    table = np.frombuffer(data, order + "u4", 2 * rows * columns, INDEX_HEADER + 12 * slots + 4 * columns)
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
