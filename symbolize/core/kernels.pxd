cdef Py_ssize_t first_from(const unsigned long long[::1] values, Py_ssize_t guess, unsigned long long least) noexcept nogil


cdef class RangeColumns:
    cdef unsigned long long[::1] begins
    cdef unsigned long long[::1] ends
    cdef long long[::1] owners


cdef class CoverColumns:
    cdef const unsigned long long[::1] begins
    cdef const unsigned long long[::1] ends
    cdef const long long[::1] first


cdef class PieceColumns:
    cdef long long[::1] sources
    cdef unsigned long long[::1] begins
    cdef unsigned long long[::1] ends
    cdef unsigned char[::1] inside
