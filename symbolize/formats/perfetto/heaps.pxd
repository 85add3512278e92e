cimport cython
include "constants.pxi"
include "../../core/protobuf.pxi"
include "../../proto/perfetto_trace_tags.pxi"
from symbolize.core.interning cimport InternTable
from symbolize.formats.perfetto.packet_reader cimport PacketReader
from symbolize.formats.perfetto.sequences cimport InternedState, Sequence


@cython.final
cdef class Totals:
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t base
    cdef InternTable ids
    cdef long long[::1] last
    cdef int[::1] stacks
    cdef unsigned long long mixer


cdef class HeapReader:
    cdef PacketReader reader
    cdef dict open
    cdef Py_ssize_t waiting
    cdef Py_ssize_t max_pending
    cdef unsigned long long[::1] spare
    cdef readonly Py_ssize_t out_of_range
    cdef readonly Py_ssize_t index_gaps
    cdef readonly Py_ssize_t early_heaps

    cdef heap_packet(self, Sequence seq, Py_ssize_t begin, Py_ssize_t end)
    cdef intern(self, Sequence seq, unsigned long long tag)
    cdef heap_samples(self, Sequence seq, Py_ssize_t begin, Py_ssize_t end)
    cdef int heap_sample(self, Sequence seq, unsigned long long dump, bint counts_max) except -1
    cdef int stack(self, Sequence seq, unsigned long long iid) except? -1
    cdef settle(self, Sequence seq)
    cdef finish(self, Sequence seq)
