"""GSYM files of LLVM: functions, lines, inlined calls and code that functions share, in both versions and byte orders.

Version 1 has a header, the address of each function, the place of its record, files and strings, and the records.
Version 2 has a list of parts after its header instead, each with offset and size, and 64-bit offsets throughout.
"""

import struct
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import Int32, Int64, UInt64, distinct_inverse, offsets_of, views
from symbolize.symbol_files.gsym_scan import GsymScan
from symbolize.symbol_files.records import Records, as_listing, small
from symbolize.symbol_files.symbol_list import SharedNames, SymbolList

MAGIC: Final = 0x4753594D
MAX_UUID: Final = 20
"""Bytes of the id in a header of version 1."""
HEADER_1: Final = struct.Struct(f"<IHBBQIII{MAX_UUID}s")
"""Magic, version, bytes of an address, of the id, first address, number of addresses, offset and size of the strings,
id."""
HEADER_2: Final = struct.Struct("<IHBBQI")
"""Magic, version, bytes of an address, encoding of the strings (0: each ends with a NUL), first address, number of
addresses."""
PART: Final = struct.Struct("<IQQ")
"""A part of version 2: type, offset, size."""
ADDRESSES, PLACES, STRINGS, FILES, RECORDS, UUID = range(1, 7)
"""The types of parts; 0 ends their list."""
MAX_PARTS: Final = 64

SIZES: Final = (1, 2, 4, 8)
HEAD: Final = 1 << 12
"""Bytes of a file with the header and the list of parts, as a rule."""
TEXT_SHARE: Final = 4
"""Names and paths may have so many times the bytes of the strings; more means that they overlap."""


class GsymHeader(NamedTuple):
    """What a file says of itself: the version, whether it is big-endian, bytes of an address and of the offset of a
    string, the address that others count from, and how many there are.

    `parts` are offset and size of addresses, places, strings, files, records and the id of the binary, each within the
    file.
    """

    version: int
    big: bool
    address_size: int
    name_size: int
    base: int
    address_count: int
    parts: dict[int, tuple[int, int]]


class DamagedFile(ValueError):
    """A file is no GSYM file, or its tables do not fit into it."""


def is_gsym(head: bytes) -> bool:
    """Whether a file begins as GSYM files do, in either byte order."""
    return head[:4] in (MAGIC.to_bytes(4, "little"), MAGIC.to_bytes(4, "big"))


def read_header(data: bytes | memoryview, size: int) -> GsymHeader:
    """The header of the file of `size` bytes that begins with `data`. Raises DamagedFile."""
    if not is_gsym(bytes(data[:4])):
        raise DamagedFile("is no GSYM file")
    big = bytes(data[:4]) == MAGIC.to_bytes(4, "big")
    order = ">" if big else "<"
    first, second, part = (struct.Struct(order + each.format[1:]) for each in (HEADER_1, HEADER_2, PART))
    if len(data) < second.size:
        raise DamagedFile("is cut off")
    version = second.unpack_from(data)[1]
    if version == 1:
        if len(data) < first.size:
            raise DamagedFile("is cut off")
        _, _, address_size, uuid_size, base, count, strings, string_size, _ = first.unpack_from(data)
        if address_size not in SIZES or uuid_size > MAX_UUID:
            raise DamagedFile("has an unsound header")
        places = aligned(aligned(first.size, address_size) + address_size * count, 4)
        files = places + 4 * count
        parts = {
            ADDRESSES: (aligned(first.size, address_size), address_size * count),
            PLACES: (places, 4 * count),
            FILES: (files, max(size - files, 0)),
            STRINGS: (strings, string_size),
            RECORDS: (0, size),
            UUID: (first.size - MAX_UUID, uuid_size),
        }
        header = GsymHeader(version, big, address_size, 4, base, count, parts)
    elif version == 2:
        _, _, address_size, encoding, base, count = second.unpack_from(data)
        if address_size not in SIZES or encoding != 0:
            raise DamagedFile("has an unsound header, or strings in an encoding that is not known")
        parts = {}
        for number in range(MAX_PARTS):
            if len(data) < second.size + part.size * (number + 1):
                raise DamagedFile("is cut off")
            kind, offset, length = part.unpack_from(data, second.size + part.size * number)
            if kind == 0:
                break
            parts.setdefault(kind, (offset, length))
        if not {ADDRESSES, PLACES, STRINGS, FILES, RECORDS} <= parts.keys():
            raise DamagedFile("lacks a part")
        header = GsymHeader(version, big, address_size, 8, base, count, {UUID: (0, 0)} | parts)
    else:
        raise DamagedFile(f"is GSYM of version {version}, which is not known")
    if any(offset > size or length > size - offset for offset, length in header.parts.values()):
        raise DamagedFile("has tables that do not fit into it")
    width = 4 if version == 1 else 8
    if header.parts[ADDRESSES][1] < address_size * count or header.parts[PLACES][1] < width * count:
        raise DamagedFile("has tables that do not fit into it")
    return header


def read_gsym(data: bytes | memoryview) -> SymbolList:
    """The functions, lines, inlined calls and shared code of a GSYM file; addresses are vaddrs, names as in the file.

    Of a file that is none, or damaged as a whole, an empty list, with the reason in `problems`; damaged records are
    counted there. A record answers for its size, and up to the next record; without a size up to the next one, the end
    of its page and 1 MiB. Of several lines at one address the last counts. The root of an inline tree is the function
    itself. Names may have four times the bytes of the strings: more means that they overlap. Offsets of records are
    relative to the file in version 1, to the part with the records in version 2 (R390, GSYM files).
    """
    try:
        header = read_header(data, len(data))
    except DamagedFile as error:
        empty = np.zeros(0, np.uint64)
        listing = SymbolList.of_functions(empty, empty, [])
        listing.problems.append(str(error))
        return listing
    order = ">" if header.big else "<"
    wide = "u4" if header.version == 1 else "u8"
    begin = column(data, header, ADDRESSES, f"{order}u{header.address_size}")[: header.address_count].astype(np.uint64)
    begin = begin + np.uint64(header.base)  # wraps around only in a damaged file, where the order is checked below
    place = column(data, header, PLACES, order + wide)[: header.address_count].astype(np.uint64)
    at, size = header.parts[RECORDS]
    scan = GsymScan(data[at : at + size] if at else data, header.big, header.name_size, header.address_count)
    scan.read(*views(begin, place))
    strings = GsymStrings(data, *header.parts[STRINGS])
    files = read_files(data, header, strings)
    problems = []
    if bad := int(np.count_nonzero(scan.bad)):
        problems.append(f"{bad} function records are damaged")
    return as_listing(records_of(begin, scan, strings, files, problems))


def records_of(
    begin: UInt64, scan: GsymScan, strings: "GsymStrings", files: list[bytes], problems: list[str]
) -> Records:
    """What a scan has found, as records."""
    size, name = np.asarray(scan.sizes), np.asarray(scan.names)
    line_function, line_begin, line_end, line_file, line = np.asarray(scan.lines)[:, : scan.line_count]
    call_function, call_depth, call_name, call_file, call_line = np.asarray(scan.calls)[:, : scan.call_count]
    range_call, low, high = np.asarray(scan.ranges)[:, : scan.range_count]
    merged_function, merged_name = np.asarray(scan.merged)[:, : scan.merged_count]
    numbers = strings.numbers(np.concatenate((name, call_name, merged_name)))
    names = strings.texts
    if strings.is_exhausted:
        problems.append("its strings overlap absurdly; some names are left out")
    sized = np.flatnonzero((size > 0) & (name > 0))
    unsized = np.flatnonzero((size == 0) & (name > 0))
    row_of = np.full(len(begin), -1, np.int64)
    row_of[sized] = np.arange(len(sized))
    end = begin + size
    # A record answers up to the next function; lines behind it are not its own.
    within = line_end > line_begin
    own = within & (row_of[line_function.astype(np.int64)] >= 0)
    own[own] &= line_end[own] <= end[line_function[own].astype(np.int64)]
    return Records(
        function_begin=begin[sized],
        function_size=size[sized],
        function_name=numbers[sized],
        symbol_begin=begin[unsized],
        symbol_name=numbers[unsized],
        call_function=row_of[call_function.astype(np.int64)],
        call_depth=call_depth,
        call_name=numbers[len(name) : len(name) + len(call_name)],
        call_file=rows_of_files(call_file, len(files)),
        call_line=small(call_line),
        range_call=range_call.astype(np.int64),
        range_begin=low,
        range_size=high - low,
        line_begin=line_begin[own],
        line_size=(line_end - line_begin)[own],
        line_file=rows_of_files(line_file[own], len(files)),
        line=small(line[own]),
        names=names,
        files=files,
        shared=shared_names(begin, end, numbers, merged_function.astype(np.int64), names),
        problems=problems,
    )


def shared_names(begin: UInt64, end: UInt64, numbers: Int64, function: Int64, names: list[bytes]) -> SharedNames:
    """The code of functions with further names; `numbers` are those of the names of all functions, then others, and
    last of the merged ones."""
    merged = numbers[len(numbers) - len(function) :]
    known = (merged >= 0) & (numbers[function] >= 0)
    function, merged = function[known], merged[known]
    rows, which = distinct_inverse(function)
    rows = rows.astype(np.int64)
    order = np.argsort(begin[rows], kind="stable")
    apart = np.append(begin[rows][order][1:] >= end[rows][order][:-1], True) if len(rows) else np.zeros(0, np.bool_)
    texts: list[bytes] = []
    counts, chosen = [], []
    members: dict[int, list[int]] = {}
    for group, number in zip(which.tolist(), merged.tolist(), strict=True):
        members.setdefault(group, []).append(number)
    for place, group in enumerate(order.tolist()):
        row = int(rows[group])
        if apart[place] and end[row] > begin[row]:
            found = [names[int(numbers[row])], *(names[number] for number in members[group])]
            texts += found
            counts.append(len(found))
            chosen.append(row)
    return SharedNames(begin[chosen], end[chosen], offsets_of(np.array(counts, np.int64)).astype(np.uint64), texts)


class GsymStrings:
    """The strings of a file, by their offsets; `texts` are those asked for, `is_exhausted` says that some are not
    given."""

    def __init__(self, data: bytes | memoryview, offset: int, size: int) -> None:
        self._data = data[offset : offset + size]
        self._ends = np.append(np.flatnonzero(np.frombuffer(self._data, np.uint8) == 0), size)
        self._left = TEXT_SHARE * size
        self.texts: list[bytes] = []
        self.is_exhausted = False

    def numbers(self, offsets: UInt64) -> Int64:
        """The index in `texts` of the string at each offset, -1 for 0 and for one outside."""
        wanted, which = distinct_inverse(offsets)
        rows = np.full(len(wanted), -1, np.int64)
        for row, offset in enumerate(wanted.tolist()):
            text = self.at(offset)
            if text:
                rows[row] = len(self.texts)
                self.texts.append(text)
        return rows[which]

    def at(self, offset: int) -> bytes:
        """The string at an offset, empty if there is none."""
        if not 0 < offset < len(self._data):
            return b""
        end = int(self._ends[np.searchsorted(self._ends, offset)])
        self._left -= end - offset
        if self._left < 0:
            self.is_exhausted = True
            return b""
        return bytes(self._data[offset:end])


def read_files(data: bytes | memoryview, header: GsymHeader, strings: GsymStrings) -> list[bytes]:
    """The paths of the files, that of file `i + 1` is the one at `i`; empty ones for what is damaged."""
    order = ">" if header.big else "<"
    at, size = header.parts[FILES]
    if size < 4:
        return []
    count = int(np.frombuffer(data, f"{order}u4", 1, at)[0])
    width = 4 if header.version == 1 else 8
    count = min(count, (size - 4) // (2 * width))
    table = np.frombuffer(data, f"{order}u{width}", 2 * count, at + 4).reshape(count, 2)[1:]
    return [path_of(strings.at(folder), strings.at(base)) for folder, base in table.tolist()]


def path_of(folder: bytes, base: bytes) -> bytes:
    """A path of a folder and a name in it."""
    if not folder:
        return base
    return folder + base if folder.endswith(b"/") else folder + b"/" + base


def rows_of_files(numbers: UInt64, count: int) -> Int32:
    """Rows of files, which are numbered from 1; -1 for 0 and for one that is not there."""
    known = (numbers > 0) & (numbers <= np.uint64(count))
    return np.where(known, numbers - np.uint64(1), np.uint64(0)).astype(np.int32) - (~known).astype(np.int32)


def column(data: bytes | memoryview, header: GsymHeader, part: int, kind: str) -> NDArray[np.unsignedinteger]:
    """The numbers of a part, which is within the file."""
    at, _ = header.parts[part]
    return np.frombuffer(data, kind, header.address_count, at)


def aligned(offset: int, alignment: int) -> int:
    """The next multiple of `alignment`."""
    return -(-offset // alignment) * alignment
