"""Breakpad symbol files: functions, inlined functions, lines and exported symbols as text."""

import re
from typing import NamedTuple

import numpy as np

from symbolize.core.arrays import Int32, Int64, UInt64, offsets_of, views
from symbolize.symbol_files.breakpad_scan import KINDS, count_records, read_records
from symbolize.symbol_files.records import Records, as_listing, small
from symbolize.symbol_files.symbol_list import SharedNames, SymbolList

FUNCTION, PUBLIC, FILE, ORIGIN, INLINE, LINE = range(1, KINDS)
"""The kinds of records, as `breakpad_scan` numbers them."""

HEAD = 4096
"""Bytes of a file with its first records."""

_MODULE = re.compile(rb"MODULE (\S+) (\S+) ([0-9A-Fa-f]{33,40}) ([^\r\n]*)\r?\n")
_CODE_ID = re.compile(rb"^INFO CODE_ID ([0-9A-Fa-f]+)", re.MULTILINE)


class BreakpadModule(NamedTuple):
    """The debug id of a module (32 hex digits and the age), its build id if there is one, and its name."""

    debug_id: str
    build_id: str
    name: str


def read_module(head: bytes) -> BreakpadModule | None:
    """The module of the symbol file that begins with `head`; None if it is no such file."""
    match = _MODULE.match(head)
    if match is None:
        return None
    code = _CODE_ID.search(head[:HEAD])
    name = match[4].decode(errors="backslashreplace")
    return BreakpadModule(match[3].decode().upper(), code[1].decode().lower() if code else "", name)


def debug_id(build_id: str) -> str:
    """The debug id, without its age, of a module with this build id: its first 16 bytes as a GUID, whose three numbers
    are little-endian in a build id."""
    raw = bytes.fromhex(build_id)[:16].ljust(16, b"\0")
    return (raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]).hex().upper()


def read_breakpad(data: bytes | memoryview) -> SymbolList:
    """The functions, inlined functions, lines and exported symbols of a symbol file.

    Addresses count from where the first segment of the module is loaded. A function ends by its size, and where the
    next one begins; a PUBLIC record, which has no size, where the next function or such record begins. Names are as in
    the file. Damaged records are counted in `problems`.
    """
    counts = np.zeros(KINDS + 1, np.int64)
    count_records(data, *views(counts))
    first = offsets_of(counts[1:KINDS])
    rows = np.concatenate(([0], first[:-1], [0]))
    numbers = np.zeros((4, int(first[-1])), np.uint64)
    spans = np.zeros((2, int(first[LINE - 1])), np.int64)
    ranges = np.zeros((3, int(counts[0])), np.uint64)
    read_records(data, *views(numbers, spans, ranges, rows))
    functions, publics, files, origins, inlines, lines = map(slice, first[:-1].tolist(), rows[1:KINDS].tolist())
    problems = [f"{rows[KINDS]} lines are no sound records"] if rows[KINDS] else []

    function_count, public_count = functions.stop - functions.start, publics.stop - publics.start
    roots, line_count = function_count + public_count, lines.stop - lines.start
    origin = rows_of(numbers[0, origins], numbers[3, inlines]).astype(np.int64)
    file_row = rows_of(numbers[0, files], np.concatenate((numbers[3, lines], numbers[2, inlines])))
    row, low, size = ranges[:, : rows[0]]
    return as_listing(
        Records(
            function_begin=numbers[0, functions],
            function_size=numbers[1, functions],
            function_name=np.arange(function_count),
            symbol_begin=numbers[0, publics],
            symbol_name=np.arange(function_count, roots),
            call_function=spans[0, inlines] - 1,  # that before it in the file, -1 if none is
            call_depth=numbers[0, inlines],
            call_name=np.where(origin < 0, -1, roots + origin),
            call_file=file_row[line_count:],
            call_line=small(numbers[1, inlines]),
            range_call=row.astype(np.int64) - inlines.start,
            range_begin=low,
            range_size=size,
            line_begin=numbers[0, lines],
            line_size=numbers[1, lines],
            line_file=file_row[:line_count],
            line=small(numbers[2, lines]),
            names=[name for kind in (functions, publics, origins) for name in texts(data, spans[:, kind])],
            files=texts(data, spans[:, files]),
            shared=SharedNames.none(),
            problems=problems,
        )
    )


def rows_of(numbers: UInt64, wanted: UInt64) -> Int32:
    """For each of `wanted` the row of that number, -1 where there is none; of equal numbers the first counts."""
    if not len(numbers):
        return np.full(len(wanted), -1, np.int32)
    if int(numbers.max()) < 2 * len(numbers):  # writers number from 0
        row_of = np.full(2 * len(numbers) + 1, -1, np.int32)
        row_of[numbers[::-1].astype(np.int64)] = np.arange(len(numbers), dtype=np.int32)[::-1]
        return row_of[np.minimum(wanted, np.uint64(2 * len(numbers))).astype(np.int64)]
    order = np.argsort(numbers, kind="stable")
    at = np.minimum(np.searchsorted(numbers[order], wanted), len(numbers) - 1)
    return np.where(numbers[order[at]] == wanted, order[at], -1).astype(np.int32)


def texts(data: bytes | memoryview, spans: Int64) -> list[bytes]:
    """The strings between begins and ends in `data`."""
    return [bytes(data[begin:end]) for begin, end in zip(*spans.tolist(), strict=True)]
