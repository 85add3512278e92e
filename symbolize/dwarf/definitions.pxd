include "constants.pxi"
from symbolize.core.cursor cimport Cursor
from symbolize.dwarf.abbrevs cimport AbbrevTables
from symbolize.dwarf.columns cimport Ranges
from symbolize.dwarf.reader cimport Reader, is_address_form

cdef int read_definition(Reader reader, AbbrevTables tables, Py_ssize_t abbreviation, unsigned long long die, Ranges found) except -1 nogil
