from symbolize.core.interning cimport Chunks, Lists


cdef class FoldedScan:
    cdef readonly Lists stacks
    cdef readonly Py_ssize_t lines
    cdef readonly Py_ssize_t skipped
    cdef readonly Py_ssize_t first_skipped
    cdef readonly Py_ssize_t fractions
    cdef unsigned long long[::1] sums
    cdef double[::1] parts
    cdef object leaf_of
    cdef object caller_of
    cdef Chunks leaves
    cdef Chunks callers
    cdef Py_ssize_t longest

    cdef int line(self, const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end) except -1
    cdef int frame(self, const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end) except -1
    cdef int count(self, Py_ssize_t stack, unsigned long long value, double part) except -1
