include "constants.pxi"
from symbolize.core.cursor cimport Cursor
from symbolize.dwarf.abbrevs cimport AbbrevTables
from symbolize.dwarf.columns cimport Nodes, Ranges
from symbolize.dwarf.reader cimport Reader, Units, is_address_form
