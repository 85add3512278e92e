"""Writes GSYM files of both versions and byte orders by the description of the format, the simplest way."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from symbolize.symbol_files.gsym import ADDRESSES, FILES, PLACES, RECORDS, STRINGS, UUID

MAGIC = 0x4753594D
LINE_TABLE, INLINED, MERGED, CALL_SITES = 1, 2, 3, 4


class Inlined(NamedTuple):
    """An inlined call: name, file and line of the call, ranges, and the calls in it."""

    name: str
    file: str
    line: int
    ranges: Sequence[tuple[int, int]]
    inner: Sequence["Inlined"] = ()


class Function(NamedTuple):
    """A function: lines are address, file and line; `merged` are other names of its code."""

    begin: int
    size: int
    name: str
    lines: Sequence[tuple[int, str, int]] = ()
    inner: Sequence[Inlined] = ()
    merged: Sequence[str] = ()


UUID_BYTES = bytes.fromhex("00112233445566778899aabbccddeeff00112233")
EXAMPLE = [
    Function(
        *(0x1000, 0x40, "outer(int)"),
        [(0x1000, "/src/a.cc", 3), (0x1008, "/src/b.cc", 4), (0x1020, "/src/a.cc", 900)],
        [
            Inlined(
                *("inner()", "/src/a.cc", 7, [(0x1008, 0x10), (0x1020, 8)]),
                [Inlined("deeper<int>(char)", "/src/b.cc", 9, [(0x100A, 4)])],
            )
        ],
    ),
    Function(0x1100, 0x20, "twice", [(0x1100, "a.cc", 9)], merged=["once", "thrice"]),
    Function(0x3000, 0, "exported"),
]


def uleb(value: int) -> bytes:
    """An unsigned LEB128 number."""
    result = bytearray()
    while True:
        byte, value = value & 0x7F, value >> 7
        result.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(result)


def sleb(value: int) -> bytes:
    """A signed LEB128 number."""
    result = bytearray()
    while True:
        byte, value = value & 0x7F, value >> 7
        if value == (-1 if byte & 0x40 else 0):
            return bytes([*result, byte])
        result.append(byte | 0x80)


class Tables:
    """The strings and files of a file under way, and how its numbers are written."""

    def __init__(self, version: int, order: str) -> None:
        self.order, self.name = order, "I" if version == 1 else "Q"
        self.strings, self.files = b"\0", {"": 0}

    def string(self, text: str) -> int:
        """Where a string is, put there anew."""
        if not text:
            return 0
        at = len(self.strings)
        self.strings += text.encode() + b"\0"
        return at

    def file(self, path: str) -> int:
        """The number of a file."""
        return self.files.setdefault(path, len(self.files))

    def pack(self, kinds: str, *values: int) -> bytes:
        """Numbers; `s` is the offset of a string."""
        return struct.pack(self.order + kinds.replace("s", self.name), *values)

    def tree(self, call: Inlined, base: int) -> bytes:
        """An inlined call with those in it."""
        spans = b"".join(uleb(begin - base) + uleb(size) for begin, size in call.ranges)
        head = uleb(len(call.ranges)) + spans + self.pack("Bs", bool(call.inner), self.string(call.name))
        inner = b"".join(self.tree(each, call.ranges[0][0]) for each in call.inner)
        return head + uleb(self.file(call.file)) + uleb(call.line) + (inner + b"\0" if call.inner else b"")

    def record(self, function: Function) -> bytes:
        """The record of a function, with a chunk of a type that is skipped."""
        chunks = [(CALL_SITES, b"skipped")]
        if function.lines:
            first = function.lines[0][2]
            at, line, program = function.begin, first, sleb(-1) + sleb(1) + uleb(first)
            for address, path, number in function.lines:
                program += b"\1" + uleb(self.file(path))
                if -1 <= number - line <= 1 and address - at < 80:
                    program += bytes([4 + number - line + 1 + 3 * (address - at)])
                else:
                    program += b"\3" + sleb(number - line) + b"\2" + uleb(address - at)
                at, line = address, number
            chunks.append((LINE_TABLE, program + b"\0"))
        if function.inner:
            whole = Inlined(function.name, "", 0, [(function.begin, function.size)], function.inner)
            chunks.append((INLINED, self.tree(whole, function.begin)))
        if function.merged:
            others = [self.record(Function(function.begin, function.size, name)) for name in function.merged]
            merged = b"".join(self.pack("I", len(other)) + other for other in others)
            chunks.append((MERGED, self.pack("I", len(others)) + merged))
        body = b"".join(self.pack("II", kind, len(data)) + data for kind, data in chunks)
        return self.pack("Is", function.size, self.string(function.name)) + body + self.pack("II", 0, 0)


def padded(data: bytes, alignment: int = 8) -> bytes:
    """`data` up to a multiple of `alignment`."""
    return data + bytes(-len(data) % alignment)


def gsym_file(
    functions: Sequence[Function],
    version: int = 1,
    order: str = "<",
    base: int = 0,
    uuid: bytes = UUID_BYTES,
    address_size: int = 4,
) -> bytes:
    """A GSYM file; `order` is `<` or `>`."""
    tables = Tables(version, order)
    records, places = b"", []
    for function in functions:
        records = padded(records, 4)
        places.append(len(records))
        records += tables.record(function)
    pairs = [(tables.string(path.rpartition("/")[0]), tables.string(path.rpartition("/")[2])) for path in tables.files]
    files = tables.pack("I", len(pairs)) + b"".join(tables.pack("ss", *pair) for pair in pairs)
    kind = {1: "B", 2: "H", 4: "I", 8: "Q"}[address_size]
    addresses = padded(b"".join(tables.pack(kind, function.begin - base) for function in functions), 4)
    if version == 1:
        strings_at = 48 + len(addresses) + 4 * len(functions) + len(files)
        records_at = len(padded(bytes(strings_at) + tables.strings))
        head = tables.pack(
            *("IHBBQIII", MAGIC, 1, address_size, len(uuid), base, len(functions), strings_at, len(tables.strings))
        )
        info = b"".join(tables.pack("I", records_at + place) for place in places)
        return padded(head + uuid.ljust(20, b"\0") + addresses + info + files + tables.strings) + records
    info = b"".join(tables.pack("Q", place) for place in places)
    parts = {UUID: uuid, RECORDS: records, FILES: files, PLACES: info, STRINGS: tables.strings, ADDRESSES: addresses}
    directory, body = b"", b""
    first = 20 + 20 * (len(parts) + 1)
    first += -first % 8
    for kind, data in parts.items():
        directory += tables.pack("IQQ", kind, first + len(body), len(data))
        body = padded(body + data)
    head = tables.pack("IHBBQI", MAGIC, 2, address_size, 0, base, len(functions))
    return padded(head + directory + tables.pack("IQQ", 0, 0, 0)) + body
