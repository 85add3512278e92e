cdef class InlineTree:
    cdef int[::1] slots
    cdef public int[::1] parent
    cdef public int[::1] function
    cdef public int[::1] file
    cdef public unsigned int[::1] line
    cdef public unsigned int[::1] column
    cdef public Py_ssize_t count
    cdef Py_ssize_t limit
    cdef public bint cut_off
    cdef unsigned long long mixer

    cdef grow(self)
    cdef long long row(self, long long parent, long long function, long long file, unsigned long long line, unsigned long long column) noexcept nogil
