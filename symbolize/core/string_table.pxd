cdef class StringTable:
    cdef unsigned long long base
    cdef Py_ssize_t count, size
    cdef unsigned char[::1] data
    cdef long long[::1] offset
    cdef unsigned int[::1] hashes
    cdef int[::1] slots
    cdef void fill_slots(self) noexcept
    cdef Py_ssize_t number(self, const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
    cdef unsigned long long hashed(self, const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
    cdef Py_ssize_t first_slot(self, unsigned long long mixed) noexcept nogil
    cdef Py_ssize_t slot(self, const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end, unsigned long long mixed) noexcept nogil
