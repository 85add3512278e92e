include "constants.pxi"
from symbolize.dwarf.abbrevs cimport AbbrevTables
from symbolize.core.cursor cimport Cursor
from symbolize.dwarf.columns cimport Ranges
from symbolize.dwarf.reader cimport Reader, Units, is_address_form

cdef bint read_root(Reader reader, Units units, Py_ssize_t unit, Cursor abbreviation, unsigned long long position, bint bases, unsigned long long[::1] ranges) noexcept nogil
