from symbolize.formats.perfetto.packet_reader cimport PacketReader
from symbolize.formats.perfetto.interned_state cimport InternedState
from symbolize.core.interning cimport InternTable


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
