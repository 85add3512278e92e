include "itanium_nodes.pxi"

from symbolize.names.demangler cimport MAX_NAME, Demangler

cdef int MAX_LOOKUPS


cdef class CppTree(Demangler):
    cdef int[::1] nodes
    cdef int count

    cdef int node(self, int kind, int a, int b, int c) except -1
    cdef int join(self, int kind, int a, int b, int c) except -1
    cdef int append(self, int head, int item) except -1
    cdef int kind(self, int node) except -1
    cdef int item(self, int node, int index) except -1


cdef class CppLexer(CppTree):
    cdef int[::1] subs
    cdef int substitutions
    cdef int lookups
    cdef int last_name

    cdef int word(self, bytes text) except -1
    cdef int number(self) except -1
    cdef int ordinal(self) except -1
    cdef int sequence(self) except -1
    cdef int digits(self) except -1
    cdef int expect(self, unsigned char byte) except -1
    cdef int slice(self) except -1
    cdef int source_name(self) except -1
    cdef bint is_anonymous(self, int start) except -1
    cdef int tags(self, int node) except -1
    cdef int qualifiers(self) except -1
    cdef int module(self, int module) except -1
    cdef int substitution(self) except -1
    cdef int add(self, int node) except -1
    cdef bint repeats(self, int node) except -1
    cdef int offset(self) except -1
    cdef int part(self) except -1
    cdef int float_type(self) except -1
    cdef int discriminator(self) except -1
    cdef int suffix(self) except -1
