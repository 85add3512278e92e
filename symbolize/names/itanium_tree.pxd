include "itanium_nodes.pxi"

from symbolize.names.demangler cimport Demangler


cdef class CppTree(Demangler):
    cdef int[::1] nodes
    cdef int count

    cdef int node(self, int kind, int a, int b, int c) except -1
    cdef int join(self, int kind, int a, int b, int c) except -1
    cdef int append(self, int head, int item) except -1
    cdef int kind(self, int node) except -1
    cdef int item(self, int node, int index) except -1
