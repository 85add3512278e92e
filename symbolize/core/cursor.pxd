cimport cython
@cython.final
cdef class Cursor:
    cdef const unsigned char[::1] data
    cdef public Py_ssize_t pos
    cdef public Py_ssize_t end
    cdef public bint big
    cdef public bint bad

    cdef bint need(self, unsigned long long count) noexcept nogil
    cdef unsigned long long uint(self, int size) noexcept nogil
    cdef unsigned long long uleb(self) noexcept nogil
    cdef long long sleb(self) noexcept nogil
    cdef void skip(self, unsigned long long count) noexcept nogil
    cdef void skip_string(self) noexcept nogil
    cdef void seek(self, unsigned long long position) noexcept nogil
