include "../../core/protobuf.pxi"
include "../../proto/profile_tags.pxi"
from symbolize.core.cursor cimport Cursor


cdef class PprofScan:
    cdef Cursor c
    cdef Py_ssize_t size
    cdef Py_ssize_t next
    cdef unsigned long long time
    cdef public int problem
    cdef public Py_ssize_t at
    cdef public Py_ssize_t samples
    cdef public Py_ssize_t stack
    cdef public Py_ssize_t values
    cdef public Py_ssize_t labels
    cdef public Py_ssize_t locations
    cdef public Py_ssize_t lines
    cdef public Py_ssize_t functions
    cdef public Py_ssize_t strings
    cdef public Py_ssize_t sample_types
    cdef public Py_ssize_t mappings
    cdef public Py_ssize_t comments
    cdef public Py_ssize_t top_bytes
    cdef public Py_ssize_t unknown_rows
    cdef public Py_ssize_t unknown_bytes
    cdef public Py_ssize_t lines_dropped
    cdef public Py_ssize_t mappings_dropped
    cdef public Py_ssize_t fields_dropped
    cdef public Py_ssize_t other_types


cdef void walk(Cursor c) noexcept nogil
cdef void fail(PprofScan scan, Cursor c, int problem, Py_ssize_t at) noexcept nogil
cdef void count_sample(PprofScan scan, Cursor c) noexcept nogil
cdef void count_location(PprofScan scan, Cursor c) noexcept nogil
cdef void count_row(PprofScan scan, Cursor c, unsigned long long last) noexcept nogil
cdef Py_ssize_t pass_over(PprofScan scan, Cursor c, unsigned long long tag, Py_ssize_t start, bint fits, unsigned long long last) noexcept nogil
cdef void note_unknown(PprofScan scan, Py_ssize_t size) noexcept nogil
cdef void check(PprofScan scan, Cursor c) noexcept nogil
cdef bint has_shape(Cursor c, unsigned long long message) noexcept nogil
cdef bint find(PprofScan scan, Cursor c, unsigned long long tag) noexcept nogil
