include "constants.pxi"
include "../../proto/perfetto_trace_tags.pxi"
from symbolize.formats.perfetto.packet_reader cimport PacketReader
from symbolize.formats.perfetto.interned_state cimport InternedState
from symbolize.formats.perfetto.samples cimport SampleContext, TraceSamples
from symbolize.formats.perfetto.sequences cimport Sequence


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
