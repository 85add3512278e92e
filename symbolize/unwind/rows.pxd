include "constants.pxi"
from symbolize.elf.call_frames cimport FrameReader

cdef class RowReader:
    cdef FrameReader frames
    cdef Py_ssize_t registers
    cdef Py_ssize_t width
    cdef Py_ssize_t section_end
    cdef unsigned long long[::1] row
    cdef unsigned long long[::1] initial
    cdef unsigned long long[:, ::1] states
    cdef Py_ssize_t depth
    cdef Py_ssize_t budget
    cdef Py_ssize_t position
    cdef Py_ssize_t paused
    cdef unsigned long long location
    cdef bint is_sound

    cdef bint find(self, Py_ssize_t position, unsigned long long vaddr) noexcept nogil
    cdef bint start(self, Py_ssize_t position) noexcept nogil
    cdef bint run(self, Py_ssize_t begin, Py_ssize_t end, unsigned long long vaddr) noexcept nogil
    cdef bint advance(self, unsigned long long distance, unsigned long long vaddr) noexcept nogil
    cdef bint step(self, int operation, unsigned long long vaddr) noexcept nogil
    cdef bint define_cfa(self, int operation) noexcept nogil
    cdef bint define_register(self, int operation) noexcept nogil
    cdef void rule(self, unsigned long long register, unsigned long long kind, unsigned long long value) noexcept nogil
    cdef void restore(self, unsigned long long register) noexcept nogil
    cdef unsigned long long expression(self) noexcept nogil
    cdef unsigned long long scaled(self, unsigned long long value) noexcept nogil
    cdef unsigned long long signed_scaled(self) noexcept nogil
