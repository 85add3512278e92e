include "../../core/protobuf.pxi"
include "../../proto/profile_tags.pxi"
from symbolize.core.cursor cimport Cursor
from symbolize.core.interning cimport InternTable
from symbolize.formats.pprof.columns cimport (
    PprofFunctions,
    PprofLabels,
    PprofLines,
    PprofLocations,
    PprofMappings,
    PprofSamples,
)
from symbolize.formats.pprof.scan cimport PprofScan, check, fail, find


cdef class Unknown:
    cdef unsigned char[::1] tables
    cdef int[::1] rows
    cdef long long[::1] ends
    cdef unsigned char[::1] raw
    cdef public Py_ssize_t count
    cdef Py_ssize_t size


cdef void keep(Unknown unknown, Cursor c, int table, Py_ssize_t row, Py_ssize_t start) noexcept nogil
cdef void fill_value_type(PprofScan scan, Cursor c, const int[::1] strings, int[::1] types, int[::1] units, Py_ssize_t row) noexcept nogil
cdef Py_ssize_t fill_comments(PprofScan scan, Cursor c, const int[::1] strings, int[::1] comments, Py_ssize_t row) noexcept nogil
cdef int string(PprofScan scan, Cursor c, const int[::1] strings) noexcept nogil
cdef bint fill_line(PprofScan scan, Cursor c, InternTable functions, PprofLines lines, Py_ssize_t row) noexcept nogil
cdef void fill_label(PprofScan scan, Cursor c, const int[::1] strings, PprofLabels labels, Py_ssize_t row) noexcept nogil
cdef Py_ssize_t fill_stack(PprofScan scan, Cursor c, InternTable locations, int[::1] stack, Py_ssize_t at) noexcept nogil
cdef Py_ssize_t fill_values(PprofScan scan, Cursor c, long long[::1] values, Py_ssize_t at, Py_ssize_t limit) noexcept nogil
