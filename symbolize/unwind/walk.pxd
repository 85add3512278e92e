include "constants.pxi"
from symbolize.core.interning cimport Tuples
from symbolize.unwind.machine cimport Machine

cdef class Walker:
    cdef Machine machine
    cdef readonly Tuples sites
    cdef const unsigned long long[::1] starts
    cdef const unsigned long long[::1] limits
    cdef const long long[::1] space_offsets
    cdef const int[::1] space_mappings
    cdef Py_ssize_t sp
    cdef Py_ssize_t pc
    cdef Py_ssize_t fp
    cdef unsigned long long code_mask
    cdef const unsigned long long[:, ::1] rows
    cdef const int[::1] rules
    cdef const unsigned char[::1] is_call
    cdef unsigned long long[:, ::1] values
    cdef unsigned long long[::1] known
    cdef unsigned long long[::1] lowest
    cdef unsigned long long[::1] base
    cdef const long long[::1] offset
    cdef const long long[::1] size
    cdef const unsigned char[::1] is_full
    cdef const int[::1] space
    cdef const unsigned long long[::1] time
    cdef unsigned char[::1] state
    cdef unsigned char[::1] end
    cdef int[::1] depth
    cdef int[:, ::1] frames
    cdef unsigned long long[::1] next
    cdef readonly bint wants_calls

    cdef int walk(self, Py_ssize_t i) except -1 nogil
    cdef bint is_popped(self, Py_ssize_t i, unsigned long long address) noexcept nogil
    cdef bint is_trampoline(self, int rule) noexcept nogil
    cdef int push(self, Py_ssize_t i, unsigned long long address, unsigned long long time) except -1 nogil
    cdef Py_ssize_t mapping_of(self, Py_ssize_t i, unsigned long long address) noexcept nogil
    cdef int step(self, Py_ssize_t i, Py_ssize_t row) noexcept nogil
    cdef int step_by_pointer(self, Py_ssize_t i) noexcept nogil
