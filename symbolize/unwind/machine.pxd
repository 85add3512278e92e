include "constants.pxi"
from symbolize.core.cursor cimport Cursor

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
