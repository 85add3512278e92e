include "itanium_nodes.pxi"

from symbolize.names.itanium_printer cimport Printer
from symbolize.names.demangler cimport MAX_NAME
from symbolize.names.rust cimport is_legacy


cdef class CppDemangler(Printer):
    cpdef object demangle(self, bytes name, int mode)
    cdef int show_rare_expression(self, int node, int kind) except -1
    cdef int show_unary(self, int node) except -1
    cdef int show_fold(self, int operator, int a, int b, int side) except -1
    cdef int show_new(self, int operator, int parts, int of) except -1
    cdef int show_literal(self, int of, int value, bint negative) except -1
    cdef int show_pack_size(self, int operand) except -1
    cdef int list_size(self, int node) except -1
    cdef int show_subobject(self, int of, int operand, int offset) except -1
    cdef int show_designated(self, int node, int kind) except -1
    cdef int show_requirements(self, int parameters, int node) except -1
    cdef int show_requirement(self, int node) except -1
