include "itanium_nodes.pxi"

from symbolize.names.itanium_tree cimport MAX_LOOKUPS, Tree


cdef class TypeParser(Tree):
    cdef int a_name(self, bint state) except -1
    cdef int unqualified(self, bint state, int scope, int module) except -1
    cdef int expression(self) except -1
    cdef int operand(self, unsigned char of) except -1
    cdef int lookup(self, int node, int index) except -1
    cdef int parameter(self) except -1
    cdef int arguments(self, bint state) except -1
    cdef int argument(self) except -1
    cdef bint at_declaration(self) except -1
    cdef int declarations(self) except -1
    cdef int declaration(self) except -1
    cdef int constraint(self) except -1
    cdef int a_type(self) except -1
    cdef int wrap(self, int kind, int node) except -1
    cdef int substituted_type(self) except -1
    cdef bint may_be_template(self, int node) except -1
    cdef int parameter_type(self) except -1
    cdef int qualified_type(self) except -1
    cdef int function_type(self) except -1
    cdef int dimension(self) except -1
    cdef int array_type(self) except -1
    cdef int vendor_type(self) except -1
    cdef int decltype(self) except -1
    cdef int more_types(self) except -1
    cdef int float_type(self) except -1
    cdef int vector_type(self) except -1
    cdef int substitution(self) except -1
    cdef int template(self, int node, bint state) except -1
