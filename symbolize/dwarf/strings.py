# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""NUL-terminated strings of a section by offset."""

import cython
import numpy as np

MAX_TOTAL = cython.declare(cython.Py_ssize_t, 1 << 29)


@cython.ccall
def string_lengths(  # type: ignore[no-untyped-def]
    data: cython.const[cython.uchar][::1],
    offsets: cython.const[cython.longlong][::1],
    lengths: cython.longlong[::1],
):
    """Lengths of the strings at `offsets`; a missing NUL clamps to the end of the section (rule R75).

    Strings that overlap could add up to any size: beyond MAX_TOTAL bytes they come out empty.
    """
    total: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    position: cython.Py_ssize_t
    end: cython.Py_ssize_t = len(data)
    with cython.nogil:
        for i in range(len(offsets)):
            position = offsets[i]
            if position < 0 or position > end:
                position = end
            while position < end and data[position] != 0:
                position += 1
            lengths[i] = position - offsets[i] if position > offsets[i] else 0
            total += lengths[i]
            if total > MAX_TOTAL:
                lengths[i] = 0


def strings_at(data, offsets) -> list[bytes]:  # type: ignore[no-untyped-def]
    """The strings of section `data` at `offsets` (int64[n]), empty where an offset lies outside."""
    lengths = np.zeros(len(offsets), np.int64)
    string_lengths(data, memoryview(offsets), memoryview(lengths))
    view = memoryview(data)
    return [
        bytes(view[offset : offset + length]) for offset, length in zip(offsets.tolist(), lengths.tolist(), strict=True)
    ]
