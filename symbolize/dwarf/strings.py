# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""NUL-terminated strings of a section by offset."""

import cython
import numpy as np

from symbolize.arrays import distinct_inverse

TOTAL_PER_BYTE = 8
MORE_TOTAL = 1 << 20
"""Bytes that distinct strings may take together, for each byte of their section and in addition."""


@cython.ccall
def string_lengths(  # type: ignore[no-untyped-def]
    data: cython.const[cython.uchar][::1],
    offsets: cython.const[cython.longlong][::1],
    lengths: cython.longlong[::1],
    limit: cython.longlong,
) -> cython.bint:
    """Lengths of the strings at `offsets` (ascending); a missing NUL clamps to the end of the section (rule R75).

    Strings that overlap could add up to any size: what goes beyond `limit` comes out empty. Whether nothing did.
    """
    i: cython.Py_ssize_t
    position: cython.Py_ssize_t
    nul: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = len(data)
    sound: cython.bint = True
    with cython.nogil:
        for i in range(len(offsets)):
            position = offsets[i]
            lengths[i] = 0
            if position < 0 or position >= end:
                continue
            if position > nul:
                nul = position
            while nul < end and data[nul] != 0:
                nul += 1
            if nul - position > limit:
                sound = False
                continue
            lengths[i] = nul - position
            limit -= lengths[i]
    return sound


def strings_at(data, offsets, problems) -> list[bytes]:  # type: ignore[no-untyped-def]
    """The strings of section `data` at `offsets` (int64[n]), empty where an offset lies outside.

    What is wrong is added to the list `problems`.
    """
    offsets, which = distinct_inverse(offsets)
    lengths = np.zeros(len(offsets), np.int64)
    limit = TOTAL_PER_BYTE * len(data) + MORE_TOTAL
    if not string_lengths(data, memoryview(offsets), memoryview(lengths), limit):
        problems.append("names overlap absurdly; some are missing")
    view = memoryview(data)
    texts = [bytes(view[place : place + size]) for place, size in zip(offsets.tolist(), lengths.tolist(), strict=True)]
    return [texts[i] for i in which.tolist()]
