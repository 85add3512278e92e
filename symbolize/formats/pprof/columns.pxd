cdef class PprofMappings:
    cdef unsigned long long[:, ::1] numbers
    cdef int[:, ::1] texts
    cdef unsigned char[:, ::1] flags


cdef class PprofFunctions:
    cdef int[::1] names
    cdef int[::1] system_names
    cdef int[::1] filenames
    cdef long long[::1] start_lines


cdef class PprofLines:
    cdef int[::1] functions
    cdef long long[::1] lines
    cdef long long[::1] columns


cdef class PprofLocations:
    cdef unsigned long long[::1] addresses
    cdef int[::1] mappings
    cdef unsigned char[::1] folded
    cdef long long[::1] offsets
    cdef PprofLines lines


cdef class PprofLabels:
    cdef int[::1] keys
    cdef int[::1] texts
    cdef long long[::1] numbers
    cdef int[::1] units


cdef class PprofSamples:
    cdef long long[::1] offsets
    cdef int[::1] stack
    cdef long long[::1] values
    cdef Py_ssize_t width
    cdef long long[::1] label_offsets
    cdef PprofLabels labels
