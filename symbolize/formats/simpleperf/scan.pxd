include "../../core/protobuf.pxi"
include "../../proto/report_sample_tags.pxi"
include "numbers.pxi"
from symbolize.core.cursor cimport Cursor
from symbolize.core.interning cimport Chunks, Lists, Tuples


cdef class SimpleperfScan:
    cdef readonly Tuples frames
    cdef readonly Lists stacks
    cdef Tuples rows
    cdef bint keeps_order
    cdef public Py_ssize_t pos
    cdef public int kind
    cdef public Py_ssize_t begin
    cdef public Py_ssize_t end
    cdef public Py_ssize_t left_out
    cdef public Py_ssize_t samples
    cdef public Py_ssize_t failed
    cdef public unsigned long long total
    cdef public bint overflow
    cdef public unsigned long long first_time
    cdef public unsigned long long last_time
    cdef Py_ssize_t span_begin
    cdef Py_ssize_t span_end
    cdef Chunks chains

cdef void skip_unknown(Cursor c, unsigned long long tag, unsigned long long last) noexcept nogil
cdef int open_record(SimpleperfScan s, Cursor c) noexcept nogil
cdef int read_frame(SimpleperfScan s, Cursor c) except -1 nogil
cdef int read_error(Cursor c) noexcept nogil
cdef Py_ssize_t row_of(SimpleperfScan s, unsigned long long what, unsigned long long kind) except -1 nogil
cdef Py_ssize_t read_stack(SimpleperfScan s, Cursor c) except -1 nogil
cdef int read_sample(SimpleperfScan s, Cursor c) except -1 nogil
cdef int read_switch(SimpleperfScan s, Cursor c) except -1 nogil
