from symbolize.core.interning cimport HashedRows, hash_of, is_same


cdef class StringTable(HashedRows):
    cdef Py_ssize_t size
    cdef unsigned char[::1] data
    cdef long long[::1] offset

    cdef Py_ssize_t number(self, const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end) except -1 nogil
    cdef Py_ssize_t slot(self, const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end, unsigned long long hashed) noexcept nogil
    cdef int reserve(self, Py_ssize_t size, Py_ssize_t count) except -1 with gil
