include "constants.pxi"
from symbolize.core.cursor cimport Cursor
from symbolize.dwarf.abbrevs cimport AbbrevTables
from symbolize.dwarf.reader cimport Reader, Units

cdef class Resolved:
    cdef public unsigned long long[::1] linkage
    cdef public unsigned long long[::1] name
    cdef public unsigned int[::1] decl_file
    cdef public unsigned int[::1] decl_line
    cdef public long long[::1] decl_unit
    cdef public long long[::1] unit
    cdef public unsigned long long[::1] target
    cdef public unsigned short[::1] tag
    cdef public unsigned long long[::1] onward
    cdef public unsigned long long[::1] signature

cdef class Ancestors:
    cdef public unsigned long long[::1] die
    cdef public long long[::1] target
    cdef public Py_ssize_t count
    cdef Py_ssize_t limit
    cdef public bint cut_off
    cdef Py_ssize_t capacity
    cdef int append(self, unsigned long long die, long long target) except -1 nogil
    cpdef grow(self)

cdef unsigned long long sibling(Reader reader, Py_ssize_t abbreviation) noexcept nogil
