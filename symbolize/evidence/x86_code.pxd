cimport cython

@cython.final
cdef class X86Function:
    cdef public long long[::1] starts
    cdef public long long[::1] jumps
    cdef public Py_ssize_t count
    cdef public Py_ssize_t jump_count
    cdef public Py_ssize_t end
    cdef public bint is_open
    cdef long long size

    cpdef bint decode(self, const unsigned char[::1] code, const unsigned char[::1] tables)
    cdef Py_ssize_t read(self, const unsigned char[::1] code, const unsigned char[::1] tables) noexcept nogil
    cdef Py_ssize_t jump(self, const unsigned char[::1] code, Py_ssize_t at, Py_ssize_t width) noexcept nogil
    cdef Py_ssize_t immediate(self, int kind, int modrm, bint is_short, Py_ssize_t wide) noexcept nogil

cdef Py_ssize_t behind_operand(const unsigned char[::1] code, Py_ssize_t at) noexcept nogil
