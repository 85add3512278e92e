include "constants.pxi"
from symbolize.formats.perfetto.packet_reader cimport PacketReader
from symbolize.core.interning cimport Tuples


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
