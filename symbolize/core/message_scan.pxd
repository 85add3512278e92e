include "protobuf.pxi"
from symbolize.core.cursor cimport Cursor
cimport cython


@cython.final
cdef class MessageFields:
    cdef const unsigned char[::1] forms
    cdef const unsigned char[::1] wires
    cdef const unsigned char[::1] slots

    cdef int form(self, unsigned long long tag) noexcept nogil


cdef class MessageColumns:
    cdef unsigned long long[:, ::1] numbers
    cdef long long[:, ::1] offsets
    cdef unsigned long long[::1] items


cdef Py_ssize_t count_list(Cursor c, int wire) noexcept nogil
cdef unsigned long long item(Cursor c, int wire) noexcept nogil
