cimport cython
include "numbers.pxi"
from symbolize.core.integers cimport unsigned_at
from symbolize.core.interning cimport Chunks, InternTable, Tuples
from symbolize.formats.perf.samples cimport PerfSamples


@cython.final
cdef class PerfScan:
    cdef PerfSamples samples
    cdef bint big
    cdef const unsigned char[::1] data
    cdef public Py_ssize_t pos
    cdef public Py_ssize_t end
    cdef public Py_ssize_t begin
    cdef public Py_ssize_t stop
    cdef Py_ssize_t at
    cdef const unsigned long long[:, ::1] events
    cdef InternTable ids
    cdef const int[::1] event_of_id
    cdef Tuples values
    cdef const int[:, ::1] register_columns
    cdef bint has_ids
    cdef Py_ssize_t sample_id_at
    cdef Py_ssize_t trailer_id_at
    cdef unsigned long long[::1] times
    cdef long long[::1] offsets
    cdef readonly Py_ssize_t count
    cdef public Py_ssize_t most
    cdef readonly unsigned long long max_time
    cdef unsigned long long last_time
    cdef unsigned long long flushed
    cdef readonly bint is_sorted
    cdef readonly unsigned long long lost
    cdef readonly Py_ssize_t late
    cdef readonly Py_ssize_t seen
    cdef readonly unsigned long long first_sample
    cdef readonly unsigned long long last_sample
    cdef public Py_ssize_t next
    cdef readonly Py_ssize_t damaged
    cdef readonly Py_ssize_t unknown_ids
    cdef readonly Py_ssize_t unwanted
    cdef readonly Py_ssize_t left_out
    cdef readonly Py_ssize_t without_callers
    cdef readonly unsigned long long pid
    cdef readonly unsigned long long tid
    cdef readonly unsigned long long cookie
    cdef unsigned long long value
    cdef unsigned long long[:, ::1] counts
    cdef Py_ssize_t count_of_counts
    cdef readonly Py_ssize_t stack
    cdef Py_ssize_t event
    cdef bint is_bad
    cdef unsigned long long ip
    cdef unsigned long long time
    cdef unsigned long long cpu
    cdef unsigned long long cgroup
    cdef Py_ssize_t chain
    cdef Py_ssize_t chain_size
    cdef Py_ssize_t branches
    cdef Py_ssize_t branch_count
    cdef Py_ssize_t registers
    cdef unsigned long long abi
    cdef Py_ssize_t stack_at
    cdef unsigned long long stack_size
    cdef bint is_full
    cdef Py_ssize_t read_values
    cdef unsigned long long read_count
    cdef Py_ssize_t user_frames
    cdef Chunks chains
    cdef unsigned long long[:, ::1] known

    cdef unsigned long long word(self, Py_ssize_t at) noexcept nogil
    cdef unsigned long long half(self, Py_ssize_t at) noexcept nogil
    cdef Py_ssize_t short(self, Py_ssize_t at) noexcept nogil
    cdef unsigned long long take(self) noexcept nogil
    cdef void skip(self, unsigned long long count, unsigned long long size) noexcept nogil
    cdef int queue_records(self) except -1 nogil
    cdef int put(self, Py_ssize_t begin, unsigned long long time) except -1 nogil
    cdef int extend_queue(self) except -1 with gil
    cdef Py_ssize_t event_of(self, Py_ssize_t at) noexcept nogil
    cdef Py_ssize_t sample_event(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
    cdef unsigned long long sample_time(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
    cdef unsigned long long trailer_time(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
    cdef int read_sample(self) except -1 nogil
    cdef void read_fields(self, Py_ssize_t event) noexcept nogil
    cdef void skip_values(self, unsigned long long form) noexcept nogil
    cdef int find_stack(self, int mode) except -1 nogil
    cdef int read_counts(self, Py_ssize_t event) except -1 nogil
    cdef void add_count(self, unsigned long long event, unsigned long long value) noexcept nogil
    cdef int count_sample(self) except -1 nogil
    cdef void read_branches(self, Py_ssize_t event) noexcept nogil
    cdef int read_stack(self, int mode) except -1 nogil
    cdef int read_calls(self) except -1 nogil
    cdef int add_dump(self, int mode) except -1 nogil

cdef int mode_after(unsigned long long marker, int mode) noexcept nogil
