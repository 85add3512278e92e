include "constants.pxi"
include "../../proto/perfetto_trace_tags.pxi"
from symbolize.formats.perfetto.packet_reader cimport PacketReader
from symbolize.formats.perfetto.samples cimport SampleContext, TraceSamples
from symbolize.formats.perfetto.sequences cimport Sequence


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
