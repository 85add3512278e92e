# cython: boundscheck=True, wraparound=False, initializedcheck=False, infer_types=True
"""The text of an Itanium C++ linkage name, spelled as the C++ runtime of GCC spells it.

What is newer than that runtime is spelled as by c++filt of binutils 2.40 and, where that is too old as well, as by
llvm-cxxfilt 19. A text is made straight from the tree in each mode: template arguments and parameters that a mode
leaves out are not printed, whatever they expand to (R117).
"""

from __future__ import annotations

import cython

from symbolize.names.itanium_tree import word

if not cython.compiled:
    from symbolize.names.demangler import MAX_NAME
    from symbolize.names.itanium_nodes import *
    from symbolize.names.itanium_printer import Printer
    from symbolize.names.rust import is_legacy

DEFAULT = 0
TEMPLATES = 1
FULL = 2

_MIN_NAME = cython.declare(cython.int, len("_Z1a"))
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


@cython.final
@cython.cclass
class CppDemangler(Printer):
    """Demangles a name at a time."""

    def demangle(self, name: bytes, mode: cython.int) -> bytes | None:
        """The text of a name that starts with `_Z` in a mode; None if it is malformed, unknown or costs too much."""
        size = len(name)
        self.refused = size > MAX_NAME
        if size < _MIN_NAME or self.refused or name[0] != ord("_") or name[1] != ord("Z") or is_legacy(name):
            return None
        self.load(name)
        self.reading = 0
        self.reset()
        node = self.parse()
        if not node:
            return None
        self.pack_index = self.closures = self.heads = self.generics = self.steps = self.depth = 0
        self.dropped = -1
        self.keep_arguments = mode != DEFAULT
        self.full = mode == FULL
        if not self.full and self.kind(node) == ENCODING:
            self.generics = self.arguments_of(self.nodes[node + 1])
            node = self.nodes[node + 1]
        self.show(node)
        if self.bad:
            return None
        return bytes(self.printed[: self.used])

    def gave_up(self) -> bool:
        """Whether the last name was refused for what it costs."""
        return self.refused

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
