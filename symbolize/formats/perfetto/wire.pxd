include "../../core/protobuf.pxi"
include "../../proto/perfetto_trace_tags.pxi"
cimport cython
from symbolize.core.cursor cimport Cursor


cdef enum:
    SMALL_FIELDS = 16


cdef class MessageReader(Cursor):
    cdef bytes source
    cdef unsigned long long tag
    cdef unsigned long long value
    cdef Py_ssize_t begin
    cdef unsigned long long[::1] numbers
    cdef Py_ssize_t numbers_count
    cdef unsigned long long[::1] small

    cdef start(self, bytes data)
    @cython.final
    cdef bint field(self) noexcept
    @cython.final
    cdef void read_small(self, Py_ssize_t begin, Py_ssize_t end) noexcept
    @cython.final
    cdef Py_ssize_t pass_over(self, Py_ssize_t pos, Py_ssize_t end) noexcept
    @cython.final
    cdef Py_ssize_t reenter(self) noexcept
    @cython.final
    cdef void go_on(self, Py_ssize_t outer) noexcept
    @cython.final
    cdef bint forgive(self) noexcept
    @cython.final
    cdef bytes content(self)
    @cython.final
    cdef take_numbers(self, Py_ssize_t limit)
    @cython.final
    cdef take_run(self, unsigned long long tag, Py_ssize_t limit)
    @cython.final
    cdef add_number(self, unsigned long long value)
