include "../core/protobuf.pxi"
include "../proto/profile_tags.pxi"
from symbolize.core.encoder cimport Encoder


cdef class Extra:
    cdef const long long[::1] offsets
    cdef const unsigned char[::1] raw
    cdef Py_ssize_t size(self, Py_ssize_t first, Py_ssize_t last) noexcept
    cdef void put(self, Encoder out, Py_ssize_t row) noexcept nogil


cdef class Samples:
    cdef const long long[::1] offsets
    cdef const int[::1] stack
    cdef Py_ssize_t id_size
    cdef const long long[::1] values
    cdef Py_ssize_t width
    cdef const long long[::1] label_offsets
    cdef const int[::1] keys
    cdef const int[::1] texts
    cdef const long long[::1] numbers
    cdef const int[::1] units
    cdef Extra extra


cdef class Locations:
    cdef const unsigned long long[::1] addresses
    cdef const int[::1] mappings
    cdef const unsigned char[::1] folded
    cdef const long long[::1] offsets
    cdef const int[::1] functions
    cdef const long long[::1] lines
    cdef const long long[::1] columns
    cdef Extra extra


cdef class Mappings:
    cdef const unsigned long long[:, ::1] numbers
    cdef const int[:, ::1] texts
    cdef const unsigned char[:, ::1] flags
    cdef Extra extra


cdef class Functions:
    cdef const int[::1] names
    cdef const int[::1] system_names
    cdef const int[::1] filenames
    cdef const long long[::1] start_lines
    cdef Extra extra
