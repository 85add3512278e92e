# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""Where records begin, in a stream of them."""

import cython

if not cython.compiled:
    from symbolize.core.integers import unsigned_at
    from symbolize.formats.perf.numbers import *


def ordinary_end(
    data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t, is_big: cython.bint
) -> int:
    """Where the whole records from `at` on end, the last before `end`: at one that `data` does not have all of, at one
    behind which there are more bytes than its size says, or at what is no record."""
    kind: cython.uint
    size: cython.Py_ssize_t
    end = min(end, len(data))
    if at < 0:
        return 0
    with cython.nogil:
        while end - at >= RECORD_HEADER:
            kind = unsigned_at(data, at, 4, is_big)
            size = unsigned_at(data, at + 6, 2, is_big)
            if size < RECORD_HEADER or size > end - at:
                break
            if kind in (COMPRESSED, COMPRESSED2, TRACING_DATA, AUXTRACE):
                break
            at += size
    return at
