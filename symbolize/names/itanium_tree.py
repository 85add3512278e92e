# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type"
"""The tree of an Itanium C++ linkage name (Itanium C++ ABI, chapter 5.1).

A `Tree` holds the nodes; `itanium_types`, `itanium_parser` (names) and `itanium_expressions` make them,
`itanium_printer` (names and types) and `itanium_text` (expressions) print them. A node is the offset of four numbers in
one array: its kind with its flags, and three fields. 0 is no node. A back reference is the node itself, so a small name
can stand for a text without bounds: parsing takes steps in proportion to the name, and what prints has limits of its
own (R117).

What a template parameter (`PARAMETER`) stands for depends on where it is printed, as compilers take the first
parameters of all templates for one type that can be referred back to: the arguments of the function around it count, in
the signature of a generic lambda it is `auto`, and elsewhere it is what it was where it was read. The arguments for the
type of a conversion operator follow it (`FORWARD`).
"""

from __future__ import annotations

from array import array

import cython

MAX_NAME = 1 << 16
# Interpreted, a level takes up to two calls, of which Python allows 1,000.
MAX_DEPTH = 320
MAX_STEPS = 1 << 20
_PADDING = cython.declare(cython.int, 8)

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
ENTITY = 14  # MODULE, name
MODULE = 15  # MODULE, name; in EXTRA whether it is a partition
FRIEND = 16  # scope, name
CONSTRUCTION = 17  # type, type
REFERENCE_TEMPORARY = 18  # name, NUMBER
ENABLE_IF = 19  # name, LIST
LIST = 20  # item, LIST
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
TRANSFORMED = 42  # name, LIST
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
FOLD = 69  # WORD, operand, operand; in EXTRA whether it is a left fold
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
VENDOR_CALL = 80  # name, LIST
DESIGNATED = 81  # WORD or none, name or index, value
DESIGNATED_RANGE = 82  # index, index, value
MEMBER = 83  # scope, name: a qualified name in an expression
STRING = 84  # type
ARGUMENTS = 85  # LIST, in parentheses
LAMBDA_VALUE = 86  # type

# How names behind `sr` are read (see `unresolved` of `itanium_expressions`).
CLANG_READING = 1
OLD_READING = 2
LAST_READING = 2

# Qualifiers.
CONST = 1
VOLATILE = 2
RESTRICT = 4
LVALUE = 8
RVALUE = 16
EXPLICIT_OBJECT = 32

WORDS: list[bytes] = []
_INDEX: dict[bytes, int] = {}


def word(text: bytes) -> int:
    """The index of a text of the language in `WORDS`."""
    index = _INDEX.setdefault(text, len(WORDS))
    if index == len(WORDS):
        WORDS.append(text)
    return index


_ANONYMOUS = cython.declare(cython.int, word(b"(anonymous namespace)"))


@cython.cclass
class Tree:
    """The nodes of one name at a time; its arrays serve all names. Not for two threads at once."""

    def __init__(self) -> None:
        # All attributes have values here for the uncompiled class.
        self.bad = self.refused = self.generic = self.forwarding = self.converting = self.ambiguous = self.leveled = (
            False
        )
        self.templated = self.special = False
        self.at = self.size = self.depth = self.steps = self.quals = self.reading = 0
        self.params = self.outer = self.forwards = self.last_name = self.substitutions = 0
        self.text = memoryview(bytearray(256))
        self.nodes = memoryview(array("i", bytes(4 * 1024)))
        self.subs = memoryview(array("i", bytes(4 * 64)))
        self.count = 4

    def load(self, name: bytes) -> cython.int:
        """Take a name in."""
        i: cython.Py_ssize_t
        size: cython.Py_ssize_t = len(name)
        if size + _PADDING > len(self.text):
            self.text = memoryview(bytearray(2 * size + _PADDING))
        for i in range(size):
            self.text[i] = name[i]
        for i in range(size, size + _PADDING):
            self.text[i] = 0
        self.size = size
        self.reading = 0
        return self.reset()

    def reset(self) -> cython.int:
        """Begin anew with the name."""
        self.bad = self.refused = self.generic = self.forwarding = self.converting = self.ambiguous = self.leveled = (
            False
        )
        self.templated = self.special = False
        self.at = self.depth = self.steps = self.quals = 0
        self.params = self.outer = self.forwards = self.last_name = self.substitutions = 0
        self.count = 4
        return 0

    def fail(self) -> cython.int:
        """The name is not one of the grammar."""
        self.bad = True
        return 0

    def refuse(self) -> cython.int:
        """The name costs too much."""
        self.bad = self.refused = True
        return 0

    def node(self, kind: cython.int, a: cython.int, b: cython.int, c: cython.int) -> cython.int:
        """A node whose fields are not all nodes."""
        at: cython.int = self.count
        if at + 4 > len(self.nodes):
            grown = array("i", self.nodes)
            grown.frombytes(bytes(4 * len(self.nodes)))
            self.nodes = memoryview(grown)
        self.nodes[at] = kind
        self.nodes[at + 1] = a
        self.nodes[at + 2] = b
        self.nodes[at + 3] = c
        self.count = at + 4
        return at

    def join(self, kind: cython.int, a: cython.int, b: cython.int, c: cython.int) -> cython.int:
        """A node all of whose fields are nodes; it holds a pack if one of them does."""
        return self.node(kind | (self.nodes[a] | self.nodes[b] | self.nodes[c]) & PACKED, a, b, c)

    def kind(self, node: cython.int) -> cython.int:
        """What a node is."""
        return self.nodes[node] & KIND

    def append(self, tail: cython.int, item: cython.int) -> cython.int:
        """The LIST node that holds an item, linked to the one in front of it."""
        node: cython.int = self.node(LIST | self.nodes[item] & PACKED, item, 0, 0)
        if tail:
            self.nodes[tail + 2] = node
        return node

    def close(self, head: cython.int) -> cython.int:
        """A list that is complete; its head holds a pack if one of its items does."""
        flags: cython.int = 0
        node: cython.int = head
        while node:
            flags |= self.nodes[node]
            node = self.nodes[node + 2]
        if head:
            self.nodes[head] |= flags & PACKED
        return head

    def add(self, node: cython.int) -> cython.int:
        """Take a component up among those that can be referred back to."""
        if self.substitutions == len(self.subs):
            grown = array("i", self.subs)
            grown.frombytes(bytes(4 * len(self.subs)))
            self.subs = memoryview(grown)
        self.subs[self.substitutions] = node
        self.substitutions += 1
        return node

    def expect(self, byte: cython.uchar) -> cython.int:
        """Pass a character that must be there."""
        if self.text[self.at] != byte:
            return self.fail()
        self.at += 1
        return 0

    def number(self) -> cython.int:
        """Decimal digits, at least one."""
        value: cython.int = 0
        byte: cython.uchar = self.text[self.at]
        if not ord("0") <= byte <= ord("9"):
            return self.fail()
        while ord("0") <= byte <= ord("9"):
            if value > MAX_NAME * 16:
                return self.fail()
            value = value * 10 + byte - ord("0")
            self.at += 1
            byte = self.text[self.at]
        return value

    def ordinal(self) -> cython.int:
        """`_` is 0, `0_` is 1 and so on."""
        value: cython.int = 0
        if self.text[self.at] != ord("_"):
            value = self.number() + 1
        self.expect(ord("_"))
        return value

    def sequence(self) -> cython.int:
        """The same with digits of base 36, `0` to `9` and `A` to `Z`."""
        value: cython.int = 0
        byte: cython.uchar = self.text[self.at]
        if byte == ord("_"):
            self.at += 1
            return 0
        if self.text[self.at + 1] == ord("_") and byte <= ord("Z"):
            self.at += 2
            return byte - ord("0") + 1 if byte <= ord("9") else byte - ord("A") + 11
        while True:
            if ord("0") <= byte <= ord("9"):
                value = value * 36 + byte - ord("0")
            elif ord("A") <= byte <= ord("Z"):
                value = value * 36 + byte - ord("A") + 10
            else:
                break
            if value > MAX_NAME:
                return self.fail()
            self.at += 1
            byte = self.text[self.at]
        self.expect(ord("_"))
        return value + 1

    def enter(self) -> cython.int:
        """Count a level of nesting."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse()
        return 0

    def slice(self) -> cython.int:
        """The length of an identifier and the identifier."""
        start: cython.int
        size: cython.int
        byte: cython.uchar = self.text[self.at]
        size = byte - ord("0")
        if not 1 <= size <= 9:
            return self.fail()
        self.at += 1
        byte = self.text[self.at]
        while ord("0") <= byte <= ord("9"):
            size = size * 10 + byte - ord("0")
            if size > MAX_NAME:
                return self.fail()
            self.at += 1
            byte = self.text[self.at]
        start = self.at
        if size > self.size - start:
            return self.fail()
        self.at = start + size
        return self.node(NAME, start, self.at, 0)

    def source_name(self) -> cython.int:
        """An identifier, which constructors behind it are named by; `_GLOBAL__N_1` is an anonymous namespace."""
        node: cython.int = self.slice()
        start: cython.int = self.nodes[node + 1]
        if (
            self.text[start] == ord("_")
            and self.nodes[node + 2] - start >= 10
            and self.text[start + 1] == ord("G")
            and self.text[start + 2] == ord("L")
            and self.text[start + 3] == ord("O")
            and self.text[start + 4] == ord("B")
            and self.text[start + 5] == ord("A")
            and self.text[start + 6] == ord("L")
            and self.text[start + 7] == ord("_")
            and self.text[start + 9] == ord("N")
        ):
            self.nodes[node] = WORD
            self.nodes[node + 1] = _ANONYMOUS
        self.last_name = node
        return node

    def tags(self, node: cython.int) -> cython.int:
        """ABI tags, `B` an identifier each."""
        while self.text[self.at] == ord("B") and not self.bad:
            self.at += 1
            node = self.node(TAGGED | self.nodes[node] & PACKED, node, self.slice(), 0)
        return node

    def qualifiers(self) -> cython.int:
        """The qualifiers of the object that a member function is called for."""
        quals: cython.int = 0
        if self.text[self.at] == ord("r"):
            self.at += 1
            quals |= RESTRICT
        if self.text[self.at] == ord("V"):
            self.at += 1
            quals |= VOLATILE
        if self.text[self.at] == ord("K"):
            self.at += 1
            quals |= CONST
        if self.text[self.at] == ord("R"):
            self.at += 1
            quals |= LVALUE
        elif self.text[self.at] == ord("O"):
            self.at += 1
            quals |= RVALUE
        return quals

    def digits(self) -> cython.int:
        """Decimal digits as they are written."""
        start: cython.int = self.at
        while ord("0") <= self.text[self.at] <= ord("9"):
            self.at += 1
        return self.node(NAME, start, self.at, 0)
