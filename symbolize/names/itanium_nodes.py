"""The kinds of nodes of a C++ name. Compiled modules include them as C constants."""

KIND = 0xFF
PACKED = 0x100  # holds a template parameter that may be a pack
SHAPED = 0x200  # may be a function or array, of which a part is written behind the name
EXTRA = 16  # how far the bits of a kind are shifted

# Names. Fields: numbers are marked by #, positions in the linkage name by @; the others are nodes.
NAME = 1  # @start @end
WORD = 2  # #index in WORDS
NESTED = 3  # scope, name
TEMPLATE = 4  # name, LIST
LOCAL = 5  # encoding, entity, NUMBER of the default argument
ENCODING = 6  # name, return type, SIGNATURE
STRUCTOR = 7  # WORD `~` or none, name of the class
TAGGED = 8  # name, NAME of the tag
CONVERSION = 9  # type
PREFIXED = 10  # WORD, node
LAMBDA = 11  # LIST of template parameters, SIGNATURE, NUMBER
UNNAMED = 12  # NUMBER
BINDING = 13  # LIST
ENTITY = 14  # name, MODULE
MODULE = 15  # MODULE, name; in EXTRA whether it is a partition
FRIEND = 16  # scope, name
CONSTRUCTION = 17  # type, type
REFERENCE_TEMPORARY = 18  # NUMBER, name
ENABLE_IF = 19  # name, LIST
LIST = 20  # item, LIST of those behind it, in the head the last LIST
SIGNATURE = 21  # LIST of parameters, constraint, exception specification; in EXTRA the qualifiers
NUMBER = 22  # #value
# Template arguments.
PACK = 23  # LIST
PARAMETER = 24  # #index, argument; in EXTRA whether it is of an outer template, which has its argument for good
FORWARD = 25  # #index, argument
# Types.
POINTER = 30  # type
REFERENCE = 31  # type
RVALUE_REFERENCE = 32  # type
QUALIFIED = 33  # type; in EXTRA the qualifier
FUNCTION = 34  # return type, SIGNATURE
ARRAY = 35  # dimension, type
MEMBER_POINTER = 36  # class, type
SUFFIXED = 37  # type, WORD
VENDOR_QUALIFIED = 38  # type, name, LIST
VECTOR = 39  # type, dimension
EXPANSION = 40  # pattern
ENCLOSED = 41  # WORD, node: the word, the node and a parenthesis
TRANSFORMED = 42  # name, LIST: what a vendor computes
CONSTRAINED = 43  # constraint, WORD
SELECTED = 44  # pattern, index
# Template parameters of lambdas.
TYPE_PARAMETER = 50  # constraint
VALUE_PARAMETER = 51  # type
TEMPLATE_PARAMETER = 52  # LIST
PACK_OF_PARAMETERS = 53  # parameter
# Expressions.
UNARY = 60  # WORD, operand
POSTFIX = 61  # WORD, operand
BINARY = 62  # WORD, operand, operand
CALL = 63  # function, LIST
INDEX = 64  # operand, operand
CONDITION = 65  # operand, operand, operand
CAST = 66  # type, operand
NAMED_CAST = 67  # WORD, type, operand
NEW = 68  # WORD, SIGNATURE of placement and initializer, type; in EXTRA whether there is an initializer
FOLD = 69  # WORD, operand, operand; in EXTRA its side if it has one operand
BRACED = 70  # type, LIST
ARGUMENT = 71  # #number, 0 is `this`
LITERAL = 72  # type, NAME; in EXTRA whether it is negative
PACK_SIZE = 73  # pack
LIST_SIZE = 74  # LIST
REQUIRES = 75  # LIST of parameters, LIST of requirements
NEEDS_EXPRESSION = 76  # operand, type constraint; in EXTRA whether it is noexcept
NEEDS_TYPE = 77  # type
NEEDS_CONSTRAINT = 78  # operand
SUBOBJECT = 79  # type, operand, NAME of the offset
DESIGNATED = 81  # WORD or none, name or index, value
DESIGNATED_RANGE = 82  # index, index, value
MEMBER = 83  # scope, name: a qualified name in an expression
STRING = 84  # type
ARGUMENTS = 85  # LIST, in parentheses
LAMBDA_VALUE = 86  # type

# How names behind `sr` are read (see `unresolved` of `itanium_parser`).
CLANG_READING = 1
OLD_READING = 2
LAST_READING = 2

# The sides of fold expressions with one operand.
LEFT_FOLD = 1
RIGHT_FOLD = 2

# Qualifiers.
CONST = 1
VOLATILE = 2
RESTRICT = 4
LVALUE = 8
RVALUE = 16
EXPLICIT_OBJECT = 32
