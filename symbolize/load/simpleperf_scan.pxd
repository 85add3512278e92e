from symbolize.cursor cimport Cursor
from symbolize.load.pprof_scan cimport enter, leave, skip, varint


cdef class Scan:
    cdef unsigned long long mixer
    cdef public bint keeps_order
    cdef public Py_ssize_t pos
    cdef public int kind
    cdef public Py_ssize_t begin
    cdef public Py_ssize_t end
    cdef public Py_ssize_t frames_wanted
    cdef public Py_ssize_t left_out
    cdef public Py_ssize_t samples
    cdef public Py_ssize_t failed
    cdef public unsigned long long total
    cdef public bint overflow
    cdef public unsigned long long first_time
    cdef public unsigned long long last_time
    cdef Py_ssize_t span_begin
    cdef Py_ssize_t span_end
    # the sample at hand
    cdef unsigned long long time
    cdef unsigned int thread
    cdef unsigned int event
    cdef unsigned long long value
    cdef int error
    cdef bint unwinding_failed
    cdef Py_ssize_t chain_begin
    cdef Py_ssize_t chain_end
    cdef bint in_one_piece
    cdef Py_ssize_t chain_slot
    # encoded stacks
    cdef unsigned char[::1] chain_bytes
    cdef long long[:, ::1] chain_table
    cdef Py_ssize_t chain_used
    cdef long long chain_hash
    cdef Py_ssize_t chains
    # frames
    cdef public object frame_columns
    cdef unsigned long long[::1] vaddr
    cdef unsigned int[::1] file
    cdef int[::1] symbol
    cdef unsigned char[::1] execution
    cdef int[::1] frame_slots
    cdef public Py_ssize_t frames
    # stacks
    cdef public object stack_columns
    cdef long long[::1] stack_ends
    cdef int[::1] stack_slots
    cdef public Py_ssize_t stacks
    cdef public object items_column
    cdef int[::1] items
    # rows
    cdef public object row_columns
    cdef long long[:, ::1] row_table
    cdef unsigned long long[::1] row_time
    cdef int[::1] row_slots
    cdef public Py_ssize_t rows


cdef unsigned long long frame_hash(Scan s, unsigned long long vaddr, unsigned int file, int symbol, int execution) noexcept nogil
cdef unsigned long long stack_hash(Scan s, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
cdef unsigned long long row_hash(Scan s, long long what, long long kind) noexcept nogil
cdef int intern_frame(Scan s, unsigned long long vaddr, unsigned int file, int symbol, int execution) noexcept nogil
cdef int intern_stack(Scan s, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
cdef Py_ssize_t row_for(Scan s, long long what, long long kind) noexcept nogil
cdef Py_ssize_t new_row(Scan s, long long what, long long kind) noexcept nogil
cdef void skip_unknown(Cursor c, unsigned long long tag, unsigned long long last) noexcept nogil
cdef int open_record(Scan s, Cursor c) noexcept nogil
cdef Py_ssize_t count_frames(Cursor c) noexcept nogil
cdef void outline(Scan s, Cursor c) noexcept nogil
cdef int known_chain(Scan s, Cursor c) noexcept nogil
cdef void remember_chain(Scan s, Cursor c, long long stack) noexcept nogil
cdef int read_stack(Scan s, Cursor c) noexcept nogil
cdef int low32(unsigned long long value) noexcept nogil
cdef int read_frame(Scan s, Cursor c) noexcept nogil
cdef int read_error(Cursor c) noexcept nogil
cdef bint has_room(Scan s, Py_ssize_t frames) noexcept nogil
cdef bint read_sample(Scan s, Cursor c, int stack) noexcept nogil
cdef bint read_switch(Scan s, Cursor c) noexcept nogil
