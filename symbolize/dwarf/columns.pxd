cimport cython
from symbolize.core.kernels cimport first_from

@cython.final
cdef class Ranges:
    cdef public unsigned long long[::1] begin
    cdef public unsigned long long[::1] end
    cdef public long long[::1] owner
    cdef public Py_ssize_t count
    cdef Py_ssize_t capacity
    cdef const unsigned long long[::1] asked
    cdef Py_ssize_t next_asked
    cdef bint is_asked(self, Py_ssize_t first) noexcept nogil
    cdef int append(self, unsigned long long begin, unsigned long long end, long long owner) except -1 nogil
    cpdef grow(self)

@cython.final
cdef class Nodes:
    cdef public unsigned long long[::1] die
    cdef public unsigned long long[::1] origin
    cdef public unsigned long long[::1] entry
    cdef public long long[::1] unit
    cdef public long long[::1] parent
    cdef public unsigned int[::1] call_file
    cdef public unsigned int[::1] call_line
    cdef public unsigned int[::1] call_column
    cdef public Py_ssize_t count
    cdef Py_ssize_t capacity
    cdef Py_ssize_t add(self) except -1 nogil
    cpdef grow(self)
