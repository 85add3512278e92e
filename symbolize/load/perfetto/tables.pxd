cdef class Table:
    cdef readonly Py_ssize_t count
    cdef int[::1] dense
    cdef Py_ssize_t hashed
    cdef unsigned long long[::1] keys
    cdef int[::1] rows
    cdef unsigned long long mixer
    cdef int shift

    cdef Py_ssize_t slot(self, unsigned long long key) noexcept
    cdef int find(self, unsigned long long key) noexcept
    cpdef put(self, unsigned long long key, int row)
    cdef move(self, unsigned long long key, int row)
    cdef grow(self)


cdef class Totals:
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t base
    cdef Table ids
    cdef long long[::1] last
    cdef int[::1] stacks
    cdef unsigned long long mixer


cdef class Tuples:
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t width
    cdef unsigned long long[::1] key
    cdef unsigned long long[::1] words
    cdef int[::1] slots
    cdef unsigned long long mixer

    cdef Py_ssize_t slot(self, unsigned long long[::1] words, Py_ssize_t begin) noexcept
    cdef Py_ssize_t add(self) except -1
    cdef grow(self)


cdef class Lists:
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t size
    cdef int[::1] item
    cdef Py_ssize_t used
    cdef int[::1] items
    cdef long long[::1] offsets
    cdef int[::1] slots
    cdef unsigned long long mixer

    cdef Py_ssize_t slot(self, int[::1] items, Py_ssize_t begin, Py_ssize_t size) noexcept
    cdef append(self, int value)
    cdef Py_ssize_t add(self) except -1
    cdef grow(self)
