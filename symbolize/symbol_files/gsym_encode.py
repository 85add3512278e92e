# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""Encodes the function records of a GSYM file of version 1: sizes, names, lines, inlined calls, shared code."""

import cython

if not cython.compiled:
    from symbolize.core.leb128 import put_sleb, put_uleb

LINE_TABLE = cython.declare(cython.ulonglong, 1)
INLINED = cython.declare(cython.ulonglong, 2)
MERGED = cython.declare(cython.ulonglong, 3)
"""The types of what follows a function's size and name."""

END_SEQUENCE = cython.declare(cython.int, 0)
SET_FILE = cython.declare(cython.int, 1)
ADVANCE_PC = cython.declare(cython.int, 2)
ADVANCE_LINE = cython.declare(cython.int, 3)
FIRST_SPECIAL = cython.declare(cython.longlong, 4)
LAST_OPCODE = cython.declare(cython.longlong, 255)
MIN_DELTA = cython.declare(cython.longlong, -4)
MAX_DELTA = cython.declare(cython.longlong, 10)
"""The changes of the line that an opcode can say together with one of the address."""
LINE_RANGE = cython.declare(cython.longlong, 15)
FAR = cython.declare(cython.ulonglong, 32)
"""A change of the address that no such opcode can say."""

ALIGNMENT = cython.declare(cython.Py_ssize_t, 4)

MAX_FUNCTION = 96
MAX_ROW = 32
MAX_CALL = 32
MAX_RANGE = 20
MAX_MERGED = 20
"""The most bytes of a function without what follows, of a line row, an inlined call, a range of it, another name."""


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_u32(data: cython.uchar[::1], position: cython.Py_ssize_t, value: cython.ulonglong) -> cython.Py_ssize_t:
    """Write a number of four bytes, little-endian; the position behind it."""
    i: cython.int
    for i in range(4):
        data[position + i] = (value >> (8 * i)) & 0xFF
    return position + 4


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_lines(
    data: cython.uchar[::1],
    at: cython.Py_ssize_t,
    starts: cython.const[cython.ulonglong][::1],
    files: cython.const[cython.int][::1],
    lines: cython.const[cython.uint][::1],
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Write the line table of the function that has the ranges `[first, last)`; the position behind it.

    The state begins with the function's address, file 1 and the first line; files are numbered from 1, 0 is none.
    """
    address: cython.ulonglong = starts[first]
    file: cython.longlong = 1
    line: cython.longlong = lines[first]
    delta: cython.longlong
    opcode: cython.longlong
    distance: cython.ulonglong
    i: cython.Py_ssize_t
    at = put_sleb(data, at, MIN_DELTA)
    at = put_sleb(data, at, MAX_DELTA)
    at = put_uleb(data, at, lines[first])
    for i in range(first, last):
        if i > first and files[i] + 1 == file and lines[i] == line:
            continue
        if files[i] + 1 != file:
            file = files[i] + 1
            data[at] = SET_FILE
            at = put_uleb(data, at + 1, cython.cast(cython.ulonglong, file))
        delta = lines[i] - line
        line = lines[i]
        distance = starts[i] - address
        address = starts[i]
        opcode = LAST_OPCODE + 1
        if distance < FAR and MIN_DELTA <= delta <= MAX_DELTA:
            opcode = FIRST_SPECIAL + delta - MIN_DELTA + LINE_RANGE * cython.cast(cython.longlong, distance)
        if opcode > LAST_OPCODE and delta != 0:
            data[at] = ADVANCE_LINE
            at = put_sleb(data, at + 1, delta)
            if distance < FAR:
                opcode = FIRST_SPECIAL - MIN_DELTA + LINE_RANGE * cython.cast(cython.longlong, distance)
        if opcode <= LAST_OPCODE:
            data[at] = cython.cast(cython.uchar, opcode)
            at += 1
        else:
            data[at] = ADVANCE_PC
            at = put_uleb(data, at + 1, distance)
    data[at] = END_SEQUENCE
    return at + 1


@cython.ccall
def encode_functions(  # type: ignore[no-untyped-def]
    starts: cython.const[cython.ulonglong][::1],
    files: cython.const[cython.int][::1],
    lines: cython.const[cython.uint][::1],
    functions: cython.const[cython.longlong][:, ::1],
    begins: cython.const[cython.ulonglong][::1],
    ends: cython.const[cython.ulonglong][::1],
    names: cython.const[cython.uint][::1],
    calls: cython.const[cython.longlong][:, ::1],
    range_offsets: cython.const[cython.longlong][::1],
    range_begins: cython.const[cython.ulonglong][::1],
    range_ends: cython.const[cython.ulonglong][::1],
    merged_offsets: cython.const[cython.longlong][::1],
    merged: cython.const[cython.uint][::1],
    data: cython.uchar[::1],
    places: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Write the records into `data`, which is large enough, and where each begins into `places`; the bytes written.

    `functions` are the first and last range of each, with its file and line in `files` and `lines`, where its inlined
    calls begin (one more than functions), and whether it has lines. `calls` are depth, parent, name, file (0: none)
    and line of each inlined call, in preorder. Names are offsets in the table of strings; files number from 1.
    """
    at: cython.Py_ssize_t = 0
    length: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    r: cython.Py_ssize_t
    closing: cython.longlong
    base: cython.ulonglong
    with cython.nogil:
        for i in range(len(begins)):
            while at % ALIGNMENT != 0:
                data[at] = 0
                at += 1
            places[i] = at
            at = put_u32(data, at, ends[i] - begins[i])
            at = put_u32(data, at, names[i])
            if functions[3, i] != 0:
                at = put_u32(data, at, LINE_TABLE)
                length = at
                at = put_lines(data, at + 4, starts, files, lines, functions[0, i], functions[1, i])
                put_u32(data, length, at - length - 4)
            if functions[2, i] < functions[2, i + 1]:
                at = put_u32(data, at, INLINED)
                length = at
                at = put_uleb(data, put_uleb(data, at + 4, 1), 0)
                at = put_uleb(data, at, ends[i] - begins[i])
                data[at] = 1
                at = put_uleb(data, put_uleb(data, put_u32(data, at + 1, names[i]), 0), 0)
                for j in range(functions[2, i], functions[2, i + 1]):
                    base = begins[i] if calls[1, j] < 0 else range_begins[range_offsets[calls[1, j]]]
                    at = put_uleb(data, at, range_offsets[j + 1] - range_offsets[j])
                    for r in range(range_offsets[j], range_offsets[j + 1]):
                        at = put_uleb(data, at, range_begins[r] - base)
                        at = put_uleb(data, at, range_ends[r] - range_begins[r])
                    closing = calls[0, j] - (calls[0, j + 1] if j + 1 < functions[2, i + 1] else 0)
                    data[at] = 1 if closing < 0 else 0
                    at = put_u32(data, at + 1, calls[2, j])
                    at = put_uleb(data, at, calls[3, j])
                    at = put_uleb(data, at, calls[4, j])
                    while closing > 0:  # the end of a list of siblings
                        data[at] = 0
                        at += 1
                        closing -= 1
                put_u32(data, length, at - length - 4)
            if merged_offsets[i] < merged_offsets[i + 1]:
                at = put_u32(data, at, MERGED)
                length = at
                at = put_u32(data, at + 4, merged_offsets[i + 1] - merged_offsets[i])
                for j in range(merged_offsets[i], merged_offsets[i + 1]):
                    at = put_u32(data, put_u32(data, at, 16), ends[i] - begins[i])
                    at = put_u32(data, put_u32(data, put_u32(data, at, merged[j]), 0), 0)
                put_u32(data, length, at - length - 4)
            at = put_u32(data, put_u32(data, at, 0), 0)
    return at
