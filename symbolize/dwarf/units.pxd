include "constants.pxi"
from symbolize.dwarf.abbrevs cimport AbbrevTables
from symbolize.core.cursor cimport Cursor
from symbolize.dwarf.columns cimport Ranges
from symbolize.dwarf.reader cimport Reader, Units, is_address_form
