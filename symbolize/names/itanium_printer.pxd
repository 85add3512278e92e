from symbolize.names.itanium_expressions cimport ExpressionParser
from symbolize.names.itanium_tree cimport (
    KIND,
    PACKED,
    SHAPED,
    EXTRA,
    NAME,
    WORD,
    NESTED,
    TEMPLATE,
    LOCAL,
    ENCODING,
    STRUCTOR,
    TAGGED,
    CONVERSION,
    PREFIXED,
    LAMBDA,
    UNNAMED,
    BINDING,
    ENTITY,
    MODULE,
    FRIEND,
    CONSTRUCTION,
    REFERENCE_TEMPORARY,
    ENABLE_IF,
    LIST,
    NUMBER,
    PACK,
    PARAMETER,
    FORWARD,
    POINTER,
    REFERENCE,
    RVALUE_REFERENCE,
    QUALIFIED,
    FUNCTION,
    ARRAY,
    MEMBER_POINTER,
    SUFFIXED,
    VENDOR_QUALIFIED,
    VECTOR,
    EXPANSION,
    ENCLOSED,
    TRANSFORMED,
    CONSTRAINED,
    SELECTED,
    TYPE_PARAMETER,
    VALUE_PARAMETER,
    TEMPLATE_PARAMETER,
    PACK_OF_PARAMETERS,
    LITERAL,
    CONST,
    VOLATILE,
    RESTRICT,
    LVALUE,
    RVALUE,
    EXPLICIT_OBJECT,
)


cdef class Printer(ExpressionParser):
    cdef bytearray printed
    cdef unsigned char[::1] out
    cdef int used
    cdef int pack_index
    cdef int closures
    cdef int heads
    cdef int generics
    cdef int printing
    cdef bint keep_arguments
    cdef bint full
    cdef int dropped

    cdef int show_operand(self, int node) except -1
    cdef int show_expression(self, int node, int kind) except -1
    cdef int show_rare_expression(self, int node, int kind) except -1
    cdef int reserve(self, Py_ssize_t size) except -1
    cdef int put(self, unsigned char byte) except -1
    cdef int put_word(self, bytes text) except -1
    cdef int put_slice(self, int start, int end) except -1
    cdef int put_number(self, int value) except -1
    cdef int last(self) except -1
    cdef int count_steps(self, int count) except -1
    cdef int show(self, int node) except -1
    cdef int show_list(self, int node) except -1
    cdef int show_arguments(self, int node) except -1
    cdef int left(self, int node) except -1
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
    cdef int item(self, int node, int index) except -1
    cdef int bound(self, int node, int kind) except -1
    cdef int strip(self, int node) except -1
    cdef int find_pack(self, int node) except -1
    cdef int length(self, int pack) except -1
    cdef int show_expansion(self, int pattern) except -1
    cdef int shape(self, int node) except -1
    cdef bint opens(self, int node) except -1
    cdef int target(self, int node) except -1
    cdef bint refers_to_value(self, int node) except -1
    cdef int left_of_type(self, int node, int kind) except -1
    cdef int open(self, int node, bint spaced) except -1
    cdef int show_qualifier(self, int node, int quals) except -1
    cdef int right(self, int node) except -1
