# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""NUL-terminated strings of a buffer, by offset."""

import cython
import numpy as np

from symbolize.core.arrays import Int64, distinct_inverse, offsets_of, views
from symbolize.core.string_array import StringArray

TOTAL_PER_BYTE = 8
MORE_TOTAL = 1 << 20
"""Bytes that distinct strings may take together, for each byte of the buffer and in addition."""


@cython.ccall
def string_lengths(  # type: ignore[no-untyped-def]
    data: cython.const[cython.uchar][::1],
    offsets: cython.const[cython.longlong][::1],
    lengths: cython.longlong[::1],
    limit: cython.longlong,
) -> cython.bint:
    """Lengths of the strings at `offsets` (ascending); one without a NUL ends where the buffer does (R75, strings
    without an end).

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


@cython.ccall
def gather(  # type: ignore[no-untyped-def]
    data: cython.const[cython.uchar][::1],
    begins: cython.const[cython.longlong][::1],
    offsets: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
):
    """Copy from each of `begins` on as many bytes to `out` as there are between two of `offsets`, where they go."""
    i: cython.Py_ssize_t
    k: cython.longlong
    shift: cython.longlong
    with cython.nogil:
        for i in range(len(begins)):
            shift = begins[i] - offsets[i]
            for k in range(offsets[i], offsets[i + 1]):
                out[k] = data[k + shift]


def sound_lengths(data, offsets, problems) -> Int64:  # type: ignore[no-untyped-def]
    """The lengths of the names in `data` at `offsets` (int64[n], ascending), 0 outside.

    What is wrong is added to the list `problems`.
    """
    lengths = np.zeros(len(offsets), np.int64)
    limit = TOTAL_PER_BYTE * len(data) + MORE_TOTAL
    if not string_lengths(*views(bytes_of(data), offsets, lengths), limit):
        problems.append("names overlap absurdly; some are missing")
    return lengths


def texts_of_lengths(data, offsets, lengths) -> StringArray:  # type: ignore[no-untyped-def]
    """The strings in `data` at `offsets` that are so long (int64[n] both)."""
    places = offsets_of(lengths)
    out = np.empty(int(places[len(lengths)]), np.uint8)
    gather(*views(bytes_of(data), offsets, places, out))
    return StringArray(out, places, np.arange(len(offsets)))


def texts_at(data, offsets, problems) -> StringArray:  # type: ignore[no-untyped-def]
    """The strings in `data` at `offsets` (int64[n]), empty where an offset is out of range.

    What is wrong is added to the list `problems`.
    """
    offsets, which = distinct_inverse(offsets)
    return texts_of_lengths(data, offsets, sound_lengths(data, offsets, problems)).only(which)


def same_texts(one, other) -> bool:  # type: ignore[no-untyped-def]
    """Whether two arrays have equal strings in the same order; not so where rows share strings that would take absurdly
    much one by one."""
    lengths = one.lengths()
    limit = TOTAL_PER_BYTE * len(one.data) + MORE_TOTAL
    if not np.array_equal(lengths, other.lengths()) or int(lengths.sum()) > limit:
        return False
    places = offsets_of(lengths)
    first, second = np.empty((2, int(places[len(lengths)])), np.uint8)
    for texts, out in ((one, first), (other, second)):
        gather(*views(texts.data, texts.offsets[texts.rows], places, out))
    return bool(np.array_equal(first, second))


def bytes_of(data):  # type: ignore[no-untyped-def]
    """A buffer as an array (uint8)."""
    return np.frombuffer(data, np.uint8)
