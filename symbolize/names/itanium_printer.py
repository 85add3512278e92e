# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""The text of names and types in Itanium C++ linkage names, made from their nodes."""

from __future__ import annotations

import cython

from symbolize.names.itanium_tree import WORDS

if not cython.compiled:
    from symbolize.names.demangler import MAX_DEPTH, MAX_STEPS
    from symbolize.names.itanium_expressions import ExpressionParser
    from symbolize.names.itanium_nodes import *

_WORDS = cython.declare(list, WORDS)
_NO_SHAPE = cython.declare(cython.int, 0)


@cython.cclass
class Printer(ExpressionParser):
    """Prints nodes of names and types; how expressions are printed a derived class says."""

    def __init__(self) -> None:
        super().__init__()
        self.pack_index = self.closures = self.heads = self.generics = 0
        self.keep_arguments = self.full = False
        self.dropped = -1

    def show_operand(self, node: cython.int) -> cython.int:
        """Print an operand."""
        return self.fail()

    def show_expression(self, node: cython.int, kind: cython.int) -> cython.int:
        """Print one of the usual expressions."""
        return self.fail()

    def show_rare_expression(self, node: cython.int, kind: cython.int) -> cython.int:
        """Print one of the other expressions."""
        return self.fail()

    def enclose(self, opening: cython.uchar, node: cython.int, closing: cython.uchar) -> cython.int:
        """Print a node in brackets."""
        self.put(opening)
        self.show(node)
        return self.put(closing)

    def enclose_list(self, opening: cython.uchar, node: cython.int, closing: cython.uchar) -> cython.int:
        """Print a list in brackets."""
        self.put(opening)
        self.show_list(node)
        return self.put(closing)

    def put_number(self, value: cython.int) -> cython.int:
        """Print a number."""
        if value <= ord("9") - ord("0"):
            return self.put(ord("0") + value)
        return self.put_word(b"%d" % value)

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
        before: cython.int
        start: cython.int
        first: cython.bint = True
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
        kind: cython.int
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
        elif kind <= LITERAL:
            self.show_expression(node, kind)
        else:
            self.show_rare_expression(node, kind)
        self.depth -= 1
        return 0

    def show_name(self, node: cython.int, kind: cython.int) -> cython.int:
        """Print a name that is not just an identifier."""
        a: cython.int = self.nodes[node + 1]
        b: cython.int = self.nodes[node + 2]
        if kind == LOCAL:
            return self.show_local(a, b, self.nodes[node + 3])
        if kind == ENCODING:
            return self.show_encoding(node)
        if kind == STRUCTOR:
            if a:
                self.left(a)
            return self.left(b)
        if kind == LAMBDA:
            return self.show_lambda(a, b, self.nodes[node + 3])
        if kind == TAGGED:
            self.left(a)
            self.put_word(b"[abi:")
            self.left(b)
            return self.put(ord("]"))
        if kind == CONVERSION:
            self.put_word(b"operator ")
            return self.show(a)
        if kind == PREFIXED:
            self.left(a)
            return self.show(b)
        if kind == UNNAMED:
            self.put_word(b"{unnamed type#")
            self.put_number(self.nodes[a + 1])
            return self.put(ord("}"))
        if kind == LIST:
            return self.show_list(node)
        if kind == BINDING:
            return self.enclose_list(ord("["), a, ord("]"))
        if kind == ENTITY:
            self.left(b)
            self.put(ord("@"))
            return self.left(a)
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
        if kind == CONSTRUCTION:
            self.put_word(b"construction vtable for ")
            self.show(a)
            self.put_word(b"-in-")
            return self.show(b)
        if kind == REFERENCE_TEMPORARY:
            self.put_word(b"reference temporary #")
            self.put_number(self.nodes[b + 1])
            self.put_word(b" for ")
            return self.show(a)
        if kind == ENABLE_IF:
            return self.left(a)
        return 0

    def arguments_of(self, node: cython.int) -> cython.int:
        """The template arguments at the end of a function's name."""
        kind: cython.int = self.kind(node)
        while kind in (LOCAL, NESTED, TAGGED, ENABLE_IF, ENTITY, FRIEND):
            node = self.nodes[node + 1] if kind in (TAGGED, ENABLE_IF) else self.nodes[node + 2]
            kind = self.kind(node)
        return self.nodes[node + 2] if kind == TEMPLATE else 0

    def show_local(self, around: cython.int, node: cython.int, default: cython.int) -> cython.int:
        """Print what is in a function; of that the parameters are left out where they are of others."""
        generics: cython.int = self.generics
        closures: cython.int = self.closures
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
            self.put_number(self.nodes[default + 1])
            self.put_word(b"}::")
        return self.left(node)

    def show_encoding(self, node: cython.int) -> cython.int:
        """Print a function with its return type and parameters."""
        name: cython.int = self.nodes[node + 1]
        returned: cython.int = self.nodes[node + 2]
        signature: cython.int = self.nodes[node + 3]
        generics: cython.int = self.generics
        closures: cython.int = self.closures
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
        heads: cython.int = self.heads
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
        index: cython.int = 0
        while node and not self.bad:
            if index:
                self.put_word(b", ")
            self.show_declaration(self.nodes[node + 1], self.kind(self.nodes[node + 1]), index + 1 if named else 0)
            node = self.nodes[node + 2]
            index += 1
        return 0

    def show_declaration(self, node: cython.int, kind: cython.int, number: cython.int) -> cython.int:
        """Print the declaration of a template parameter; 0 is the number of one without a name."""
        a: cython.int = self.nodes[node + 1]
        pack: cython.bint = kind == PACK_OF_PARAMETERS
        if pack:
            node = a
            kind = self.kind(node)
            a = self.nodes[node + 1]
        if kind == TYPE_PARAMETER:
            if a:
                self.show(a)
            else:
                self.put_word(b"typename")
        elif kind == VALUE_PARAMETER:
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
        found: cython.int
        if kind == PACK:
            return self.show_list(self.nodes[node + 1])
        found = self.strip(node)
        if found != node:
            return self.left(found)
        if kind in (PACK, FORWARD):
            return 0
        found = self.heads if self.closures else 0
        kind = self.nodes[node + 1]
        while found and kind:
            found = self.nodes[found + 2]
            kind -= 1
        if found:
            found = self.nodes[found + 1]
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
        """What a node denotes, if it is a template parameter; of a pack the current element."""
        kind: cython.int = self.kind(node)
        found: cython.int
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
        kind: cython.int
        found: cython.int = 0
        field: cython.int = 1
        if not self.nodes[node] & PACKED or self.bad:
            return 0
        self.enter()
        kind = self.kind(node)
        if kind in (PARAMETER, FORWARD):
            found = self.bound(node, kind)
            if self.kind(found) != PACK:
                found = 0
        else:
            while not found and field <= 3:
                found = self.find_pack(self.nodes[node + field])
                field += 1
        self.depth -= 1
        return found

    def show_expansion(self, pattern: cython.int) -> cython.int:
        """Print a pattern once for each element of its pack."""
        i: cython.int
        index: cython.int = self.pack_index
        pack: cython.int = self.find_pack(pattern)
        count: cython.int
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
        kind: cython.int = 0
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
        kind: cython.int
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
        kind: cython.int
        node = self.strip(self.nodes[node + 1])
        kind = self.kind(node)
        while (kind in (REFERENCE, RVALUE_REFERENCE)) and not self.bad:
            self.count_steps(1)
            node = self.strip(self.nodes[node + 1])
            kind = self.kind(node)
        return node

    def refers_to_value(self, node: cython.int) -> cython.bint:
        """Whether a reference, and all those that it is one with, is `&&`."""
        kind: cython.int = self.kind(node)
        while kind == RVALUE_REFERENCE and not self.bad:
            self.count_steps(1)
            node = self.strip(self.nodes[node + 1])
            kind = self.kind(node)
        return kind != REFERENCE

    def left_of_type(self, node: cython.int, kind: cython.int) -> cython.int:
        """Print what is written of a type in front of the name."""
        a: cython.int = self.nodes[node + 1]
        b: cython.int = self.nodes[node + 2]
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
        if kind == SUFFIXED:
            self.show(a)
            return self.left(b)
        if kind == ENCLOSED:
            self.left(a)
            self.show(b)
            return self.put(ord(")"))
        if kind == VENDOR_QUALIFIED:
            self.left(a)
            self.put(ord(" "))
            self.left(b)
            b = self.nodes[node + 3]
            return self.show_arguments(b) if b and self.keep_arguments else 0
        if kind == VECTOR:
            self.show(a)
            self.put_word(b" __vector(")
            self.show(b)
            return self.put(ord(")"))
        if kind == TRANSFORMED:
            self.left(a)
            return self.enclose_list(ord("("), b, ord(")"))
        if kind == CONSTRAINED:
            self.show(a)
            self.put(ord(" "))
            return self.left(b)
        if kind == SELECTED:
            self.show(a)
            self.put_word(b"...[")
            self.show(b)
            return self.put(ord("]"))
        return 0

    def open(self, node: cython.int, spaced: cython.bint) -> cython.int:
        """Print a parenthesis between a function or array and what points to it."""
        shape: cython.int = self.shape(node)
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
        kind: cython.int
        signature: cython.int
        if self.bad:
            return 0
        self.enter()
        node = self.strip(node)
        kind = self.kind(node)
        if kind in (POINTER, REFERENCE, RVALUE_REFERENCE, MEMBER_POINTER):
            if kind == POINTER:
                node = self.nodes[node + 1]
            elif kind == MEMBER_POINTER:
                node = self.nodes[node + 2]
            else:
                node = self.target(node)
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
