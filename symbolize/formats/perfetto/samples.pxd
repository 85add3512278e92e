include "constants.pxi"
include "../../proto/perfetto_trace_tags.pxi"
from symbolize.formats.perfetto.packet_reader cimport PacketReader
from symbolize.core.interning cimport Tuples
from symbolize.formats.perfetto.sequences cimport InternedState, Sequence


cdef class SampleContext:
    cdef int session
    cdef unsigned long long pid
    cdef unsigned long long tid
    cdef bint has_tid
    cdef unsigned long long cpu
    cdef unsigned long long mode
    cdef unsigned long long error

    cdef void clear(self) noexcept


cdef class TraceSamples:
    cdef PacketReader reader
    cdef SampleContext context
    cdef readonly Tuples contexts
    cdef readonly Tuples table
    cdef public Py_ssize_t stride
    cdef long long[::1] values
    cdef long long[::1] times
    cdef unsigned long long[::1] weights
    cdef Py_ssize_t max_contexts
    cdef Py_ssize_t max_samples
    cdef Py_ssize_t max_values
    cdef readonly Py_ssize_t rejected
    cdef readonly Py_ssize_t empty
    cdef readonly Py_ssize_t counter_only
    cdef readonly Py_ssize_t saturated
    cdef readonly set reused

    cdef reserve(self, Py_ssize_t followers)
    cdef reject(self, int stack)
    cdef count(self, int stack, unsigned long long weight, Py_ssize_t followers)
    cdef add_value(self, Py_ssize_t at, unsigned long long value)


cdef class CpuReader:
    cdef PacketReader reader
    cdef TraceSamples samples
    cdef unsigned long long[::1] deltas
    cdef readonly object records_lost
    cdef readonly Py_ssize_t guardrails
    cdef readonly Py_ssize_t bad_streams
    cdef readonly list skipped

    cdef perf_sample(self, Sequence seq, Py_ssize_t begin, Py_ssize_t end)
    cdef unsigned long long weigh(self, Sequence seq, unsigned long long cpu, bint timed, unsigned long long total) except? 0
    cdef streaming(self, Sequence seq, Py_ssize_t begin, Py_ssize_t end)


cdef class StackReader:
    cdef PacketReader reader
    cdef TraceSamples samples
    cdef unsigned long long[::1] weights
    cdef Py_ssize_t given
    cdef unsigned long long weight
    cdef unsigned long long task
    cdef unsigned long long execution
    cdef unsigned long long iid
    cdef Py_ssize_t inline_begin
    cdef Py_ssize_t inline_end
    cdef unsigned long long primary
    cdef bytes described
    cdef list followed

    cdef stack_sample(self, Sequence seq, Py_ssize_t begin, Py_ssize_t end)
    cdef read(self, InternedState state, Py_ssize_t begin, Py_ssize_t end)
    cdef session(self, Sequence seq)
    cdef unsigned long long scaled(self, unsigned long long weight, unsigned long long multiplier) noexcept
    cdef int inline_stack(self, Py_ssize_t begin, Py_ssize_t end) except -3
