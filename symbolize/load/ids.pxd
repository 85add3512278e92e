cdef class Ids:
    cdef unsigned long long dense
    cdef unsigned long long[::1] keys
    cdef int[::1] rows
    cdef unsigned long long mixer
    cdef int shift


cdef Py_ssize_t slot(Ids ids, unsigned long long value) noexcept nogil
cdef int row_of(Ids ids, unsigned long long value) noexcept nogil
