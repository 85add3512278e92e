# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""Where records begin, in a stream of them."""

import cython

if not cython.compiled:
    from symbolize.load.perf.numbers import *


def ordinary_end(
    data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t, is_big: cython.bint
) -> int:
    """Where the whole records from `at` on end, the last before `end`: at one that `data` does not have all of, at one
    behind which there are more bytes than its size says, or at what is no record."""
    kind: cython.uint
    size: cython.Py_ssize_t
    end = min(end, data.shape[0])
    if at < 0:
        return 0
    with cython.nogil:
        while end - at >= RECORD_HEADER:
            if is_big:
                kind = data[at] << 24 | data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3]
                size = data[at + 6] << 8 | data[at + 7]
            else:
                kind = data[at + 3] << 24 | data[at + 2] << 16 | data[at + 1] << 8 | data[at]
                size = data[at + 7] << 8 | data[at + 6]
            if size < RECORD_HEADER or size > end - at:
                break
            if kind in (COMPRESSED, COMPRESSED2, TRACING_DATA, AUXTRACE):
                break
            at += size
    return at
