# cython: boundscheck=True, wraparound=False, initializedcheck=False, infer_types=True
"""The printer of C++ names: the text of a tree, spelled as the C++ runtime of GCC spells it.

What is newer than that runtime is spelled as by c++filt of binutils 2.40 and, where that is too old as well, as by
llvm-cxxfilt 19. A text is made straight from the tree in each mode: template arguments and parameters that a mode
leaves out are not printed, whatever they expand to (R117).
"""

from __future__ import annotations

import cython

from symbolize.names.itanium_codes import WORDS, word

if not cython.compiled:
    from symbolize.names.demangler import MAX_DEPTH, MAX_STEPS
    from symbolize.names.itanium_lexer import CppTree
    from symbolize.names.itanium_nodes import *

DEFAULT = 0
TEMPLATES = 1
FULL = 2

_WORDS = cython.declare(list, WORDS)
_GLOBAL = cython.declare(cython.int, word(b"::"))
_AND = cython.declare(cython.int, word(b"&"))
_GREATER = cython.declare(cython.int, word(b">"))
_BOOL = cython.declare(cython.int, word(b"bool"))
_INT = cython.declare(cython.int, word(b"int"))
# What stands behind the digits of a number of each type.
_number_suffixes = {
    word(b"unsigned int"): b"u",
    word(b"long"): b"l",
    word(b"unsigned long"): b"ul",
    word(b"long long"): b"ll",
    word(b"unsigned long long"): b"ull",
}
_NUMBER_SUFFIXES = cython.declare(dict, _number_suffixes)
_FLOATS = frozenset(word(text) for text in (b"float", b"double", b"long double", b"__float128"))
_BASE = cython.declare(cython.int, 10)  # of numbers
_NO_SHAPE = cython.declare(cython.int, 0)
# Nodes that are their first two fields with words in front of, between, and behind them.
_spellings = {
    STRUCTOR: (b"", b"", b""),
    TAGGED: (b"", b"[abi:", b"]"),
    CONVERSION: (b"operator ", b"", b""),
    PREFIXED: (b"", b"", b""),
    UNNAMED: (b"{unnamed type#", b"", b"}"),
    BINDING: (b"[", b"", b"]"),
    ENTITY: (b"", b"@", b""),
    CONSTRUCTION: (b"construction vtable for ", b"-in-", b""),
    REFERENCE_TEMPORARY: (b"reference temporary #", b" for ", b""),
    SUFFIXED: (b"", b"", b""),
    ENCLOSED: (b"", b"", b")"),
    VECTOR: (b"", b" __vector(", b")"),
    TRANSFORMED: (b"", b"(", b")"),
    CONSTRAINED: (b"", b" ", b""),
    SELECTED: (b"", b"...[", b"]"),
    BRACED: (b"", b"{", b"}"),
    NEEDS_TYPE: (b" typename ", b"", b";"),
    NEEDS_CONSTRAINT: (b" requires ", b"", b";"),
    MEMBER: (b"", b"::", b""),
    STRING: (b'"<', b"", b'>"'),
    ARGUMENTS: (b"", b"", b""),
    LAMBDA_VALUE: (b"", b"", b"{}"),
}
_SPELLINGS = cython.declare(list, [_spellings.get(kind) for kind in range(KIND + 1)])


@cython.final
@cython.cclass
class CppPrinter(CppTree):
    """Makes the texts of the nodes of a tree."""

    def __init__(self, tree: CppTree) -> None:
        super().__init__()
        self.tree = tree
        self.text = tree.text
        self.nodes = tree.nodes
        self.pack_index = self.closures = self.heads = self.generics = 0
        self.keep_arguments = self.full = False
        self.dropped = -1

    def print(self, node: cython.int, mode: cython.int) -> bytes | None:
        """The text of a node in a mode; None if it costs too much."""
        # The arrays of a tree only grow: one of the same size is the same.
        if len(self.text) != len(self.tree.text):
            self.text = self.tree.text
        if len(self.nodes) != len(self.tree.nodes):
            self.nodes = self.tree.nodes
        self.bad = self.refused = False
        self.used = self.steps = self.depth = 0
        self.pack_index = self.closures = self.heads = self.generics = 0
        self.dropped = -1
        self.keep_arguments = mode != DEFAULT
        self.full = mode == FULL
        if not self.full and self.kind(node) == ENCODING:
            self.generics = self.arguments_of(self.nodes[node + 1])
            node = self.nodes[node + 1]
        self.show(node)
        return None if self.bad else bytes(self.printed[: self.used])

    def put_number(self, value: cython.int) -> cython.int:
        """Print a number."""
        return self.put(ord("0") + value) if value < _BASE else self.put_word(b"%d" % value)

    def last(self) -> cython.int:
        """The last character that was printed."""
        return self.out[self.used - 1] if self.used else 0

    def show(self, node: cython.int) -> cython.int:
        """Print a node."""
        self.left(node)
        if self.nodes[node] & SHAPED:
            self.right(node)
        return 0

    def show_list(self, node: cython.int) -> cython.int:
        """Print items with commas between them; a pack without elements is no item."""
        first = True
        while node and not self.bad:
            before = self.used
            if not first:
                self.put_word(b", ")
            start = self.used
            self.show(self.nodes[node + 1])
            if self.used == start:
                self.dropped = -1 if first else before
                self.used = before
            else:
                first = False
            node = self.nodes[node + 2]
        return 0

    def show_arguments(self, node: cython.int) -> cython.int:
        """Print template arguments in their brackets."""
        if self.last() == ord("<"):
            self.put(ord(" "))
        self.put(ord("<"))
        self.show_list(node)
        # The runtime forgets what it printed in front of an empty pack.
        if self.last() == ord(">") and self.dropped != self.used:
            self.put(ord(" "))
        return self.put(ord(">"))

    def left(self, node: cython.int) -> cython.int:
        """Print a node, of a type what is written in front of the name."""
        if self.bad:
            return 0
        self.steps += 1
        if self.steps > MAX_STEPS:
            return self.refuse()
        kind = self.nodes[node] & KIND
        # Words and identifiers first: they need no more.
        if kind == NAME:
            return self.put_slice(self.nodes[node + 1], self.nodes[node + 2])
        if kind == WORD:
            return self.put_word(_WORDS[self.nodes[node + 1]])
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse()
        if kind == NESTED:
            self.left(self.nodes[node + 1])
            self.put_word(b"::")
            self.left(self.nodes[node + 2])
        elif kind == TEMPLATE:
            self.left(self.nodes[node + 1])
            if self.keep_arguments:
                self.show_arguments(self.nodes[node + 2])
        elif kind <= NUMBER:
            self.show_name(node, kind)
        elif kind <= FORWARD:
            self.show_argument(node, kind)
        elif kind <= SELECTED:
            self.left_of_type(node, kind)
        else:
            self.show_expression(node, kind)
        self.depth -= 1
        return 0

    def show_spelled(self, node: cython.int, kind: cython.int) -> cython.int:
        """Print a node by `_SPELLINGS`; nothing if it is none."""
        spelling = _SPELLINGS[kind]
        if spelling is None:
            return 0
        self.put_word(spelling[0])
        self.show(self.nodes[node + 1])
        self.put_word(spelling[1])
        self.show(self.nodes[node + 2])
        return self.put_word(spelling[2])

    def show_operand(self, node: cython.int) -> cython.int:
        """Print an operand, in parentheses unless it is a plain name."""
        node = self.strip(node)
        if self.kind(node) in (NAME, NESTED, MEMBER, BRACED, ARGUMENT):
            return self.show(node)
        self.put(ord("("))
        self.show(node)
        return self.put(ord(")"))

    def show_name(self, node: cython.int, kind: cython.int) -> cython.int:
        """Print a name that is not just an identifier."""
        a = self.nodes[node + 1]
        b = self.nodes[node + 2]
        if kind == LOCAL:
            return self.show_local(a, b, self.nodes[node + 3])
        if kind == ENCODING:
            return self.show_encoding(node)
        if kind == LAMBDA:
            return self.show_lambda(a, b, self.nodes[node + 3])
        if kind == LIST:
            return self.show_list(node)
        if kind == NUMBER:
            return self.put_number(a)
        if kind == MODULE:
            if a:
                self.left(a)
            if self.nodes[node] >> EXTRA:
                self.put(ord(":"))
            elif a:
                self.put(ord("."))
            return self.left(b)
        if kind == FRIEND:
            if a:
                self.left(a)
                self.put_word(b"::")
            self.put_word(b"friend ")
            return self.left(b)
        return self.left(a) if kind == ENABLE_IF else self.show_spelled(node, kind)

    def arguments_of(self, node: cython.int) -> cython.int:
        """The template arguments at the end of a function's name."""
        kind = self.kind(node)
        while kind in (LOCAL, NESTED, TAGGED, ENABLE_IF, ENTITY, FRIEND):
            node = self.nodes[node + 1] if kind in (TAGGED, ENABLE_IF, ENTITY) else self.nodes[node + 2]
            kind = self.kind(node)
        return self.nodes[node + 2] if kind == TEMPLATE else 0

    def show_local(self, around: cython.int, node: cython.int, default: cython.int) -> cython.int:
        """Print what is in a function; of that the parameters are left out where they are of others."""
        generics = self.generics
        closures = self.closures
        if self.kind(around) == ENCODING:
            self.generics = self.arguments_of(self.nodes[around + 1])
            self.closures = 0
            self.left(self.nodes[around + 1])
            if self.full:
                self.show_parameters(self.nodes[around + 3])
            else:
                self.put_word(b"()")
            self.show_qualifiers(self.nodes[self.nodes[around + 3]] >> EXTRA)
            self.closures = closures
            self.generics = generics
        else:
            self.show(around)
        self.put_word(b"::")
        if default:
            self.put_word(b"{default arg#")
            self.show(default)
            self.put_word(b"}::")
        return self.left(node)

    def show_encoding(self, node: cython.int) -> cython.int:
        """Print a function with its return type and parameters."""
        name = self.nodes[node + 1]
        returned = self.nodes[node + 2]
        signature = self.nodes[node + 3]
        generics = self.generics
        closures = self.closures
        self.generics = self.arguments_of(name)
        self.closures = 0
        if returned:
            self.left(returned)
            if not self.opens(returned):
                self.put(ord(" "))
        self.left(name)
        self.show_parameters(signature)
        if returned and self.nodes[returned] & SHAPED:
            self.right(returned)
        self.show_qualifiers(self.nodes[signature] >> EXTRA)
        if self.kind(name) == ENABLE_IF:
            self.put_word(b" [enable_if:")
            self.show_list(self.nodes[name + 2])
            self.put(ord("]"))
        if self.nodes[signature + 2]:
            self.put_word(b" requires ")
            self.show(self.nodes[signature + 2])
        self.generics = generics
        self.closures = closures
        return 0

    def show_parameters(self, signature: cython.int) -> cython.int:
        """Print the parameters of a function in their parentheses."""
        self.put(ord("("))
        if self.nodes[signature] >> EXTRA & EXPLICIT_OBJECT:
            self.put_word(b"this ")
        self.show_list(self.nodes[signature + 1])
        return self.put(ord(")"))

    def show_qualifiers(self, quals: cython.int) -> cython.int:
        """Print the qualifiers of the object that a function is called for."""
        if quals & CONST:
            self.put_word(b" const")
        if quals & VOLATILE:
            self.put_word(b" volatile")
        if quals & RESTRICT:
            self.put_word(b" restrict")
        if quals & LVALUE:
            self.put_word(b" &")
        if quals & RVALUE:
            self.put_word(b" &&")
        return 0

    def show_lambda(self, templates: cython.int, signature: cython.int, number: cython.int) -> cython.int:
        """Print the type of a lambda; constraints are not a part of it."""
        heads = self.heads
        self.put_word(b"{lambda")
        self.closures += 1
        self.heads = templates
        if templates and self.keep_arguments:
            self.put(ord("<"))
            self.show_declarations(templates, True)
            self.put(ord(">"))
        self.put(ord("("))
        self.show_list(self.nodes[signature + 1])
        self.put_word(b")#")
        self.closures -= 1
        self.heads = heads
        self.put_number(self.nodes[number + 1])
        return self.put(ord("}"))

    def show_declarations(self, node: cython.int, named: cython.bint) -> cython.int:
        """Print the declarations of template parameters, those of a lambda with names made up for them."""
        index = 0
        while node and not self.bad:
            if index:
                self.put_word(b", ")
            self.show_declaration(self.nodes[node + 1], self.kind(self.nodes[node + 1]), index + 1 if named else 0)
            node = self.nodes[node + 2]
            index += 1
        return 0

    def show_declaration(self, node: cython.int, kind: cython.int, number: cython.int) -> cython.int:
        """Print the declaration of a template parameter; 0 is the number of one without a name."""
        a = self.nodes[node + 1]
        pack: cython.bint = kind == PACK_OF_PARAMETERS
        if pack:
            node = a
            kind = self.kind(node)
            a = self.nodes[node + 1]
        if kind == TYPE_PARAMETER and not a:
            self.put_word(b"typename")
        elif kind in (TYPE_PARAMETER, VALUE_PARAMETER):
            self.show(a)
        elif kind == TEMPLATE_PARAMETER:
            self.put_word(b"template<")
            self.show_declarations(a, False)
            self.put_word(b"> class")
        if pack:
            self.put_word(b"...")
        if number:
            self.put(ord(" "))
            self.show_parameter_name(kind, number - 1)
        return 0

    def show_parameter_name(self, kind: cython.int, index: cython.int) -> cython.int:
        """Print the name that a template parameter of a lambda is given."""
        self.put_word(b"$TT" if kind == TEMPLATE_PARAMETER else b"$N" if kind == VALUE_PARAMETER else b"$T")
        return self.put_number(index)

    def show_argument(self, node: cython.int, kind: cython.int) -> cython.int:
        """Print a pack, or the argument of a template parameter."""
        if kind == PACK:
            return self.show_list(self.nodes[node + 1])
        found = self.strip(node)
        if found != node:
            return self.left(found)
        if kind == FORWARD:
            return self.fail()
        found = self.item(self.heads, self.nodes[node + 1]) if self.closures else 0
        if found:
            if self.kind(found) == PACK_OF_PARAMETERS:
                found = self.nodes[found + 1]
            return self.show_parameter_name(self.kind(found), self.nodes[node + 1])
        self.put_word(b"auto:")
        return self.put_number(self.nodes[node + 1] + 1)

    def bound(self, node: cython.int, kind: cython.int) -> cython.int:
        """The argument of a parameter, which may be a whole pack; 0 if it is not known.

        A parameter denotes the argument of the function in whose signature it is printed, also where another function's
        is referred back to: compilers take the first parameters of all templates for one type. In the parameters of a
        lambda it is `auto` (R259, template parameters).
        """
        if kind == FORWARD:
            return self.nodes[node + 2]
        if self.closures:
            return 0
        kind = 0 if self.nodes[node] >> EXTRA else self.item(self.generics, self.nodes[node + 1])
        return kind if kind else self.nodes[node + 2]

    def strip(self, node: cython.int) -> cython.int:
        """The argument of a node that is a template parameter; of a pack the current element."""
        kind = self.kind(node)
        while (kind in (PARAMETER, FORWARD, PACK)) and not self.bad:
            self.count_steps(1)
            if kind == PACK:
                found = self.item(self.nodes[node + 1], self.pack_index)
            else:
                found = self.bound(node, kind)
            if not found:
                return node
            node = found
            kind = self.kind(node)
        return node

    def find_pack(self, node: cython.int) -> cython.int:
        """The pack that a pattern is repeated for; 0 if it is not known."""
        found = 0
        field = 1
        if not self.nodes[node] & PACKED or self.bad:
            return 0
        self.enter()
        kind = self.kind(node)
        if kind in (PARAMETER, FORWARD):
            found = self.bound(node, kind)
            if self.kind(found) != PACK:
                found = 0
        else:
            while not found and field <= (2 if kind == LIST else 3):
                found = self.find_pack(self.nodes[node + field])
                field += 1
        self.depth -= 1
        return found

    def pack_length(self, pack: cython.int) -> cython.int:
        """The number of elements of a pack."""
        count = 0
        node = self.nodes[pack + 1]
        while node:
            count += 1
            node = self.nodes[node + 2]
        self.count_steps(count)
        return count

    def show_expansion(self, pattern: cython.int) -> cython.int:
        """Print a pattern once for each element of its pack."""
        index = self.pack_index
        pack = self.find_pack(pattern)
        if not pack:
            self.show_operand(pattern)
            return self.put_word(b"...")
        count = self.pack_length(pack)
        for i in range(count):
            if self.bad:
                break
            if i:
                self.put_word(b", ")
            self.pack_index = i
            self.show(pattern)
        self.pack_index = index
        return 0

    def shape(self, node: cython.int) -> cython.int:
        """ARRAY or FUNCTION if that is what a type is, qualified or not."""
        kind = 0
        while self.nodes[node] & SHAPED and not self.bad:
            node = self.strip(node)
            kind = self.kind(node)
            if kind in (ARRAY, FUNCTION):
                return kind
            if kind != QUALIFIED and kind != VENDOR_QUALIFIED:
                break
            node = self.nodes[node + 1]
        return _NO_SHAPE

    def opens(self, node: cython.int) -> cython.bint:
        """Whether what is written in front of the name ends in an open parenthesis and what is inside of it."""
        while self.nodes[node] & SHAPED and not self.bad:
            node = self.strip(node)
            kind = self.kind(node)
            if kind in (ARRAY, FUNCTION):
                return True
            if (kind < POINTER or kind > MEMBER_POINTER) and kind != VENDOR_QUALIFIED:
                break
            node = self.nodes[node + 2] if kind == MEMBER_POINTER else self.nodes[node + 1]
            if self.shape(node):
                return True
        return False

    def target(self, node: cython.int) -> cython.int:
        """What a reference refers to, where references to references are one."""
        node = self.strip(self.nodes[node + 1])
        kind = self.kind(node)
        while (kind in (REFERENCE, RVALUE_REFERENCE)) and not self.bad:
            self.count_steps(1)
            node = self.strip(self.nodes[node + 1])
            kind = self.kind(node)
        return node

    def refers_to_value(self, node: cython.int) -> cython.bint:
        """Whether a reference, and all those that it is one with, is `&&`."""
        kind = self.kind(node)
        while kind == RVALUE_REFERENCE and not self.bad:
            self.count_steps(1)
            node = self.strip(self.nodes[node + 1])
            kind = self.kind(node)
        return kind != REFERENCE

    def left_of_type(self, node: cython.int, kind: cython.int) -> cython.int:
        """Print what is written of a type in front of the name."""
        a = self.nodes[node + 1]
        b = self.nodes[node + 2]
        if kind in (REFERENCE, RVALUE_REFERENCE):
            a = self.target(node)
            self.left(a)
            self.open(a, False)
            self.put(ord("&"))
            return self.put(ord("&")) if self.refers_to_value(node) else 0
        if kind == POINTER:
            self.left(a)
            self.open(a, False)
            return self.put(ord("*"))
        if kind == QUALIFIED:
            self.left(a)
            return self.show_qualifier(a, self.nodes[node] >> EXTRA)
        if kind == FUNCTION:
            self.left(a)
            return 0 if self.opens(a) else self.put(ord(" "))
        if kind == ARRAY:
            return self.left(b)
        if kind == MEMBER_POINTER:
            self.left(b)
            self.open(b, True)
            self.show(a)
            return self.put_word(b"::*")
        if kind == EXPANSION:
            return self.show_expansion(a)
        if kind == VENDOR_QUALIFIED:
            self.left(a)
            self.put(ord(" "))
            self.left(b)
            b = self.nodes[node + 3]
            return self.show_arguments(b) if b and self.keep_arguments else 0
        return self.show_spelled(node, kind)

    def open(self, node: cython.int, spaced: cython.bint) -> cython.int:
        """Print a parenthesis between a function or array and what points to it."""
        shape = self.shape(node)
        if shape == ARRAY or (spaced and not shape):
            self.put(ord(" "))
        return self.put(ord("(")) if shape else 0

    def show_qualifier(self, node: cython.int, quals: cython.int) -> cython.int:
        """Print a qualifier unless the type has it already."""
        node = self.strip(node)
        while self.kind(node) == QUALIFIED and not self.bad:
            self.count_steps(1)
            if self.nodes[node] >> EXTRA == quals:
                return 0
            node = self.strip(self.nodes[node + 1])
        return self.show_qualifiers(quals)

    def right(self, node: cython.int) -> cython.int:
        """Print what is written of a type behind the name."""
        if not self.enter():
            return 0
        node = self.strip(node)
        kind = self.kind(node)
        if kind in (POINTER, REFERENCE, RVALUE_REFERENCE, MEMBER_POINTER):
            if kind in (REFERENCE, RVALUE_REFERENCE):
                node = self.target(node)
            else:
                node = self.nodes[node + 1] if kind == POINTER else self.nodes[node + 2]
            if self.shape(node):
                self.put(ord(")"))
            if self.nodes[node] & SHAPED:
                self.right(node)
        elif kind in (QUALIFIED, VENDOR_QUALIFIED):
            self.right(self.nodes[node + 1])
        elif kind == FUNCTION:
            signature = self.nodes[node + 2]
            self.show_parameters(signature)
            self.show_qualifiers(self.nodes[signature] >> EXTRA)
            if self.nodes[signature + 3]:
                self.left(self.nodes[signature + 3])
            self.right(self.nodes[node + 1])
        elif kind == ARRAY:
            if self.last() != ord("]"):
                self.put(ord(" "))
            self.put(ord("["))
            if self.nodes[node + 1]:
                self.show(self.nodes[node + 1])
            self.put(ord("]"))
            self.right(self.nodes[node + 2])
        self.depth -= 1
        return 0

    def show_expression(self, node: cython.int, kind: cython.int) -> cython.int:
        """Print an expression."""
        a = self.nodes[node + 1]
        b = self.nodes[node + 2]
        c = self.nodes[node + 3]
        if kind == LITERAL:
            return self.show_literal(a, b, self.nodes[node] >> EXTRA != 0)
        if kind == UNARY:
            return self.show_unary(node)
        if kind == BINARY:
            # An operator `>` would read as the end of template arguments.
            if self.nodes[a + 1] == _GREATER:
                self.put(ord("("))
            self.show_operand(b)
            self.left(a)
            self.show_operand(c)
            return self.put(ord(")")) if self.nodes[a + 1] == _GREATER else 0
        if kind == CALL:
            self.show_operand(self.nodes[a + 1] if self.kind(a) == ENCODING else a)
            self.put(ord("("))
            self.show_list(b)
            return self.put(ord(")"))
        if kind == ARGUMENT:
            if not a:
                return self.put_word(b"this")
            self.put_word(b"{parm#")
            self.put_number(a)
            return self.put(ord("}"))
        if kind == POSTFIX:
            self.show_operand(b)
            return self.left(a)
        if kind == INDEX:
            self.show_operand(a)
            self.put(ord("["))
            self.show(b)
            return self.put(ord("]"))
        if kind == CONDITION:
            self.show_operand(a)
            self.put(ord("?"))
            self.show_operand(b)
            self.put_word(b" : ")
            return self.show_operand(c)
        if kind == CAST:
            self.put(ord("("))
            self.show(a)
            self.put(ord(")"))
            return self.show_operand(b)
        if kind == NAMED_CAST:
            self.left(a)
            if self.keep_arguments:
                self.put(ord("<"))
                self.show(b)
                self.put(ord(">"))
            self.put(ord("("))
            self.show(c)
            return self.put(ord(")"))
        if kind == FOLD:
            return self.show_fold(a, b, c, self.nodes[node] >> EXTRA)
        if kind == NEW:
            return self.show_new(a, b, c)
        return self.show_rare_expression(node, kind)

    def show_unary(self, node: cython.int) -> cython.int:
        """Print an operator in front of its operand."""
        operator = self.nodes[node + 1]
        operand = self.nodes[node + 2]
        if self.nodes[operator + 1] == _AND and self.kind(operand) == ENCODING:
            # A function is named without its parameters.
            name = self.nodes[operand + 1]
            if self.kind(name) == NESTED and not self.nodes[self.nodes[operand + 3]] >> EXTRA:
                operand = name
        self.left(operator)
        if self.nodes[operator + 1] == _GLOBAL:
            return self.show(operand)
        if self.nodes[node] >> EXTRA:
            self.put(ord("("))
            self.show(operand)
            return self.put(ord(")"))
        return self.show_operand(operand)

    def show_fold(self, operator: cython.int, a: cython.int, b: cython.int, side: cython.int) -> cython.int:
        """Print a fold expression."""
        self.put(ord("("))
        if side == LEFT_FOLD:
            self.put_word(b"...")
            self.left(operator)
            self.show_operand(a)
        else:
            self.show_operand(a)
            self.left(operator)
            self.put_word(b"...")
            if side != RIGHT_FOLD:
                self.left(operator)
                self.show_operand(b)
        return self.put(ord(")"))

    def show_new(self, operator: cython.int, parts: cython.int, of: cython.int) -> cython.int:
        """Print a new expression."""
        self.left(operator)
        if self.nodes[parts + 1]:
            self.put(ord("("))
            self.show_list(self.nodes[parts + 1])
            self.put_word(b") ")
        self.show(of)
        if self.nodes[parts + 2]:
            self.show_operand(self.nodes[parts + 2])
        return 0

    def show_literal(self, of: cython.int, value: cython.int, negative: cython.bint) -> cython.int:
        """Print a value with its type, which the suffix of a number says for some."""
        suffix: bytes | None = None
        index = self.nodes[of + 1] if self.kind(of) == WORD else -1
        start = self.nodes[value + 1]
        if index == _BOOL and self.nodes[value + 2] == start + 1 and not negative:
            if self.text[start] == ord("0"):
                return self.put_word(b"false")
            if self.text[start] == ord("1"):
                return self.put_word(b"true")
        if index >= 0:
            suffix = _NUMBER_SUFFIXES.get(index)
        if index != _INT and suffix is None:
            self.put(ord("("))
            self.show(of)
            self.put(ord(")"))
        if negative:
            self.put(ord("-"))
        if index in _FLOATS:
            self.put(ord("["))
            self.left(value)
            return self.put(ord("]"))
        self.left(value)
        return self.put_word(suffix) if suffix is not None else 0

    def show_rare_expression(self, node: cython.int, kind: cython.int) -> cython.int:
        """Print one of the expressions that few names have."""
        a = self.nodes[node + 1]
        b = self.nodes[node + 2]
        if kind == PACK_SIZE:
            return self.show_pack_size(a)
        if kind == LIST_SIZE:
            return self.put_number(self.list_size(a))
        if kind == REQUIRES:
            return self.show_requirements(a, b)
        if kind == SUBOBJECT:
            return self.show_subobject(a, b, self.nodes[node + 3])
        if kind in (DESIGNATED, DESIGNATED_RANGE):
            return self.show_designated(node, kind)
        if kind == NEEDS_EXPRESSION:
            return self.show_requirement(node)
        return self.show_spelled(node, kind)

    def show_pack_size(self, operand: cython.int) -> cython.int:
        """Print how many elements a pack has, if that is known."""
        pack = self.find_pack(operand)
        if pack:
            return self.put_number(self.pack_length(pack))
        self.put_word(b"sizeof...(")
        self.show(operand)
        return self.put(ord(")"))

    def list_size(self, node: cython.int) -> cython.int:
        """The number of items with packs expanded."""
        count = 0
        while node and not self.bad:
            item = self.nodes[node + 1]
            if self.kind(item) == EXPANSION:
                item = self.find_pack(self.nodes[item + 1])
                count += self.pack_length(item) if item else 0
            else:
                count += 1
            node = self.nodes[node + 2]
            self.count_steps(1)
        return count

    def show_subobject(self, of: cython.int, operand: cython.int, offset: cython.int) -> cython.int:
        """Print a part of an object by its type and offset."""
        start = self.nodes[offset + 1]
        self.show(operand)
        self.put_word(b".<")
        self.show(of)
        self.put_word(b" at offset ")
        if start == self.nodes[offset + 2]:
            self.put(ord("0"))
        elif self.text[start] == ord("n"):
            self.put(ord("-"))
            self.put_slice(start + 1, self.nodes[offset + 2])
        else:
            self.left(offset)
        return self.put(ord(">"))

    def show_designated(self, node: cython.int, kind: cython.int) -> cython.int:
        """Print the initializer of a member or of elements."""
        a = self.nodes[node + 1]
        b = self.nodes[node + 2]
        value = self.nodes[node + 3]
        if kind == DESIGNATED and a:
            self.put(ord("."))
            self.show(b)
        else:
            self.put(ord("["))
            if kind == DESIGNATED_RANGE:
                self.show(a)
                self.put_word(b" ... ")
            self.show(b)
            self.put(ord("]"))
        kind = self.kind(value)
        if kind in (DESIGNATED, DESIGNATED_RANGE):
            return self.show(value)
        self.put(ord("="))
        return self.show_operand(value)

    def show_requirements(self, parameters: cython.int, node: cython.int) -> cython.int:
        """Print a requires expression."""
        self.put_word(b"requires")
        if parameters:
            self.put_word(b" (")
            self.show_list(parameters)
            self.put(ord(")"))
        self.put_word(b" {")
        while node and not self.bad:
            self.left(self.nodes[node + 1])
            node = self.nodes[node + 2]
        return self.put_word(b" }")

    def show_requirement(self, node: cython.int) -> cython.int:
        """Print an expression that a requires expression needs."""
        constraint = self.nodes[node + 2]
        noexcept = self.nodes[node] >> EXTRA
        self.put_word(b" {" if constraint or noexcept else b" ")
        self.show(self.nodes[node + 1])
        if constraint or noexcept:
            self.put(ord("}"))
        if noexcept:
            self.put_word(b" noexcept")
        if constraint:
            self.put_word(b" -> ")
            self.show(constraint)
        return self.put(ord(";"))
