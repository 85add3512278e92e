include "itanium_nodes.pxi"

from symbolize.names.itanium_names cimport NameParser


cdef class ExpressionParser(NameParser):
    cdef int operation(self, int code) except -1
    cdef int other_expression(self, int code) except -1
    cdef int list(self, bint of_arguments) except -1
    cdef int call_or_cast(self, unsigned char letter) except -1
    cdef int pack_expression(self, unsigned char letter) except -1
    cdef int subobject(self) except -1
    cdef int parameter_or_fold(self) except -1
    cdef int designated(self, unsigned char letter) except -1
    cdef int new(self, bint array) except -1
    cdef int requirements(self, bint with_parameters) except -1
    cdef int vendor_expression(self) except -1
    cdef int unresolved(self) except -1
    cdef int unresolved_in_scopes(self, int node) except -1
    cdef int unresolved_component(self) except -1
