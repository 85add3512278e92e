include "constants.pxi"
from symbolize.core.cursor cimport Cursor
from symbolize.core.integers cimport unsigned_at
from symbolize.dwarf.abbrevs cimport AbbrevTables
from symbolize.dwarf.columns cimport Nodes, Ranges
from symbolize.dwarf.reader cimport Reader, Units, is_address_form

cdef bint is_c(int language) noexcept nogil
cdef long long read_code_die(const unsigned char[::1] data, Reader reader, AbbrevTables tables, Py_ssize_t abbreviation, long long parent, Nodes nodes, Ranges ranges) except -3 nogil
cdef int read_definition(Reader reader, AbbrevTables tables, Py_ssize_t abbreviation, unsigned long long die, Ranges found) except -1 nogil
