from symbolize.names.itanium_expressions cimport ExpressionParser
from symbolize.names.itanium_tree cimport (
    ARRAY,
    BINDING,
    CONST,
    CONSTRAINED,
    CONSTRUCTION,
    CONVERSION,
    ENABLE_IF,
    ENCLOSED,
    ENCODING,
    ENTITY,
    EXPANSION,
    EXPLICIT_OBJECT,
    EXTRA,
    FORWARD,
    FRIEND,
    FUNCTION,
    KIND,
    LAMBDA,
    LIST,
    LITERAL,
    LOCAL,
    LVALUE,
    MAX_DEPTH,
    MEMBER_POINTER,
    MODULE,
    NAME,
    NESTED,
    NUMBER,
    PACK,
    PACK_OF_PARAMETERS,
    PACKED,
    PARAMETER,
    POINTER,
    PREFIXED,
    QUALIFIED,
    REFERENCE,
    REFERENCE_TEMPORARY,
    RESTRICT,
    RVALUE,
    RVALUE_REFERENCE,
    SELECTED,
    SHAPED,
    STRUCTOR,
    SUFFIXED,
    TAGGED,
    TEMPLATE,
    TEMPLATE_PARAMETER,
    TRANSFORMED,
    TYPE_PARAMETER,
    UNNAMED,
    VALUE_PARAMETER,
    VECTOR,
    VENDOR_QUALIFIED,
    VOLATILE,
    WORD,
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
