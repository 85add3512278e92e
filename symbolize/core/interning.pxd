cimport cython


@cython.final
cdef class Table:
    cdef readonly Py_ssize_t count
    cdef readonly unsigned long long numbered
    cdef int[::1] dense
    cdef Py_ssize_t hashed
    cdef unsigned long long[::1] keys
    cdef int[::1] rows
    cdef unsigned long long mixer
    cdef int shift

    cdef Py_ssize_t slot(self, unsigned long long key) noexcept nogil
    cdef int find(self, unsigned long long key) noexcept nogil
    cpdef put(self, unsigned long long key, int row)
    cdef move(self, unsigned long long key, int row)
    cdef grow(self)


@cython.final
cdef class Totals:
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t base
    cdef Table ids
    cdef long long[::1] last
    cdef int[::1] stacks
    cdef unsigned long long mixer


@cython.final
cdef class Tuples:
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t width
    cdef Py_ssize_t stride
    cdef unsigned long long[::1] key
    cdef unsigned long long[::1] words
    cdef int[::1] slots
    cdef unsigned long long mixer

    cdef Py_ssize_t slot(self, Py_ssize_t begin) noexcept
    cdef Py_ssize_t copy_key(self) except -1
    cdef Py_ssize_t add(self) except -1
    cdef Py_ssize_t append(self) except -1
    cdef grow(self)


@cython.final
cdef class Lists:
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t size
    cdef Py_ssize_t used
    cdef object items_array
    cdef int[::1] items
    cdef long long[::1] offsets
    cdef int[::1] slots
    cdef unsigned long long mixer

    cdef Py_ssize_t slot(self, Py_ssize_t begin, Py_ssize_t size) noexcept
    cdef int append(self, int value) except -1
    cdef Py_ssize_t add(self) except -1
    cdef grow(self)


@cython.final
cdef class Chunks:
    cdef Py_ssize_t count
    cdef Py_ssize_t used
    cdef long long hash
    cdef Py_ssize_t place
    cdef unsigned long long mixer
    cdef unsigned char[::1] known
    cdef long long[:, ::1] table

    cdef Py_ssize_t find(self, const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end) noexcept
    cdef void put(self, const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t row) noexcept
