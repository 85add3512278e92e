include "constants.pxi"
from symbolize.core.cursor cimport Cursor
from symbolize.core.interning cimport Tuples

cdef class Machine:
    cdef const unsigned char[::1] data
    cdef Cursor expressions
    cdef Py_ssize_t count
    cdef unsigned long long[::1] values
    cdef unsigned long long known
    cdef unsigned long long base
    cdef Py_ssize_t offset
    cdef Py_ssize_t size
    cdef bint is_full
    cdef int failure
    cdef unsigned long long[::1] stack
    cdef Py_ssize_t depth
    cdef Py_ssize_t operations

    cdef void load(self, Py_ssize_t offset, Py_ssize_t size, bint is_full, unsigned long long base) noexcept nogil
    cdef unsigned long long register(self, unsigned long long number) noexcept nogil
    cdef unsigned long long read(self, unsigned long long address, int size) noexcept nogil
    cdef unsigned long long value_of(self, Py_ssize_t register, unsigned long long rule, unsigned long long value, unsigned long long cfa) noexcept nogil
    cdef unsigned long long evaluate(self, unsigned long long expression) noexcept nogil
    cdef void push(self, unsigned long long value) noexcept nogil
    cdef unsigned long long pop(self) noexcept nogil
    cdef unsigned long long peek(self, unsigned long long depth) noexcept nogil
    cdef void jump(self, bint taken) noexcept nogil
    cdef void constant(self, int operation) noexcept nogil
    cdef bint push_operand(self, int operation) noexcept nogil
    cdef bint move(self, int operation) noexcept nogil
    cdef bint change(self, int operation) noexcept nogil
    cdef unsigned long long combined(self, int operation, unsigned long long left, unsigned long long right) noexcept nogil

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
