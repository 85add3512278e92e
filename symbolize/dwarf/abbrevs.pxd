include "constants.pxi"
cimport cython
from symbolize.core.cursor cimport Cursor

@cython.final
cdef class AbbrevTables:
    cdef const unsigned char[::1] data
    cdef long long[::1] offsets
    cdef long long[::1] address_sizes
    cdef long long[::1] offset_sizes
    cdef long long[::1] versions
    cdef object lock
    cdef bint has_discriminators
    cdef Py_ssize_t abbreviations
    cdef Py_ssize_t attributes
    cdef Py_ssize_t operations
    cdef Py_ssize_t max_abbreviations
    cdef Py_ssize_t max_attributes
    cdef public unsigned char[::1] ready
    cdef public unsigned char[::1] dense
    cdef public unsigned char[::1] has_code
    cdef public long long[::1] first
    cdef public long long[::1] last
    cdef public int[::1] codes
    cdef public int[::1] order
    cdef public unsigned short[::1] tag
    cdef public unsigned int[::1] step
    cdef public int[::1] sibling_at
    cdef public int[::1] op_first
    cdef public int[::1] ops
    cdef public int[::1] attribute_first
    cdef public unsigned short[::1] attribute_name
    cdef public unsigned short[::1] attribute_form
    cdef public unsigned short[::1] attribute_read
    cdef public long long[::1] attribute_constant
    cdef Py_ssize_t find(self, Py_ssize_t table, unsigned long long code) noexcept nogil
    cdef int need(self, Py_ssize_t table) except -1 nogil

cpdef fill_tables(AbbrevTables tables, const long long[::1] selected)
cdef int read_operation(unsigned long long name, unsigned long long form, int skipped, bint has_discriminators) noexcept nogil
cdef int skip_operation(unsigned long long form, int address_size, int offset_size, int version) noexcept nogil

cdef long long find_abbreviation(const unsigned char[::1] data, Cursor c, unsigned long long wanted) noexcept nogil
