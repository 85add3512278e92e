from symbolize.cursor cimport Cursor
from symbolize.load.perfetto.tables cimport Lists, Table, Tuples
from symbolize.load.pprof_scan cimport enter, leave, skip
from symbolize.load.pprof_scan cimport varint as slow_varint


cdef unsigned long long varint(Cursor c) noexcept


cdef class Names:
    cdef Table functions
    cdef Table builds
    cdef Table paths
    cdef Table sources
    cdef Table mappings
    cdef public list mapping_records
    cdef public list mapping_rows
    cdef Table frames
    cdef unsigned long long[::1] frame_words
    cdef int[::1] frame_rows
    cdef Table stacks
    cdef long long[::1] stack_offsets
    cdef unsigned long long[::1] stack_ids
    cdef int[::1] stack_rows
    cdef long long[::1] stack_tried
    cdef Py_ssize_t stack_used
    cdef Py_ssize_t frame_count
    cdef Py_ssize_t stack_count
    cdef long long version
    cdef Py_ssize_t entries
    cdef Table tasks
    cdef Table executions
    cdef unsigned long long[::1] context_words
    cdef Py_ssize_t context_count
    cdef public dict descriptors
    cdef public dict sessions


cdef class Sequence:
    cdef readonly object number
    cdef readonly bint valid
    cdef public bint began
    cdef Names names
    cdef Names inline
    cdef public int generation
    cdef public int session
    cdef public int followers
    cdef public unsigned long long nominal
    cdef public object defaults
    cdef public object stack_defaults
    cdef public unsigned long long clock
    cdef Table cpus
    cdef unsigned long long[::1] counters
    cdef unsigned char[::1] counted
    cdef unsigned long long[::1] pending
    cdef Py_ssize_t pending_count
    cdef public long long index
    cdef public unsigned long long pid
    cdef public unsigned long long tid
    cdef public long long time_us
    cdef public bint has_time


cdef class Scanner:
    cdef object trace
    cdef object data
    cdef Cursor c
    cdef unsigned long long mixer
    cdef dict sequences
    cdef Sequence current
    cdef readonly Tuples frames
    cdef readonly Lists stacks
    cdef readonly Tuples contexts
    cdef readonly Tuples samples
    cdef long long[::1] values
    cdef public Py_ssize_t stride
    cdef long long[::1] times
    cdef Py_ssize_t room
    cdef Py_ssize_t id_room
    cdef unsigned long long[::1] numbers
    cdef Py_ssize_t numbers_count
    cdef unsigned long long[::1] others
    cdef Py_ssize_t others_count
    cdef unsigned long long machine
    cdef unsigned long long timestamp
    cdef unsigned long long clock
    cdef bint has_time
    cdef readonly bint broken
    cdef readonly unsigned long long wanted
    cdef readonly Py_ssize_t packets
    cdef readonly Py_ssize_t damaged
    cdef readonly Py_ssize_t nested
    cdef readonly Py_ssize_t invalid_state
    cdef readonly Py_ssize_t losses
    cdef readonly Py_ssize_t too_many
    cdef readonly Py_ssize_t rejected
    cdef readonly Py_ssize_t saturated
    cdef readonly Py_ssize_t out_of_range
    cdef readonly Py_ssize_t perf_samples
    cdef readonly Py_ssize_t counter_only
    cdef readonly object records_lost
    cdef readonly Py_ssize_t guardrails
    cdef readonly list skipped
    cdef readonly Py_ssize_t bad_streams
    cdef readonly Py_ssize_t index_gaps
    cdef readonly Py_ssize_t early_heaps

    cdef Sequence sequence(self, unsigned long long number)
    cdef clear(self, Sequence seq)
    cdef packet(self, Py_ssize_t end, int depth)
    cdef inner(self, unsigned long long tag, Py_ssize_t begin, Py_ssize_t end)
    cdef payload(self, unsigned long long tag, Py_ssize_t begin, Py_ssize_t end, unsigned long long number)
    cdef bytes text(self, Py_ssize_t begin, Py_ssize_t end)
    cdef read_string(self, Table table, Names names)
    cdef bint takes(self, Names names, Py_ssize_t ids)
    cdef intern(self, Sequence seq, Py_ssize_t begin, Py_ssize_t end)
    cdef read_mapping(self, Names names)
    cdef read_frame(self, Names names)
    cdef read_stack(self, Names names)
    cdef read_task(self, Names names, Py_ssize_t row)
    cdef read_execution(self, Names names, Py_ssize_t row)
    cdef Py_ssize_t read_numbers(self, unsigned long long tag) except -1
    cdef int text_row(self, Table table, unsigned long long iid) noexcept
    cdef int mapping(self, Names names, unsigned long long iid) except -3
    cdef int frame(self, Names names, unsigned long long iid) except -3
    cdef int stack(self, Names names, unsigned long long iid) except -3
    cdef count(self, int session, unsigned long long pid, unsigned long long tid, unsigned long long cpu,
               unsigned long long mode, unsigned long long error, int stack, unsigned long long weight, Py_ssize_t followers)
    cdef add_value(self, Py_ssize_t at, unsigned long long value)
    cdef perf_sample(self, Sequence seq, Py_ssize_t begin, Py_ssize_t end)
    cdef unsigned long long weigh(self, Sequence seq, unsigned long long cpu, bint timed, unsigned long long total) except? 0
    cdef streaming(self, Sequence seq, Py_ssize_t begin, Py_ssize_t end)
    cdef stack_sample(self, Sequence seq, Py_ssize_t begin, Py_ssize_t end)
    cdef int inline_stack(self, Py_ssize_t begin, Py_ssize_t end) except -3
    cdef heap_packet(self, Sequence seq, Py_ssize_t begin, Py_ssize_t end)
    cdef heap_samples(self, Sequence seq, Py_ssize_t begin, Py_ssize_t end)
    cdef heap_sample(self, Sequence seq, unsigned long long dump, bint counts_max)
    cdef finish(self, Sequence seq)
