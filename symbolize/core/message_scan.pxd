include "protobuf.pxi"
from symbolize.core.cursor cimport Cursor


cdef int form_of(const unsigned char[::1] forms, const unsigned char[::1] wires, unsigned long long tag) noexcept nogil
cdef Py_ssize_t count_list(Cursor c, int wire) noexcept nogil
cdef unsigned long long item(Cursor c, int wire) noexcept nogil
cdef Py_ssize_t fill_list(Cursor c, unsigned long long tag, int wire, unsigned long long[::1] items, Py_ssize_t at) noexcept nogil
