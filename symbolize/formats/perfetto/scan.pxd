include "constants.pxi"
include "../../core/protobuf.pxi"
include "../../proto/perfetto_trace_tags.pxi"
from symbolize.formats.perfetto.packet_reader cimport PacketReader
from symbolize.formats.perfetto.samples cimport CpuReader, StackReader, TraceSamples
from symbolize.formats.perfetto.heaps cimport HeapReader
from symbolize.formats.perfetto.sequences cimport Sequence
from symbolize.core.interning cimport InternTable


cdef class Scanner:
    cdef object packets
    cdef readonly PacketReader reader
    cdef readonly TraceSamples samples
    cdef readonly CpuReader cpu
    cdef readonly HeapReader heaps
    cdef StackReader stack_samples
    cdef dict sequences
    cdef Sequence current
    cdef Py_ssize_t max_sequences
    cdef InternTable numbers
    cdef unsigned long long last_number
    cdef Py_ssize_t interned
    cdef Py_ssize_t interned_end
    cdef Py_ssize_t defaults
    cdef Py_ssize_t defaults_end
    cdef readonly bint broken
    cdef readonly unsigned long long wanted
    cdef readonly Py_ssize_t nested
    cdef readonly Py_ssize_t invalid_state
    cdef readonly Py_ssize_t losses
    cdef readonly Py_ssize_t track_stacks
    cdef readonly Py_ssize_t heap_graphs

    cdef Py_ssize_t walk(self, int depth) except -1
    cdef bint is_broken(self) noexcept
    cdef Sequence sequence(self, unsigned long long number)
    cdef bint begins(self, unsigned long long number) except -1
    cdef packet(self, Py_ssize_t end, int depth)
    cdef Sequence update(self, unsigned long long number, unsigned long long flags, unsigned long long dropped, bint first)
    cdef track_event(self, Py_ssize_t begin, Py_ssize_t end)
    cdef inner(self, unsigned long long tag, Py_ssize_t begin, Py_ssize_t end)
    cdef payload(self, unsigned long long tag, Py_ssize_t begin, Py_ssize_t end, unsigned long long number)
