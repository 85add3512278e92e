from symbolize.load.perfetto.packet_reader cimport Common
from symbolize.load.perfetto.interned_state cimport Names
from symbolize.load.perfetto.samples cimport Samples
from symbolize.load.perfetto.sequences cimport Sequence


cdef class StackReader:
    cdef Common common
    cdef Samples samples
    cdef unsigned long long[::1] weights

    cdef stack_sample(self, Sequence seq, Py_ssize_t begin, Py_ssize_t end)
    cdef unsigned long long scaled(self, unsigned long long weight, unsigned long long multiplier) noexcept
    cdef int inline_stack(self, Py_ssize_t begin, Py_ssize_t end) except -3
