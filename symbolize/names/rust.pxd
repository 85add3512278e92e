from symbolize.names.demangler cimport MAX_NAME, Demangler


cpdef bint is_legacy(bytes name) except? -1


cdef class RustDemangler(Demangler):
    cdef bint generics
    cdef bint muted
    cdef int lifetimes
    cdef int start
    cdef bint is_punycode

    cdef int legacy(self, int end) except -1
    cdef int component(self, int at, int end) except -1
    cdef int escape(self, int at, int end) except -1
    cdef Py_ssize_t integer(self) except -1
    cdef Py_ssize_t tagged_integer(self, unsigned char tag) except -1
    cdef int identifier(self) except -1
    cdef int put_identifier(self) except -1
    cdef int put_punycode(self) except -1
    cdef int follow(self) except -1
    cdef int put_lifetime(self, Py_ssize_t index) except -1
    cdef int path(self, bint in_value) except -1
    cdef int muted_path(self) except -1
    cdef int nested(self, bint in_value) except -1
    cdef int generic_arguments(self) except -1
    cdef int type(self) except -1
    cdef int binder(self) except -1
    cdef int function_type(self) except -1
    cdef bint open_path(self) except -1
    cdef int trait_bounds(self) except -1
    cdef int constant(self) except -1
    cdef int number(self) except -1
    cdef int character(self) except -1
    cdef bytes nibbles(self)
