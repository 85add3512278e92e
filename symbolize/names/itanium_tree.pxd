include "itanium_nodes.pxi"

from symbolize.names.demangler cimport MAX_NAME, Demangler

cdef int MAX_LOOKUPS


cdef class Tree(Demangler):
    cdef int[::1] nodes
    cdef int count
    cdef int[::1] subs
    cdef int substitutions
    cdef int lookups
    cdef int params
    cdef int outer
    cdef int forwards
    cdef int last_name
    cdef int quals
    cdef bint templated
    cdef bint special
    cdef bint generic
    cdef bint forwarding
    cdef bint converting
    cdef bint ambiguous
    cdef bint leveled
    cdef int reading

    cdef int reset(self) except -1
    cdef int node(self, int kind, int a, int b, int c) except -1
    cdef int join(self, int kind, int a, int b, int c) except -1
    cdef int kind(self, int node) except -1
    cdef int append(self, int head, int item) except -1
    cdef int item(self, int node, int index) except -1
    cdef int pack_length(self, int pack) except -1
    cdef int add(self, int node) except -1
    cdef int expect(self, unsigned char byte) except -1
    cdef int number(self) except -1
    cdef int ordinal(self) except -1
    cdef int sequence(self) except -1
    cdef int slice(self) except -1
    cdef int source_name(self) except -1
    cdef int tags(self, int node) except -1
    cdef int qualifiers(self) except -1
    cdef int digits(self) except -1
