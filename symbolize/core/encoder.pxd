include "protobuf.pxi"
cimport cython
from symbolize.core.interning cimport Lists
from symbolize.core.message_scan cimport MessageColumns


@cython.final
cdef class Encoder:
    cdef unsigned char[::1] out
    cdef readonly Py_ssize_t pos

    cdef void varint(self, unsigned long long value) noexcept nogil
    cdef void int64(self, long long value) noexcept nogil
    cdef void number(self, unsigned long long tag, unsigned long long value) noexcept nogil
    cdef void signed(self, unsigned long long tag, long long value) noexcept nogil
    cdef void raw(self, const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
    cdef void close(self, unsigned long long tag, Py_ssize_t end) noexcept nogil


cdef class MessageForm:
    cdef unsigned long long tag
    cdef const unsigned char[::1] forms
    cdef const unsigned long long[::1] tags
