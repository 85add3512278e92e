cdef class Walker:
    cdef unsigned char[::1] text
    cdef Py_ssize_t size
    cdef Py_ssize_t at
    cdef bytearray printed
    cdef unsigned char[::1] out
    cdef Py_ssize_t used
    cdef bint bad
    cdef bint generics
    cdef int depth
    cdef int steps
    cdef int lifetimes

    cdef bint load(self, bytes name) except -1
    cdef int legacy(self, Py_ssize_t end) except -1
    cdef int component(self, Py_ssize_t at, Py_ssize_t end) except -1
    cdef Py_ssize_t escape(self, Py_ssize_t at, Py_ssize_t end) except -1
    cdef int fail(self) except -1
    cdef int put(self, unsigned char byte) except -1
    cdef int put_word(self, bytes word) except -1
    cdef bint eat(self, unsigned char byte) except -1
    cdef bint enter(self) except -1
    cdef long long integer(self) except -1
    cdef long long tagged_integer(self, unsigned char tag) except -1
    cdef Py_ssize_t identifier(self) except -1
    cdef int put_identifier(self, Py_ssize_t size) except -1
    cdef Py_ssize_t referred(self) except -1
    cdef int lifetime(self, long long index) except -1
    cdef int path(self, bint in_value) except -1
    cdef int nested(self, bint in_value) except -1
    cdef int generic_arguments(self) except -1
    cdef int generic_argument(self) except -1
    cdef int a_type(self) except -1
    cdef int binder(self) except -1
    cdef int function_type(self) except -1
    cdef bint open_path(self) except -1
    cdef int dyn_trait(self) except -1
    cdef int constant(self) except -1
    cdef Py_ssize_t nibbles(self) except -1
    cdef int number(self) except -1
    cdef int character(self) except -1
    cdef int skip_path(self) except -1
    cdef int skip_argument(self) except -1
    cdef int skip_type(self) except -1
    cdef int skip_constant(self) except -1
