cdef int MAX_NAME
cdef int MAX_DEPTH
cdef int MAX_STEPS


cdef class Demangler:
    cdef unsigned char[::1] text
    cdef int size
    cdef int at
    cdef bytearray printed
    cdef unsigned char[::1] out
    cdef int used
    cdef bint bad
    cdef bint refused
    cdef int depth
    cdef int steps

    cdef int load(self, bytes name) except -1
    cdef int fail(self) except -1
    cdef int refuse(self) except -1
    cdef int enter(self) except -1
    cdef int count_steps(self, int count) except -1
    cdef bint eat(self, unsigned char byte) except -1
    cdef int length(self) except -1
    cdef int reserve(self, Py_ssize_t size) except -1
    cdef int put(self, unsigned char byte) except -1
    cdef int put_word(self, bytes text) except -1
    cdef int put_slice(self, int start, int end) except -1
