# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type, index", no-warn-unused-ignores
"""Numbers for equal rows, counted from 0 in the order of their first occurrence, and sums by such numbers."""

import cython
import numpy as np

from symbolize.core.arrays import Bool, Int32
from symbolize.core.interning import random_mixer

if not cython.compiled:
    from symbolize.core.interning import Lists, Tuples

LARGEST = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
SMALLEST = cython.declare(cython.longlong, -LARGEST - 1)


@cython.ccall
def number_tuples(rows: cython.const[cython.ulonglong][:, ::1]) -> Int32:
    """The number of each row of a table: int32[n]."""
    tuples: Tuples = Tuples(rows.shape[1], random_mixer())
    numbers = np.empty(rows.shape[0], np.int32)
    out: cython.int[::1] = memoryview(numbers)
    i: cython.Py_ssize_t
    column: cython.Py_ssize_t
    with cython.nogil:
        for i in range(rows.shape[0]):
            for column in range(rows.shape[1]):
                tuples.key[column] = rows[i, column]
            out[i] = cython.cast(cython.int, tuples.add())
    return numbers


@cython.ccall
def number_lists(offsets: cython.const[cython.longlong][::1], items: cython.const[cython.int][::1]) -> Int32:
    """The number of each list of a CSR table: int32[n]."""
    lists: Lists = Lists(random_mixer())
    numbers = np.empty(offsets.shape[0] - 1, np.int32)
    out: cython.int[::1] = memoryview(numbers)
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    with cython.nogil:
        for i in range(out.shape[0]):
            lists.size = 0
            for j in range(offsets[i], offsets[i + 1]):
                lists.append(items[j])
            out[i] = cython.cast(cython.int, lists.add())
    return numbers


@cython.ccall
def add_up(
    values: cython.const[cython.longlong][:, ::1], numbers: cython.const[cython.int][::1], sums: cython.longlong[:, ::1]
) -> cython.Py_ssize_t:
    """Add each row of `values` to the row of `sums` that has its number; how many sums exceeded 64 bits, which become
    the largest or smallest number instead."""
    i: cython.Py_ssize_t
    column: cython.Py_ssize_t
    known: cython.longlong
    value: cython.longlong
    exceeded: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(values.shape[0]):
            for column in range(values.shape[1]):
                known, value = sums[numbers[i], column], values[i, column]
                if value > 0 and known > LARGEST - value:
                    exceeded += 1
                    known, value = LARGEST, 0
                elif value < 0 and known < SMALLEST - value:
                    exceeded += 1
                    known, value = SMALLEST, 0
                sums[numbers[i], column] = known + value
    return exceeded


def first_of_numbers(numbers: Int32) -> Bool:
    """Which rows are the first with their number: bool[n]."""
    return np.diff(np.maximum.accumulate(numbers), prepend=np.int32(-1)) > 0
