include "protobuf.pxi"
cimport cython
from symbolize.core.integers cimport unsigned_at

cdef class Cursor:
    cdef const unsigned char[::1] data
    cdef public Py_ssize_t pos
    cdef public Py_ssize_t end
    cdef public bint big
    cdef public bint bad

    @cython.final
    cdef bint need(self, unsigned long long count) noexcept nogil
    @cython.final
    cdef unsigned long long uint(self, int size) noexcept nogil
    @cython.final
    cdef unsigned long long uleb(self) noexcept nogil
    @cython.final
    cdef long long sleb(self) noexcept nogil
    @cython.final
    cdef void skip(self, unsigned long long count) noexcept nogil
    @cython.final
    cdef void skip_string(self) noexcept nogil
    @cython.final
    cdef void seek(self, unsigned long long position) noexcept nogil
    @cython.final
    cdef unsigned long long varint(self) noexcept nogil
    @cython.final
    cdef long long int64(self) noexcept nogil
    @cython.final
    cdef unsigned long long read_tag(self) noexcept nogil
    @cython.final
    cdef void skip_field(self, unsigned long long tag) noexcept nogil
    @cython.final
    cdef Py_ssize_t count_packed(self) noexcept nogil
    @cython.final
    cdef Py_ssize_t enter(self) noexcept nogil
    @cython.final
    cdef void leave(self, Py_ssize_t outer) noexcept nogil
