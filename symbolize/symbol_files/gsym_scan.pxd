from symbolize.core.cursor cimport Cursor

cdef class GsymScan:
    cdef Cursor c
    cdef int name_size
    cdef long long budget
    cdef public unsigned long long[::1] sizes
    cdef public unsigned long long[::1] names
    cdef public unsigned char[::1] bad
    cdef public unsigned long long[:, ::1] lines
    cdef public unsigned long long[:, ::1] calls
    cdef public unsigned long long[:, ::1] ranges
    cdef public unsigned long long[:, ::1] merged
    cdef public Py_ssize_t line_count
    cdef public Py_ssize_t call_count
    cdef public Py_ssize_t range_count
    cdef public Py_ssize_t merged_count
    cdef unsigned long long[::1] bases

    cdef void record(self, Py_ssize_t i, unsigned long long begin, unsigned long long end) noexcept nogil
    cdef void line_table(self, Py_ssize_t i, unsigned long long begin, unsigned long long end) noexcept nogil
    cdef bint inlined(self, Py_ssize_t i, unsigned long long begin) noexcept nogil
    cdef void merged_names(self, Py_ssize_t i) noexcept nogil
