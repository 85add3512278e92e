cimport cython
from symbolize.core.integers cimport folded_product, unsigned_at

cdef unsigned long long hash_of(const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end, unsigned long long mixer) noexcept nogil
cdef bint is_same(const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end, const unsigned char[::1] known, Py_ssize_t at) noexcept nogil


@cython.final
cdef class InternTable:
    cdef readonly Py_ssize_t count
    cdef readonly unsigned long long numbered
    cdef int[::1] dense
    cdef Py_ssize_t hashed
    cdef unsigned long long[::1] slots
    cdef unsigned long long mixer
    cdef int shift

    cdef Py_ssize_t slot(self, unsigned long long key) noexcept nogil
    cpdef int find(self, unsigned long long key) noexcept nogil
    cpdef int put(self, unsigned long long key, int row) except -1 nogil
    cdef void move(self, unsigned long long key, int row) noexcept nogil
    cdef int reserve(self, Py_ssize_t count) except -1 nogil
    cdef int extend_dense(self, Py_ssize_t size) except -1 with gil
    cdef int grow(self, Py_ssize_t count) except -1 with gil


cdef class HashedRows:
    cdef readonly Py_ssize_t count
    cdef int shift
    cdef unsigned long long mixer
    cdef unsigned long long[::1] slots

    cdef int enter(self, Py_ssize_t slot, unsigned long long hashed) except -1 nogil
    cdef int grow(self) except -1 with gil


@cython.final
cdef class Tuples(HashedRows):
    cdef readonly Py_ssize_t width
    cdef Py_ssize_t stride
    cdef unsigned long long[::1] key
    cdef unsigned long long[::1] words

    cdef Py_ssize_t add(self) except -1 nogil
    cdef Py_ssize_t append(self) except -1 nogil
    cdef int extend_words(self, Py_ssize_t size) except -1 with gil


@cython.final
cdef class Lists(HashedRows):
    cdef Py_ssize_t size
    cdef Py_ssize_t used
    cdef object items_array
    cdef int[::1] items
    cdef long long[::1] offsets

    cdef int append(self, int value) except -1 nogil
    cdef Py_ssize_t add(self) except -1 nogil
    cdef int extend_items(self) except -1 with gil
    cdef int extend_offsets(self) except -1 with gil


@cython.final
cdef class Chunks:
    cdef Py_ssize_t count
    cdef Py_ssize_t used
    cdef long long hash
    cdef Py_ssize_t slot
    cdef unsigned long long mixer
    cdef unsigned char[::1] known
    cdef long long[:, ::1] table

    cdef Py_ssize_t find(self, const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
    cdef void put(self, const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t row) noexcept nogil
