cdef class RowColumns:
    cdef long long[::1] numbers
    cdef long long[::1] ends
    cdef long long[::1] lines
    cdef unsigned long long[::1] addresses
    cdef unsigned char[::1] is_cut
