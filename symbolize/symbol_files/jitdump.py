"""jitdump files (`jit-PID.dump`): the code that a runtime compiled, with source lines, as perf's agents record it
(tools/perf/Documentation/jitdump-specification.txt)."""

import struct
from dataclasses import dataclass, field

import numpy as np

from symbolize.core.arrays import NONE
from symbolize.symbol_files.code_list import MAX_SIZE, CodeFrames, CodeList, placed
from symbolize.symbol_files.symbol_list import SymbolList

MAGIC = 0x4A695444
HEADER_SIZE, PREFIX_SIZE = 40, 16
COUNTER_TIMES = 1
"""The flag that times are values of a counter of the processor."""
LOAD, MOVE, DEBUG_INFO, CLOSE, UNWINDING = 0, 1, 2, 3, 4
PADDING = 7
"""Bytes by which a debug record may be longer than its entries."""
SAME_FILE = b"\xff"
"""An escape for the name of the entry before."""

MAX_UNWINDING = 1 << 16
"""Bytes of the call frame information of one function that are read."""
ELF_HEADER = 0x40
"""Some runtimes add the size of an ELF header to the addresses of lines, because `perf inject` takes it off."""


Entry = tuple[int, int, bytes]
"""Where a line begins in its code, the line, and the name of its file."""
Line = tuple[int, int, int]
"""Where a line begins in its code, the number of its file, and the line."""


@dataclass(eq=False)
class JitCode:
    """One function as it was loaded at a time, with the lines of its code, and the number of its call frame
    information."""

    time: int
    address: int
    size: int
    name: bytes
    lines: list[Line] = field(default_factory=list)
    section: int = NONE


def is_jitdump(head: bytes) -> bool:
    """Whether a file that begins so is a jitdump, in either byte order."""
    return head[:4] in (b"JiTD", b"DTiJ")


def process_of(head: bytes) -> int:
    """The process that wrote the jitdump that begins so; 0 if that is cut off."""
    if len(head) < HEADER_SIZE or not is_jitdump(head):
        return 0
    return int(struct.unpack_from((">" if head[:4] == b"JiTD" else "<") + "I", head, 20)[0])


def read_jitdump(data: bytes | memoryview) -> CodeList:
    """The functions and lines of a jitdump; addresses are those at run time.

    Code that moved is at both addresses. A file that is cut off, as that of a killed process, gives what it has, with a
    sentence in `problems`. A debug record that has addresses outside of its code, or more bytes than its entries need,
    is damaged, as V8 writes some of them: its lines are left out (R462, damaged debug records). Call frame information
    is that of the code that is loaded next, behind which it has its addresses (R467, call frames of jitdumps). An
    `.eh_frame` begins at the next multiple of 8 bytes behind the code, as in the files of `perf inject`. CPython leaves
    the machine 0.
    """
    problems: list[str] = []
    files: dict[bytes, int] = {}
    loaded: list[JitCode] = []
    order = ">" if bytes(data[:4]) == b"JiTD" else "<"
    at = struct.unpack_from(order + "I", data, 8)[0] if len(data) >= HEADER_SIZE else 0
    flags = struct.unpack_from(order + "Q", data, HEADER_SIZE - 8)[0] if at else 0
    if not is_jitdump(bytes(data[:4])) or at < HEADER_SIZE:
        problems.append("is no jitdump, or its header is cut off")
        at = len(data)
    by_number: dict[int, JitCode] = {}
    waiting: dict[int, list[Entry] | None] = {}
    sections: dict[tuple[bytes, int], int] = {}
    frames = b""
    damaged = corrupt = 0
    while at < len(data):
        if at + PREFIX_SIZE > len(data):
            problems.append(f"is cut off at offset {at}")
            break
        kind, size, time = struct.unpack_from(order + "IIQ", data, at)
        if size < PREFIX_SIZE or at + size > len(data):
            problems.append(f"is cut off or corrupt at offset {at}")
            break
        record = bytes(data[at + PREFIX_SIZE : at + size])
        at += size
        try:
            if kind == LOAD:
                its_frames, frames = frames, b""  # also of code that cannot be read
                _, _, _, address, length, number = struct.unpack_from(order + "IIQQQQ", record)
                name, _, _ = record[40:].partition(b"\0")
                entries = waiting.pop(address, [])
                if entries is None or any(not 0 <= offset <= length + ELF_HEADER for offset, _, _ in entries):
                    damaged += 1
                    entries = []
                lines = [(offset, files.setdefault(file, len(files)), line) for offset, line, file in entries]
                code = by_number[number] = JitCode(time, address, length, name, lines)
                if its_frames:
                    code.section = sections.setdefault((its_frames, min(length, MAX_SIZE) + 7 & -8), len(sections))
                loaded.append(code)
            elif kind == MOVE:
                _, _, _, _, address, length, number = struct.unpack_from(order + "IIQQQQQ", record)
                if (old := by_number.get(number)) is not None:
                    code = by_number[number] = JitCode(time, address, length, old.name, old.lines, old.section)
                    loaded.append(code)
            elif kind == DEBUG_INFO:
                address, count = struct.unpack_from(order + "QQ", record)
                waiting[address] = read_lines(record, order, address, count)
            elif kind == UNWINDING:
                frames = b""
                whole, header, _ = struct.unpack_from(order + "QQQ", record)
                if not header <= whole <= len(record) - 24:
                    raise struct.error
                if whole - header <= MAX_UNWINDING:
                    frames = record[24 : 24 + whole - header]
            elif kind == CLOSE:
                break
        except struct.error:
            corrupt += 1
    if damaged:
        problems.append(f"{damaged} debug records are damaged: the lines of their functions are left out")
    if corrupt:
        problems.append(f"{corrupt} records are corrupt")
    found = None
    if sections and order == "<":
        machine = struct.unpack_from(order + "I", data, 12)[0]
        found = CodeFrames(machine, list(sections), np.array([code.section for code in loaded], np.int64))
    code_list = lay_out(loaded, len(data), found, has_counter_times=bool(flags & COUNTER_TIMES))
    code_list.listing.files = list(files)
    code_list.listing.problems += problems
    return code_list


def read_lines(record: bytes, order: str, address: int, count: int) -> list[Entry] | None:
    """The lines of a debug record; None if it ends before its entries, or goes on behind them.

    Addresses of entries may be behind the code by the size of an ELF header (R462, damaged debug records).
    """
    entries: list[Entry] = []
    at, name = 16, b""
    entry = struct.Struct(order + "QII")
    for _ in range(count):  # each takes at least 17 bytes, so a false count ends with the record
        end = record.find(b"\0", at + entry.size)
        if end < 0:
            return None
        position, line, _ = entry.unpack_from(record, at)
        text = record[at + entry.size : end]
        name = name if text == SAME_FILE else text
        entries.append((position - address, line, name))
        at = end + 1
    return entries if len(record) - at <= PADDING else None


def lay_out(loaded: list[JitCode], budget: int, frames: CodeFrames | None, *, has_counter_times: bool) -> CodeList:
    """The list of functions in order of loading, with `budget` lines at most, which code that moves often repeats."""
    offsets = [offset for code in loaded for offset, _, _ in code.lines]
    bias = ELF_HEADER if offsets and min(offsets) >= ELF_HEADER else 0
    begin, end, place = placed([code.address for code in loaded], [code.size for code in loaded])
    listing = SymbolList.of_functions(place, place + (end - begin), [code.name for code in loaded])
    rows: dict[int, tuple[int, int]] = {}
    for code, start, size in zip(loaded, place.tolist(), (end - begin).tolist(), strict=True):
        budget -= len(code.lines)
        if budget < 0:
            listing.problems.append("lines repeat absurdly often, the rest of them is left out")
            break
        if not size:
            continue
        rows[start] = -1, 0
        for offset, file, line in sorted(code.lines, key=lambda each: each[0]):
            if offset - bias < size:
                rows[start + max(offset - bias, 0)] = file, line
        rows[start + size] = -1, 0
    listing.row_start = np.fromiter(rows, np.uint64, len(rows))
    listing.row_file = np.array([file for file, _ in rows.values()], np.int32)
    listing.row_line = np.array([line for _, line in rows.values()], np.uint32)
    time = np.array([code.time for code in loaded], np.uint64)
    return CodeList(begin, end, time, place, listing, has_counter_times, frames)
