# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""The records of a Breakpad symbol file as columns, and inlined functions as disjoint ranges."""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.core.kernels import RangeColumns

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
FUNC_SIZE = cython.declare(cython.Py_ssize_t, 5)
"""Bytes of "FUNC " and "FILE "."""
PUBLIC_SIZE = cython.declare(cython.Py_ssize_t, 7)
"""Bytes of "PUBLIC " and "INLINE "."""
ORIGIN_SIZE = cython.declare(cython.Py_ssize_t, 14)
"""Bytes of "INLINE_ORIGIN "."""
MAX_DIGITS = cython.declare(cython.int, 16)
"""Hexadecimal digits of the largest number."""

NO_RECORD = cython.declare(cython.int, 0)
FUNCTION = cython.declare(cython.int, 1)
PUBLIC = cython.declare(cython.int, 2)
FILE = cython.declare(cython.int, 3)
ORIGIN = cython.declare(cython.int, 4)
INLINE = cython.declare(cython.int, 5)
LINE = cython.declare(cython.int, 6)
FIELDS = cython.declare(cython.int, 4)
"""Numbers that a record has at most, but for the ranges of an inlined function."""
KINDS = 7
UNSOUND = cython.declare(cython.int, 7)

MAX_NESTING = cython.declare(cython.Py_ssize_t, 256)
"""Functions inlined into each other; what is deeper is left out."""


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def line_end(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where the line at `at` ends."""
    while at < len(data) and data[at] != ord("\n"):
        at += 1
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def hex_digit(byte: cython.uchar) -> cython.int:
    """The value of a hexadecimal digit, -1 for anything else."""
    if ord("0") <= byte <= ord("9"):
        return byte - ord("0")
    if ord("a") <= byte <= ord("f"):
        return byte - ord("a") + 10
    if ord("A") <= byte <= ord("F"):
        return byte - ord("A") + 10
    return -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def kind_of(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
    """What record the line `[at, end)` is: one of the constants above."""
    first: cython.uchar
    if at >= end:
        return NO_RECORD
    first = data[at]
    if end - at > FUNC_SIZE and data[at + FUNC_SIZE - 1] == ord(" ") and first == ord("F"):
        if data[at + 1] == ord("U") and data[at + 2] == ord("N") and data[at + 3] == ord("C"):
            return FUNCTION
        if data[at + 1] == ord("I") and data[at + 2] == ord("L") and data[at + 3] == ord("E"):
            return FILE
    if end - at > PUBLIC_SIZE and first == ord("P") and data[at + 1] == ord("U"):
        if data[at + PUBLIC_SIZE - 1] == ord(" "):
            return PUBLIC
    if end - at > PUBLIC_SIZE and first == ord("I") and data[at + 1] == ord("N") and data[at + 2] == ord("L"):
        if data[at + PUBLIC_SIZE - 1] == ord(" "):
            return INLINE
        if end - at > ORIGIN_SIZE and data[at + 6] == ord("_") and data[at + ORIGIN_SIZE - 1] == ord(" "):
            return ORIGIN
    if hex_digit(first) >= 0 and not (end - at >= FUNC_SIZE and first == ord("F") and data[at + 1] == ord("U")):
        return LINE
    return NO_RECORD


@cython.ccall
def count_records(data: cython.const[cython.uchar][::1], counts: cython.longlong[::1]):  # type: ignore[no-untyped-def]
    """How many lines there are of each kind, and in counts[0] how many ranges inlined functions can have at most."""
    at: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t
    kind: cython.int
    with cython.nogil:
        while at < len(data):
            end = line_end(data, at)
            kind = kind_of(data, at, end)
            if kind != NO_RECORD:
                counts[kind] += 1
            if kind == INLINE:
                counts[0] += (end - at) // 4 + 1
            at = end + 1


@cython.ccall
def read_records(  # type: ignore[no-untyped-def]
    data: cython.const[cython.uchar][::1],
    numbers: cython.ulonglong[:, ::1],
    texts: cython.longlong[:, ::1],
    ranges: cython.ulonglong[:, ::1],
    rows: cython.longlong[::1],
):
    """Fill the columns with the sound records; `rows` are the first of each kind, and become the ends.

    `numbers` are the fields of a record in order; `texts` begin and end of the name in `data`, of an INLINE how many
    functions are before it; `ranges` those of inlined functions: row of the record, address, size. rows[0] is that of
    `ranges`; rows[UNSOUND] counts damaged records.
    """
    at: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    pos: cython.Py_ssize_t
    kind: cython.int
    base: cython.ulonglong
    digit: cython.int
    wanted: cython.int
    field: cython.int
    value: cython.ulonglong
    digits: cython.int
    bad: cython.bint
    row: cython.Py_ssize_t
    first_function: cython.longlong = rows[FUNCTION]
    pending: cython.ulonglong = 0
    with cython.nogil:
        while at < len(data):
            end = line_end(data, at)
            kind = kind_of(data, at, end)
            stop = end
            if stop > at and data[stop - 1] == ord("\r"):
                stop -= 1
            pos = at
            at = end + 1
            if kind == NO_RECORD:
                continue
            # Skip the keyword, and the mark of functions whose code several share.
            if kind in (FUNCTION, FILE):
                pos += FUNC_SIZE
            elif kind in (PUBLIC, INLINE):
                pos += PUBLIC_SIZE
            elif kind == ORIGIN:
                pos += ORIGIN_SIZE
            if (kind in (FUNCTION, PUBLIC)) and pos + 1 < stop and data[pos] == ord("m") and data[pos + 1] == ord(" "):
                pos += 2
            wanted = FIELDS if kind in (LINE, INLINE) else 3 if kind == FUNCTION else 2 if kind == PUBLIC else 1
            bad = False
            field = 0
            row = rows[kind]
            while field < wanted or (kind == INLINE and pos < stop):
                while pos < stop and data[pos] == ord(" "):
                    pos += 1
                if pos >= stop and field >= wanted:
                    break
                # Addresses and sizes are hexadecimal, lines and numbers of files and origins are not.
                base = 16
                if kind in (FILE, ORIGIN) or (kind == LINE and field >= 2) or (kind == INLINE and field < FIELDS):
                    base = 10
                value = 0
                digits = 0
                while pos < stop and data[pos] != ord(" "):
                    digit = hex_digit(data[pos])
                    if digit < 0 or cython.cast(cython.ulonglong, digit) >= base or digits >= MAX_DIGITS:
                        bad = True
                        break
                    value = (value * base + cython.cast(cython.ulonglong, digit)) & MASK64
                    digits += 1
                    pos += 1
                if bad or digits == 0:
                    bad = True
                    break
                if field < FIELDS:
                    numbers[field, row] = value
                elif field % 2 == 0:
                    pending = value
                else:
                    ranges[0, rows[0]] = cython.cast(cython.ulonglong, row)
                    ranges[1, rows[0]] = pending
                    ranges[2, rows[0]] = value
                    rows[0] += 1
                field += 1
            if bad and not (kind == INLINE and field >= FIELDS):
                rows[UNSOUND] += 1
                continue
            while pos < stop and data[pos] == ord(" "):
                pos += 1
            if kind != LINE:
                texts[0, row] = rows[FUNCTION] - first_function if kind == INLINE else pos
                texts[1, row] = stop
            rows[kind] += 1


@cython.ccall
def nest(
    ranges: RangeColumns,
    starts: cython.ulonglong[::1],
    nodes: cython.int[::1],
    parents: cython.int[::1],
    numbers: cython.int[::1],
    order: cython.int[::1],
) -> cython.Py_ssize_t:
    """Turn nested ranges into disjoint ones, each with the innermost node; returns how many.

    The ranges ascend by begin, outer before inner; one that exceeds the one around it is cut. An owner
    becomes a node at its first range: `numbers` (filled with -1) maps owners to nodes, `order` nodes to owners,
    `parents` are the nodes around; `order[-1]` becomes the number of nodes. `starts` and `nodes` have twice the size of
    the ranges; ranges that nest deeper than MAX_NESTING are left out.
    """
    begins: cython.ulonglong[::1] = ranges.begins
    ends: cython.ulonglong[::1] = ranges.ends
    owners: cython.longlong[::1] = ranges.owners
    open_ends: cython.ulonglong[::1] = memoryview(np.zeros(MAX_NESTING, np.uint64))
    open_nodes: cython.int[::1] = memoryview(np.zeros(MAX_NESTING, np.int32))
    count: cython.Py_ssize_t = 0
    depth: cython.Py_ssize_t = 0
    made: cython.int = 0
    i: cython.Py_ssize_t
    begin: cython.ulonglong
    end: cython.ulonglong
    last: cython.Py_ssize_t = len(begins)
    above: cython.int
    with cython.nogil:
        for i in range(last + 1):
            while depth > 0 and (i == last or open_ends[depth - 1] <= begins[i]):
                depth -= 1
                above = open_nodes[depth - 1] if depth > 0 else -1
                if count > 0 and starts[count - 1] == open_ends[depth]:
                    nodes[count - 1] = above
                else:
                    starts[count] = open_ends[depth]
                    nodes[count] = above
                    count += 1
            if i == last:
                break
            begin = begins[i]
            end = ends[i]
            if depth > 0 and open_ends[depth - 1] < end:
                end = open_ends[depth - 1]
            if begin >= end or depth >= MAX_NESTING:
                continue
            if numbers[owners[i]] < 0:
                numbers[owners[i]] = made
                order[made] = cython.cast(cython.int, owners[i])
                parents[made] = open_nodes[depth - 1] if depth > 0 else -1
                made += 1
            open_ends[depth] = end
            open_nodes[depth] = numbers[owners[i]]
            depth += 1
            if count > 0 and starts[count - 1] == begin:
                nodes[count - 1] = open_nodes[depth - 1]
            else:
                starts[count] = begin
                nodes[count] = open_nodes[depth - 1]
                count += 1
        order[len(order) - 1] = made
    return count
