"""jitdump files (`jit-PID.dump`): the code that a runtime compiled, with source lines, as perf's agents record it."""

import struct
from dataclasses import dataclass, field

import numpy as np

from symbolize.core.ranges import latest
from symbolize.symbol_files.symbol_list import SymbolList

MAGIC = 0x4A695444
HEADER_SIZE, PREFIX_SIZE = 40, 16
LOAD, MOVE, DEBUG_INFO, CLOSE = 0, 1, 2, 3
SAME_FILE = b"\xff"
"""An escape for the name of the entry before."""

ELF_HEADER = 0x40
"""Some runtimes add the size of an ELF header to the addresses of lines, because `perf inject` takes it off."""


@dataclass(eq=False)
class Code:
    """One function as it was loaded, with the lines of its code: offset in it, index of the file, line."""

    address: int
    size: int
    name: bytes
    lines: list[tuple[int, int, int]] = field(default_factory=list)


def is_jitdump(head: bytes) -> bool:
    """Whether a file that begins so is a jitdump, in either byte order."""
    return head[:4] in (b"JiTD", b"DTiJ")


def process_of(head: bytes) -> int:
    """The process that wrote the jitdump that begins so; 0 if that is cut off."""
    if len(head) < HEADER_SIZE or not is_jitdump(head):
        return 0
    return int(struct.unpack_from((">" if head[:4] == b"JiTD" else "<") + "I", head, 20)[0])


def read_jitdump(data: bytes | memoryview) -> SymbolList:
    """The functions and lines of a jitdump; addresses are those at run time.

    Of functions that overlap the later wins, and code that moved is at both addresses. A file that is cut off, as that
    of a killed process, gives what it has, with a sentence in `problems`.
    """
    problems: list[str] = []
    files: dict[bytes, int] = {}
    loaded: list[Code] = []
    order = ">" if bytes(data[:4]) == b"JiTD" else "<"
    at = struct.unpack_from(order + "I", data, 8)[0] if len(data) >= HEADER_SIZE else 0
    if not is_jitdump(bytes(data[:4])) or at < HEADER_SIZE:
        problems.append("is no jitdump, or its header is cut off")
        at = len(data)
    by_number: dict[int, Code] = {}
    waiting: dict[int, list[tuple[int, int, int]]] = {}
    while at < len(data):
        if at + PREFIX_SIZE > len(data):
            problems.append(f"is cut off at offset {at}")
            break
        kind, size = struct.unpack_from(order + "II", data, at)
        if size < PREFIX_SIZE or at + size > len(data):
            problems.append(f"is cut off or corrupt at offset {at}")
            break
        record = bytes(data[at + PREFIX_SIZE : at + size])
        at += size
        try:
            if kind == LOAD:
                _, _, _, address, length, number = struct.unpack_from(order + "IIQQQQ", record)
                name, _, _ = record[40:].partition(b"\0")
                code = Code(address, length, name, waiting.pop(address, []))
                loaded.append(code)
                by_number[number] = code
            elif kind == MOVE:
                _, _, _, _, address, length, number = struct.unpack_from(order + "IIQQQQQ", record)
                if (old := by_number.get(number)) is not None:
                    code = by_number[number] = Code(address, length, old.name, old.lines)
                    loaded.append(code)
            elif kind == DEBUG_INFO:
                address, count = struct.unpack_from(order + "QQ", record)
                waiting[address] = read_lines(record, order, address, count, files)
            elif kind == CLOSE:
                break
        except (struct.error, ValueError):
            problems.append(f"the record before offset {at} is corrupt")
    listing = lay_out(loaded, len(data))
    listing.files = list(files)
    listing.problems += problems
    return listing


def read_lines(
    record: bytes, order: str, address: int, count: int, files: dict[bytes, int]
) -> list[tuple[int, int, int]]:
    """The lines of a debug record. Raises ValueError or struct.error where it is cut off."""
    lines = []
    at, file = 16, -1
    entry = struct.Struct(order + "QII")
    for _ in range(count):  # each takes at least 17 bytes, so a false count ends with the record
        position, line, _ = entry.unpack_from(record, at)
        end = record.index(b"\0", at + 16)
        name = record[at + 16 : end]
        if name != SAME_FILE:
            file = files.setdefault(name, len(files))
        at = end + 1
        lines.append((position - address, file, line))
    return lines


def lay_out(loaded: list[Code], budget: int) -> SymbolList:
    """A listing of functions in order of loading, with `budget` lines at most, which code that moves often repeats."""
    offsets = [offset for code in loaded for offset, _, _ in code.lines]
    bias = ELF_HEADER if offsets and min(offsets) >= ELF_HEADER else 0
    top = np.uint64(0xFFFFFFFFFFFFFFFF)
    begin = np.array([code.address for code in loaded], np.uint64)
    end = begin + np.minimum(np.array([code.size for code in loaded], np.uint64), top - begin)
    begin, end, row = latest(begin, end)
    listing = SymbolList.of_functions(begin, end, [loaded[i].name for i in row.tolist()])
    starts: list[int] = []
    files: list[int] = []
    numbers: list[int] = []
    for low, high, i in zip(begin.tolist(), end.tolist(), row.tolist(), strict=True):
        if starts and starts[-1] == low:
            del starts[-1], files[-1], numbers[-1]
        budget -= len(loaded[i].lines)
        if budget < 0:
            listing.problems.append("lines repeat absurdly often, the rest of them is left out")
            break
        found = (-1, 0)
        piece: list[tuple[int, int, int]] = []
        for offset, file, line in sorted(loaded[i].lines, key=lambda entry: entry[0]):
            position = loaded[i].address + offset - bias
            if position <= low:
                found = file, line
            elif position < high:
                piece.append((position, file, line))
        for position, file, line in [(low, *found), *piece, (high, -1, 0)]:
            if starts and starts[-1] == position:
                files[-1], numbers[-1] = file, line
            elif position <= int(top):
                starts.append(position)
                files.append(file)
                numbers.append(line)
    listing.row_start = np.array(starts, np.uint64)
    listing.row_file = np.array(files, np.int32)
    listing.row_line = np.array(numbers, np.uint32)
    return listing
