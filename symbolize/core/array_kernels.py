# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="untyped-decorator, valid-type"
"""The compiled loops under `arrays`."""

import cython


@cython.ccall
def mark(  # type: ignore[no-untyped-def]
    rows: cython.const[cython.int][::1], found: cython.uchar[::1]
):
    """Set `found` at each of `rows`."""
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(rows)):
            found[rows[i]] = 1


@cython.ccall
def mark_chosen(  # type: ignore[no-untyped-def]
    rows: cython.const[cython.int][::1], chosen: cython.const[cython.uchar][::1], found: cython.uchar[::1]
):
    """Set `found` at those of `rows` that are `chosen`."""
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(rows)):
            if chosen[i]:
                found[rows[i]] = 1
