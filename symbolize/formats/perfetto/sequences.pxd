include "constants.pxi"
include "../../core/protobuf.pxi"
include "../../proto/perfetto_trace_tags.pxi"
from symbolize.formats.perfetto.packet_reader cimport PacketReader
from symbolize.core.interning cimport InternTable


cdef class InternedState:
    cdef PacketReader reader
    cdef InternTable functions
    cdef InternTable builds
    cdef InternTable paths
    cdef InternTable sources
    cdef InternTable mappings
    cdef unsigned long long[::1] mapping_words
    cdef int[::1] mapping_rows
    cdef Py_ssize_t mapping_count
    cdef unsigned long long[::1] path_ids
    cdef Py_ssize_t path_used
    cdef InternTable frames
    cdef unsigned long long[::1] frame_words
    cdef int[::1] frame_rows
    cdef Py_ssize_t frame_count
    cdef InternTable stacks
    cdef long long[::1] stack_offsets
    cdef unsigned long long[::1] stack_ids
    cdef int[::1] stack_rows
    cdef long long[::1] stack_tried
    cdef unsigned long long[::1] stack_missing
    cdef Py_ssize_t stack_used
    cdef Py_ssize_t stack_count
    cdef long long version
    cdef Py_ssize_t entries
    cdef Py_ssize_t ids
    cdef InternTable tasks
    cdef InternTable executions
    cdef unsigned long long[::1] context_words
    cdef Py_ssize_t context_count
    cdef unsigned long long context_iid
    cdef unsigned long long context_first
    cdef unsigned long long context_second
    cdef public dict descriptors
    cdef public dict sessions

    cdef bint takes(self, Py_ssize_t ids) noexcept
    cdef release(self)
    cdef read(self, Py_ssize_t begin, Py_ssize_t end)
    cdef read_string(self, InternTable table)
    cdef read_mapping(self)
    cdef read_frame(self)
    cdef read_stack(self)
    cdef read_context(self, InternTable table, bint execution)
    cdef parse_context(self, bint execution)
    cdef unsigned long long one_more(self, Py_ssize_t number) noexcept
    cdef bint find_context(self, InternTable table, unsigned long long iid) noexcept
    cdef int text_row(self, InternTable table, unsigned long long iid) noexcept
    cdef int mapping(self, unsigned long long iid) except -3
    cdef int frame(self, unsigned long long iid) except -3
    cdef int stack(self, unsigned long long iid) except -3


cdef class Sequence:
    cdef PacketReader reader
    cdef readonly unsigned long long number
    cdef readonly bint valid
    cdef public bint began
    cdef InternedState interned
    cdef InternedState inline
    cdef public long long generation
    cdef public int session
    cdef public int followers
    cdef public unsigned long long nominal
    cdef public object defaults
    cdef public object stack_defaults
    cdef public object stack_events
    cdef public unsigned long long clock
    cdef InternTable cpus
    cdef unsigned long long[::1] counters
    cdef int[::1] counted
    cdef Py_ssize_t counter_words
    cdef int losses
    cdef unsigned long long[::1] pending
    cdef Py_ssize_t pending_count
    cdef Py_ssize_t settled
    cdef bint dump_began
    cdef public unsigned long long dump_time
    cdef public long long index
    cdef public unsigned long long pid
    cdef public unsigned long long tid
    cdef public long long time_us
    cdef public bint has_tid
    cdef public bint has_time

    cdef clear(self)
    cdef lose(self)
