include "constants.pxi"
cimport cython
from symbolize.core.cursor cimport Cursor
from symbolize.dwarf.reader cimport Reader

@cython.final
cdef class LineTables:
    cdef public unsigned long long[::1] address
    cdef public unsigned int[::1] file
    cdef public unsigned int[::1] line
    cdef public unsigned int[::1] column
    cdef public Py_ssize_t row_count
    cdef Py_ssize_t row_capacity
    cdef public long long emitted
    cdef bint has_discriminators

    cdef public unsigned long long[::1] begin
    cdef public unsigned long long[::1] end
    cdef public long long[::1] first_row
    cdef public long long[::1] last_row
    cdef public long long[::1] program
    cdef public unsigned char[::1] unsorted
    cdef public Py_ssize_t sequence_count
    cdef Py_ssize_t sequence_capacity

    cdef public unsigned long long[::1] name
    cdef public unsigned int[::1] directory
    cdef public Py_ssize_t entry_count
    cdef Py_ssize_t entry_capacity

    cdef public unsigned long long version
    cdef public unsigned long long length
    cdef public Py_ssize_t directory_count
    cdef public Py_ssize_t file_count
    cdef Py_ssize_t opcodes
    cdef int offset_size
    cdef unsigned long long min_inst_length
    cdef unsigned long long max_ops
    cdef int opcode_base
    cdef unsigned long long[::1] formats
    cdef unsigned long long[::1] operands
    cdef unsigned long long[::1] advances
    cdef unsigned long long[::1] line_advances

    cdef int add_sequence(self, Py_ssize_t first_row, unsigned long long end, long long program, int unsorted) except -1 nogil
    cdef int add_entry(self, unsigned long long name, unsigned int directory) except -1 nogil
    cpdef grow_rows(self)
    cpdef grow_sequences(self)
    cpdef grow_entries(self)

cdef unsigned long long entry_value(Cursor c, unsigned long long form, int offset_size, Reader reader) noexcept nogil
cdef int read_entries(Cursor c, Reader reader, LineTables tables) except -1 nogil
cdef int read_string_tables(Cursor c, LineTables tables) except -1 nogil
cdef bint read_header(Cursor c, LineTables tables) noexcept nogil
