include "constants.pxi"
cimport cython
from symbolize.core.cursor cimport Cursor
from symbolize.core.integers cimport unsigned_at
from symbolize.dwarf.abbrevs cimport AbbrevTables
from symbolize.dwarf.die_walk cimport is_c
from symbolize.dwarf.reader cimport Reader

@cython.final
cdef class CallColumns:
    cdef public unsigned long long[::1] return_pc
    cdef public unsigned long long[::1] pc
    cdef public unsigned long long[::1] origin
    cdef public unsigned long long[::1] declared
    cdef public long long[::1] owner
    cdef public unsigned char[::1] flags
    cdef public Py_ssize_t count
    cdef Py_ssize_t capacity
    cdef Py_ssize_t add(self) except -1 nogil
    cpdef grow(self)

cdef int read_call_site(Reader reader, AbbrevTables tables, Py_ssize_t abbreviation, long long owner, CallColumns found) except -1 nogil
cdef long long read_caller(Reader reader, AbbrevTables tables, Py_ssize_t abbreviation, unsigned long long die, CallColumns found) except -2 nogil
cpdef find_call_sites(Reader reader, Py_ssize_t unit, CallColumns found, long long[::1] stack)
