# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""Writes LEB128 numbers (DWARF 5 §7.6) into buffers that callers made large enough, for compiled modules."""

import cython

MORE = cython.declare(cython.ulonglong, 0x80)
"""The bit of a byte that another one follows."""


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_uleb(data: cython.uchar[::1], position: cython.Py_ssize_t, value: cython.ulonglong) -> cython.Py_ssize_t:
    """Write an unsigned LEB128 number; the position behind it."""
    while value >= MORE:
        data[position] = cython.cast(cython.uchar, (value & (MORE - 1)) | MORE)
        position += 1
        value >>= 7
    data[position] = cython.cast(cython.uchar, value)
    return position + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_sleb(data: cython.uchar[::1], position: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    """Write a signed LEB128 number; the position behind it."""
    while value > 63 or value < -64:
        data[position] = cython.cast(cython.uchar, (value & (MORE - 1)) | MORE)
        position += 1
        value >>= 7
    data[position] = cython.cast(cython.uchar, value & (MORE - 1))
    return position + 1
