cdef int MAX_NAME
cdef int MAX_DEPTH
cdef int MAX_STEPS
cdef int KIND
cdef int PACKED
cdef int SHAPED
cdef int EXTRA
cdef int NAME
cdef int WORD
cdef int NESTED
cdef int TEMPLATE
cdef int LOCAL
cdef int ENCODING
cdef int STRUCTOR
cdef int TAGGED
cdef int CONVERSION
cdef int PREFIXED
cdef int LAMBDA
cdef int UNNAMED
cdef int BINDING
cdef int ENTITY
cdef int MODULE
cdef int FRIEND
cdef int CONSTRUCTION
cdef int REFERENCE_TEMPORARY
cdef int ENABLE_IF
cdef int LIST
cdef int SIGNATURE
cdef int NUMBER
cdef int PACK
cdef int PARAMETER
cdef int FORWARD
cdef int POINTER
cdef int REFERENCE
cdef int RVALUE_REFERENCE
cdef int QUALIFIED
cdef int FUNCTION
cdef int ARRAY
cdef int MEMBER_POINTER
cdef int SUFFIXED
cdef int VENDOR_QUALIFIED
cdef int VECTOR
cdef int EXPANSION
cdef int ENCLOSED
cdef int TRANSFORMED
cdef int CONSTRAINED
cdef int SELECTED
cdef int TYPE_PARAMETER
cdef int VALUE_PARAMETER
cdef int TEMPLATE_PARAMETER
cdef int PACK_OF_PARAMETERS
cdef int UNARY
cdef int POSTFIX
cdef int BINARY
cdef int CALL
cdef int INDEX
cdef int CONDITION
cdef int CAST
cdef int NAMED_CAST
cdef int NEW
cdef int FOLD
cdef int BRACED
cdef int ARGUMENT
cdef int LITERAL
cdef int PACK_SIZE
cdef int LIST_SIZE
cdef int REQUIRES
cdef int NEEDS_EXPRESSION
cdef int NEEDS_TYPE
cdef int NEEDS_CONSTRAINT
cdef int SUBOBJECT
cdef int VENDOR_CALL
cdef int DESIGNATED
cdef int DESIGNATED_RANGE
cdef int MEMBER
cdef int STRING
cdef int ARGUMENTS
cdef int LAMBDA_VALUE
cdef int CLANG_READING
cdef int OLD_READING
cdef int LAST_READING
cdef int CONST
cdef int VOLATILE
cdef int RESTRICT
cdef int LVALUE
cdef int RVALUE
cdef int EXPLICIT_OBJECT


cdef class Tree:
    cdef unsigned char[::1] text
    cdef int size
    cdef int at
    cdef int[::1] nodes
    cdef int count
    cdef int[::1] subs
    cdef int substitutions
    cdef bint bad
    cdef bint refused
    cdef int depth
    cdef int steps
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

    cdef int load(self, bytes name) except -1
    cdef int reset(self) except -1
    cdef int fail(self) except -1
    cdef int refuse(self) except -1
    cdef int node(self, int kind, int a, int b, int c) except -1
    cdef int join(self, int kind, int a, int b, int c) except -1
    cdef int kind(self, int node) except -1
    cdef int append(self, int tail, int item) except -1
    cdef int close(self, int head) except -1
    cdef int add(self, int node) except -1
    cdef int expect(self, unsigned char byte) except -1
    cdef int number(self) except -1
    cdef int ordinal(self) except -1
    cdef int sequence(self) except -1
    cdef int enter(self) except -1
    cdef int slice(self) except -1
    cdef int source_name(self) except -1
    cdef int tags(self, int node) except -1
    cdef int qualifiers(self) except -1
    cdef int digits(self) except -1
