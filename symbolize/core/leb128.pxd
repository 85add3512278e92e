cdef Py_ssize_t put_uleb(unsigned char[::1] data, Py_ssize_t position, unsigned long long value) noexcept nogil
cdef Py_ssize_t put_sleb(unsigned char[::1] data, Py_ssize_t position, long long value) noexcept nogil
