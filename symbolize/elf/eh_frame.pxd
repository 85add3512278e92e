from symbolize.core.cursor cimport Cursor

cdef class FrameReader:
    cdef Cursor c
    cdef unsigned long long base
    cdef int address_size
    cdef Py_ssize_t cie
    cdef int encoding

    cdef bint enter(self, Py_ssize_t position) noexcept nogil
    cdef unsigned long long pointer(self, int encoding) noexcept nogil
