include "constants.pxi"
cimport cython
from symbolize.core.cursor cimport Cursor
from symbolize.dwarf.abbrevs cimport AbbrevTables, skip_operation

@cython.final
cdef class Units:
    cdef public unsigned long long[::1] offset
    cdef public unsigned long long[::1] end
    cdef public unsigned long long[::1] first_die
    cdef public unsigned long long[::1] abbrev_offset
    cdef public long long[::1] table
    cdef public unsigned char[::1] version
    cdef public unsigned char[::1] address_size
    cdef public unsigned char[::1] offset_size
    cdef public unsigned char[::1] kind
    cdef public unsigned short[::1] language
    cdef public unsigned char[::1] bad
    cdef public unsigned char[::1] corrupt
    cdef public unsigned long long[::1] name
    cdef public unsigned long long[::1] comp_dir
    cdef public unsigned long long[::1] line_program
    cdef public unsigned long long[::1] low_pc
    cdef public unsigned long long[::1] str_offsets_base
    cdef public unsigned long long[::1] addr_base
    cdef public unsigned long long[::1] rnglists_base
    cdef public unsigned long long[::1] ranges_base
    cdef public unsigned long long[::1] list_base
    cdef public unsigned long long[::1] signature
    cdef public unsigned long long[::1] type_die
    cdef public unsigned long long[::1] dwo_name

@cython.final
cdef class Reader:
    cdef public Cursor info
    cdef public Cursor addr
    cdef public Cursor str_offsets
    cdef public Cursor ranges
    cdef public Cursor rnglists
    cdef public Units units
    cdef public AbbrevTables tables
    cdef Py_ssize_t unit
    cdef Py_ssize_t table
    cdef int version
    cdef int address_size
    cdef int offset_size
    cdef unsigned long long unit_offset
    cdef unsigned long long low_pc
    cdef unsigned long long list_base
    cdef unsigned long long max_address
    cdef unsigned long long ranges_base
    cdef public Py_ssize_t ranges_left
    cdef public unsigned long long range_begin
    cdef public unsigned long long range_end

    cdef int enter(self, Py_ssize_t unit) except -1 nogil
    cdef Py_ssize_t enter_die(self, Py_ssize_t unit, unsigned long long offset) except -2 nogil
    cdef void set_unit(self, Py_ssize_t unit) noexcept nogil
    cdef Py_ssize_t unit_at(self, unsigned long long offset) noexcept nogil
    cdef unsigned long long value(self, int form, long long constant) noexcept nogil
    cdef unsigned long long indexed_string(self, unsigned long long index) noexcept nogil
    cdef unsigned long long indexed_address(self, unsigned long long index) noexcept nogil
    cdef unsigned long long range_list(self, int form, unsigned long long value) noexcept nogil
    cdef void skip_operation_of(self, int form) noexcept nogil
    cdef void skip_attributes(self, Py_ssize_t abbreviation) noexcept nogil
    cdef void skip_operations(self, int first, int last) noexcept nogil
    cdef void start_ranges(self, unsigned long long position) noexcept nogil
    cpdef refill(self)
    cdef bint may_read_range(self) noexcept nogil
    cdef bint next_range(self) noexcept nogil
    cdef bint next_range_4(self) noexcept nogil
    cdef bint next_range_5(self) noexcept nogil

cdef unsigned long long bounded(unsigned long long offset) noexcept nogil

cdef bint is_address_form(int form) noexcept nogil
