include "itanium_nodes.pxi"

from symbolize.names.demangler cimport MAX_NAME
from symbolize.names.itanium_lexer cimport MAX_LOOKUPS, CppLexer
from symbolize.names.rust cimport is_legacy


cdef class CppParser(CppLexer):
    cdef int params
    cdef int outer
    cdef int forwards
    cdef int quals
    cdef bint templated
    cdef bint special
    cdef bint generic
    cdef bint forwarding
    cdef bint converting
    cdef bint ambiguous
    cdef bint leveled
    cdef int reading

    cdef int parse(self, bytes name) except -1
    cdef int parse_whole(self) except -1
    cdef int encoding(self, bint top) except -1
    cdef int function(self, int name, bint top) except -1
    cdef int special_name(self) except -1
    cdef int resolve_forwards(self) except -1
    cdef int a_name(self, bint state) except -1
    cdef int unqualified(self, bint state, int scope, int module) except -1
    cdef int structor(self, bint state) except -1
    cdef int operator_name(self, bint state) except -1
    cdef int unnamed(self, bint state) except -1
    cdef int closure(self) except -1
    cdef int nested(self, bint state) except -1
    cdef int local(self, bint state) except -1
    cdef int lookup(self, int node, int index) except -1
    cdef int parameter(self) except -1
    cdef int arguments(self, bint state) except -1
    cdef int template(self, int node, bint state) except -1
    cdef int argument(self) except -1
    cdef bint at_declaration(self) except -1
    cdef int declarations(self) except -1
    cdef int declaration(self) except -1
    cdef int constraint(self) except -1
    cdef int a_type(self) except -1
    cdef int wrap(self, int kind, int node) except -1
    cdef int substituted_type(self) except -1
    cdef int applied(self, int node) except -1
    cdef int parameter_type(self) except -1
    cdef int qualified_type(self) except -1
    cdef int function_type(self) except -1
    cdef int dimension(self) except -1
    cdef int decltype(self) except -1
    cdef int more_types(self) except -1
    cdef int vector_type(self) except -1
    cdef int expression(self) except -1
    cdef int make(self, int kind, bytes fields, int index) except -1
    cdef int other_expression(self) except -1
    cdef int list(self, unsigned char end, unsigned char of) except -1
    cdef int parameter_or_fold(self) except -1
    cdef int new(self, bint array) except -1
    cdef int requirements(self, bint with_parameters) except -1
    cdef int unresolved(self) except -1
    cdef int unresolved_in_scopes(self, int node) except -1
    cdef int unresolved_component(self) except -1
    cdef int literal(self) except -1
