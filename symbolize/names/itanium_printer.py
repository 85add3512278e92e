# cython: boundscheck=True, wraparound=False, initializedcheck=False, infer_types=True
"""The text of names and types in Itanium C++ linkage names, made from their nodes."""

from __future__ import annotations

import cython

from symbolize.names.itanium_tree import WORDS

if not cython.compiled:
    from symbolize.names.demangler import MAX_DEPTH, MAX_STEPS
    from symbolize.names.itanium_expressions import ExpressionParser
    from symbolize.names.itanium_nodes import *

_WORDS = cython.declare(list, WORDS)
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


@cython.cclass
class Printer(ExpressionParser):
    """Prints nodes of names and types; how expressions are printed a derived class says."""

    def __init__(self) -> None:
        super().__init__()
        self.pack_index = self.closures = self.heads = self.generics = 0
        self.keep_arguments = self.full = False
        self.dropped = -1

    def show_expression(self, node: cython.int, kind: cython.int) -> cython.int:
        """Print an expression."""
        return self.fail()

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
        elif kind <= PACK_OF_PARAMETERS:
            self.show_declaration(node, kind, 0)
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
        if kind == FORWARD and self.nodes[node] >> EXTRA:
            return self.fail()
        if kind in (PACK, FORWARD):
            return 0
        found = self.item(self.heads, self.nodes[node + 1]) if self.closures else 0
        if found:
            if self.kind(found) == PACK_OF_PARAMETERS:
                found = self.nodes[found + 1]
            return self.show_parameter_name(self.kind(found), self.nodes[node + 1])
        self.put_word(b"auto:")
        return self.put_number(self.nodes[node + 1] + 1)

    def bound(self, node: cython.int, kind: cython.int) -> cython.int:
        """The argument of a parameter, which may be a whole pack; 0 if it is not known."""
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
            node = self.nodes[node + 2] if kind == MEMBER_POINTER else self.nodes[node + 1]
            if self.shape(node):
                return True
            if kind < POINTER or kind > MEMBER_POINTER:
                break
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
