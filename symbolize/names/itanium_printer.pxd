include "itanium_nodes.pxi"

from symbolize.names.demangler cimport MAX_DEPTH, MAX_STEPS
from symbolize.names.itanium_lexer cimport CppTree


cdef class CppPrinter(CppTree):
    cdef CppTree tree
    cdef int pack_index
    cdef int closures
    cdef int heads
    cdef int generics
    cdef bint keep_arguments
    cdef bint full
    cdef int dropped

    cdef bytes print(self, int node, int mode)
    cdef int put_number(self, int value) except -1
    cdef int last(self) except -1
    cdef int show(self, int node) except -1
    cdef int show_list(self, int node) except -1
    cdef int show_arguments(self, int node) except -1
    cdef int left(self, int node) except -1
    cdef int show_spelled(self, int node, int kind) except -1
    cdef int show_operand(self, int node) except -1
    cdef int show_name(self, int node, int kind) except -1
    cdef int arguments_of(self, int node) except -1
    cdef int show_local(self, int around, int node, int default) except -1
    cdef int show_encoding(self, int node) except -1
    cdef int show_parameters(self, int signature) except -1
    cdef int show_qualifiers(self, int quals) except -1
    cdef int show_lambda(self, int templates, int signature, int number) except -1
    cdef int show_declarations(self, int node, bint named) except -1
    cdef int show_declaration(self, int node, int kind, int number) except -1
    cdef int show_parameter_name(self, int kind, int index) except -1
    cdef int show_argument(self, int node, int kind) except -1
    cdef int bound(self, int node, int kind) except -1
    cdef int strip(self, int node) except -1
    cdef int find_pack(self, int node) except -1
    cdef int pack_length(self, int pack) except -1
    cdef int show_expansion(self, int pattern) except -1
    cdef int shape(self, int node) except -1
    cdef bint opens(self, int node) except -1
    cdef int target(self, int node) except -1
    cdef bint refers_to_value(self, int node) except -1
    cdef int left_of_type(self, int node, int kind) except -1
    cdef int open(self, int node, bint spaced) except -1
    cdef int show_qualifier(self, int node, int quals) except -1
    cdef int right(self, int node) except -1
    cdef int show_expression(self, int node, int kind) except -1
    cdef int show_unary(self, int node) except -1
    cdef int show_fold(self, int operator, int a, int b, int side) except -1
    cdef int show_new(self, int operator, int parts, int of) except -1
    cdef int show_literal(self, int of, int value, bint negative) except -1
    cdef int show_rare_expression(self, int node, int kind) except -1
    cdef int show_pack_size(self, int operand) except -1
    cdef int list_size(self, int node) except -1
    cdef int show_subobject(self, int of, int operand, int offset) except -1
    cdef int show_designated(self, int node, int kind) except -1
    cdef int show_requirements(self, int parameters, int node) except -1
    cdef int show_requirement(self, int node) except -1
