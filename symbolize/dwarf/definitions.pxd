include "constants.pxi"
from symbolize.core.cursor cimport Cursor
from symbolize.dwarf.abbrevs cimport AbbrevTables
from symbolize.dwarf.columns cimport Ranges
from symbolize.dwarf.reader cimport Reader, is_address_form
