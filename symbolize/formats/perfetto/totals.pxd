cimport cython
from symbolize.core.interning cimport InternTable


@cython.final
cdef class Totals:
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t base
    cdef InternTable ids
    cdef long long[::1] last
    cdef int[::1] stacks
    cdef unsigned long long mixer
