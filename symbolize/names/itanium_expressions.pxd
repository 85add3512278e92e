include "itanium_nodes.pxi"

from symbolize.names.itanium_names cimport NameParser


cdef class ExpressionParser(NameParser):
    cdef int literal(self) except -1
    cdef int operation(self, int code) except -1
    cdef int other_expression(self, int code) except -1
    cdef int list(self, unsigned char end, bint of_arguments) except -1
    cdef int subobject(self) except -1
    cdef int parameter_or_fold(self) except -1
    cdef int new(self, bint array) except -1
    cdef int requirements(self, bint with_parameters) except -1
    cdef int unresolved(self) except -1
    cdef int unresolved_in_scopes(self, int node) except -1
    cdef int unresolved_component(self) except -1
