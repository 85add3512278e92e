from symbolize.names.itanium_parser cimport Parser
from symbolize.names.itanium_tree cimport (
    EXTRA,
    NAME,
    WORD,
    PREFIXED,
    SIGNATURE,
    ARRAY,
    EXPANSION,
    SELECTED,
    UNARY,
    POSTFIX,
    BINARY,
    CALL,
    INDEX,
    CONDITION,
    CAST,
    NAMED_CAST,
    NEW,
    FOLD,
    BRACED,
    ARGUMENT,
    LITERAL,
    PACK_SIZE,
    LIST_SIZE,
    REQUIRES,
    NEEDS_EXPRESSION,
    NEEDS_TYPE,
    NEEDS_CONSTRAINT,
    SUBOBJECT,
    VENDOR_CALL,
    DESIGNATED,
    DESIGNATED_RANGE,
    MEMBER,
    STRING,
    ARGUMENTS,
    LAMBDA_VALUE,
    CLANG_READING,
    OLD_READING,
)


cdef class ExpressionParser(Parser):
    cdef int operation(self, int code) except -1
    cdef int other_expression(self, int code) except -1
    cdef int list(self) except -1
    cdef int call_or_cast(self, unsigned char letter) except -1
    cdef int pack_expression(self, unsigned char letter) except -1
    cdef int arguments_until_end(self) except -1
    cdef int subobject(self) except -1
    cdef int parameter_or_fold(self) except -1
    cdef int designated(self, unsigned char letter) except -1
    cdef int new(self, bint array) except -1
    cdef int requirements(self, bint with_parameters) except -1
    cdef int vendor_expression(self) except -1
    cdef int unresolved(self) except -1
    cdef int unresolved_in_scopes(self, int node) except -1
    cdef int unresolved_component(self) except -1
