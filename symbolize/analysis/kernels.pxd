from symbolize.core.interning cimport Lists, Tuples


cdef class StackColumns:
    cdef const long long[::1] location_offsets
    cdef const int[::1] locations
    cdef const long long[::1] frame_offsets
    cdef const int[::1] keys
