# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""Types and template arguments of Itanium C++ linkage names (Itanium C++ ABI, 5.1.5 Type Encodings, Compression)."""

from __future__ import annotations

import cython

from symbolize.names.itanium_tree import word

if not cython.compiled:
    from symbolize.names.itanium_nodes import *
    from symbolize.names.itanium_tree import MAX_LOOKUPS, Tree

_COMPLEX = cython.declare(cython.int, word(b" _Complex"))
_IMAGINARY = cython.declare(cython.int, word(b" _Imaginary"))
_PIXEL = cython.declare(cython.int, word(b"pixel"))
_FLOAT_N = cython.declare(cython.int, word(b"_Float"))
_BFLOAT = cython.declare(cython.int, word(b"std::bfloat16_t"))
_BIT_INT = cython.declare(cython.int, word(b"_BitInt("))
_UNSIGNED_BIT_INT = cython.declare(cython.int, word(b"unsigned _BitInt("))
_DECLTYPE = cython.declare(cython.int, word(b"decltype ("))
_NOEXCEPT = cython.declare(cython.int, word(b" noexcept"))
_NOEXCEPT_IF = cython.declare(cython.int, word(b" noexcept("))
_THROW = cython.declare(cython.int, word(b" throw("))
_TRANSACTION_SAFE = cython.declare(cython.int, word(b" transaction_safe"))
_AUTO = cython.declare(cython.int, word(b"auto"))
_DECLTYPE_AUTO = cython.declare(cython.int, word(b"decltype(auto)"))
_NO_LIST = cython.declare(cython.int, -1)  # template arguments of which none has been read yet

_BUILTIN = {
    ord("a"): b"signed char", ord("b"): b"bool", ord("c"): b"char", ord("d"): b"double", ord("e"): b"long double",
    ord("f"): b"float", ord("g"): b"__float128", ord("h"): b"unsigned char", ord("i"): b"int",
    ord("j"): b"unsigned int", ord("l"): b"long", ord("m"): b"unsigned long", ord("n"): b"__int128",
    ord("o"): b"unsigned __int128", ord("s"): b"short", ord("t"): b"unsigned short", ord("v"): b"void",
    ord("w"): b"wchar_t", ord("x"): b"long long", ord("y"): b"unsigned long long", ord("z"): b"...",
}  # fmt: skip
# Behind a D.
_MORE_BUILTIN = {
    ord("d"): b"decimal64", ord("e"): b"decimal128", ord("f"): b"decimal32", ord("h"): b"half",
    ord("i"): b"char32_t", ord("s"): b"char16_t", ord("u"): b"char8_t", ord("a"): b"auto", ord("c"): b"decltype(auto)",
    ord("n"): b"decltype(nullptr)",
}  # fmt: skip
_BUILTIN_WORDS = cython.declare(list, [word(_BUILTIN[i]) if i in _BUILTIN else -1 for i in range(256)])
_MORE_BUILTIN_WORDS = cython.declare(list, [word(_MORE_BUILTIN[i]) if i in _MORE_BUILTIN else -1 for i in range(256)])
_CHARACTERS = b"char, std::char_traits<char>"
# The text, and in front of a constructor or destructor the template, its arguments and the name of the class.
_ABBREVIATIONS = {
    ord("a"): (b"std::allocator", b"std::allocator", b"", b"allocator"),
    ord("b"): (b"std::basic_string", b"std::basic_string", b"", b"basic_string"),
    ord("s"): (b"std::string", b"std::basic_string", _CHARACTERS + b", std::allocator<char>", b"basic_string"),
    ord("i"): (b"std::istream", b"std::basic_istream", _CHARACTERS, b"basic_istream"),
    ord("o"): (b"std::ostream", b"std::basic_ostream", _CHARACTERS, b"basic_ostream"),
    ord("d"): (b"std::iostream", b"std::basic_iostream", _CHARACTERS, b"basic_iostream"),
}
_abbreviated = [
    [word(_ABBREVIATIONS[i][column]) if i in _ABBREVIATIONS and _ABBREVIATIONS[i][column] else -1 for i in range(256)]
    for column in range(4)
]
_ABBREVIATED_TEXTS = cython.declare(list, _abbreviated[0])
_ABBREVIATED_TEMPLATES = cython.declare(list, _abbreviated[1])
_ABBREVIATED_ARGUMENTS = cython.declare(list, _abbreviated[2])
_ABBREVIATED_CLASSES = cython.declare(list, _abbreviated[3])
_ELABORATED = cython.declare(
    dict, {letter: word(text) for letter, text in ((ord("s"), b"struct "), (ord("u"), b"union "), (ord("e"), b"enum "))}
)


@cython.cclass
class TypeParser(Tree):
    """Makes the nodes of types and template arguments; how names and expressions are read derived classes say."""

    def a_name(self, state: cython.bint) -> cython.int:
        """A name."""
        return self.fail()

    def unqualified(self, state: cython.bint, scope: cython.int, module: cython.int) -> cython.int:
        """A name without scopes."""
        return self.fail()

    def expression(self) -> cython.int:
        """An expression."""
        return self.fail()

    def literal(self) -> cython.int:
        """A value between `L` and `E`."""
        return self.fail()

    def lookup(self, node: cython.int, index: cython.int) -> cython.int:
        """The template argument of an index in a list; 0 if there is none (yet)."""
        if node <= 0:
            return 0
        self.lookups += index + 1
        if self.lookups > MAX_LOOKUPS:
            return self.refuse()
        while index and node:
            node = self.nodes[node + 2]
            index -= 1
        return self.nodes[node + 1]

    def parameter(self) -> cython.int:
        """`T_`, `T0_` and so on: a template parameter.

        In constraints and declarations of parameters those of templates around the innermost one are `T_`, its own
        `TL0__` and so on.
        """
        node: cython.int = 0
        kind: cython.int = PARAMETER | PACKED | SHAPED
        level: cython.int = 0
        index: cython.int
        self.at += 1
        if self.eat(ord("L")):
            level = self.number() + 1
            self.expect(ord("_"))
        index = self.ordinal()
        if self.bad:
            return 0
        if self.forwarding and not level:
            self.forwards = node = self.node(FORWARD | PACKED | SHAPED, index, 0, self.forwards)
            return node
        if self.leveled and not level and self.outer:
            node = self.lookup(self.outer, index)
            kind |= 1 << EXTRA
        elif self.leveled or not level:
            node = self.lookup(self.params, index)
        if not node and not self.generic:
            return self.fail()
        return self.node(kind, index, node, 0)

    def types(self, end: cython.uchar) -> cython.int:
        """Types up to a character, or to a constraint."""
        head: cython.int = 0
        tail: cython.int = 0
        while self.text[self.at] != end and self.text[self.at] != ord("Q") and not self.bad:
            tail = self.append(tail, self.a_type())
            head = head or tail
        return self.close(head)

    def arguments(self, state: cython.bint) -> cython.int:
        """`I` or `J`, template arguments, `E`; with `state` they are what parameters denote from here on."""
        head: cython.int = 0
        tail: cython.int = 0
        flags: cython.int = 0
        last_name: cython.int = self.last_name
        self.at += 1
        self.enter()
        if state:
            self.outer = self.params if self.params > 0 else 0
            self.params = _NO_LIST
        while self.text[self.at] != ord("E") and not self.bad:
            if self.text[self.at] == ord("Q"):
                self.constraint()
                break
            tail = self.append(tail, self.argument())
            flags |= self.nodes[tail]
            if not head:
                head = tail
                if state:
                    self.params = head
        self.expect(ord("E"))
        if head:
            self.nodes[head] |= flags & PACKED
        self.depth -= 1
        self.last_name = last_name
        return head

    def template(self, node: cython.int, state: cython.bint) -> cython.int:
        """The template arguments of a name that has been read."""
        node = self.join(TEMPLATE, node, self.arguments(state), 0)
        if state:
            self.templated = True
        return node

    def argument(self) -> cython.int:
        """A type, a value, an expression, or a pack of them, with the declaration of its parameter if there is one."""
        node: cython.int
        byte: cython.uchar = self.text[self.at]
        if byte == ord("L"):
            return self.literal()
        if byte == ord("X"):
            self.at += 1
            node = self.expression()
            self.expect(ord("E"))
            return node
        if byte == ord("J") or byte == ord("I"):
            node = self.arguments(False)
            return self.node(PACK | self.nodes[node] & PACKED, node, 0, 0)
        if self.at_declaration():
            leveled: cython.bint = self.leveled
            self.leveled = True
            self.declaration()
            self.leveled = leveled
            self.enter()
            node = self.argument() if not self.bad else 0
            self.depth -= 1
            return node
        return self.a_type()

    def at_declaration(self) -> cython.bint:
        """Whether the declaration of a template parameter follows, and not the use of one."""
        byte: cython.uchar = self.text[self.at + 1]
        return self.text[self.at] == ord("T") and (
            byte == ord("y") or byte == ord("n") or byte == ord("t") or byte == ord("p") or byte == ord("k")
        )

    def declaration(self) -> cython.int:
        """The declaration of a template parameter: a type, constrained or not, a value, a template, or a pack."""
        head: cython.int = 0
        tail: cython.int = 0
        node: cython.int = 0
        byte: cython.uchar = self.text[self.at + 1]
        self.enter()
        self.at += 2
        if byte == ord("y"):
            node = self.node(TYPE_PARAMETER, 0, 0, 0)
        elif byte == ord("k"):
            node = self.join(TYPE_PARAMETER, self.a_name(False), 0, 0)
        elif byte == ord("n"):
            node = self.join(VALUE_PARAMETER, self.a_type(), 0, 0)
        elif byte == ord("p"):
            if not self.at_declaration():
                return self.fail()
            node = self.join(PACK_OF_PARAMETERS, self.declaration(), 0, 0)
        else:
            while self.at_declaration() and not self.bad:
                tail = self.append(tail, self.declaration())
                head = head or tail
            if self.text[self.at] == ord("Q"):
                self.constraint()
            self.expect(ord("E"))
            node = self.node(TEMPLATE_PARAMETER, head, 0, 0)
        self.depth -= 1
        return node

    def constraint(self) -> cython.int:
        """`Q` an expression: a requires-clause."""
        generic: cython.bint = self.generic
        leveled: cython.bint = self.leveled
        node: cython.int
        self.at += 1
        self.generic = self.leveled = True
        node = self.expression()
        self.generic, self.leveled = generic, leveled
        return node

    def a_type(self) -> cython.int:
        """A type (5.1.5)."""
        node: cython.int
        byte: cython.uchar = self.text[self.at]
        # Simple types first: they need no more.
        if ord("a") <= byte <= ord("z") and byte != ord("r") and byte != ord("u"):
            node = _BUILTIN_WORDS[byte]
            if node < 0:
                return self.fail()
            self.at += 1
            return self.node(WORD, node, 0, 0)
        if not self.enter():
            return 0
        if byte == ord("S"):
            node = self.substituted_type()
        elif byte == ord("P"):
            self.at += 1
            node = self.add(self.wrap(POINTER, self.a_type()))
        elif byte == ord("R"):
            self.at += 1
            node = self.add(self.wrap(REFERENCE, self.a_type()))
        elif byte == ord("O"):
            self.at += 1
            node = self.add(self.wrap(RVALUE_REFERENCE, self.a_type()))
        elif byte == ord("K") or byte == ord("V") or byte == ord("r"):
            node = self.add(self.qualified_type())
        elif byte == ord("U"):
            byte = self.text[self.at + 1]
            node = self.add(self.qualified_type() if ord("1") <= byte <= ord("9") else self.a_name(False))
        elif byte == ord("T"):
            node = self.parameter_type()
        elif byte == ord("N") or byte == ord("Z") or ord("1") <= byte <= ord("9"):
            node = self.add(self.a_name(False))
        elif byte == ord("D"):
            node = self.more_types()
        elif byte == ord("F"):
            node = self.add(self.function_type())
        elif byte == ord("A"):
            node = self.add(self.array_type())
        elif byte == ord("M"):
            self.at += 1
            node = self.a_type()
            node = self.join(MEMBER_POINTER, node, self.a_type(), 0)
            self.nodes[node] |= SHAPED
            self.add(node)
        elif byte == ord("C") or byte == ord("G"):
            self.at += 1
            node = self.a_type()
            node = self.add(
                self.join(SUFFIXED, node, self.node(WORD, _COMPLEX if byte == ord("C") else _IMAGINARY, 0, 0), 0)
            )
        elif byte == ord("u"):
            node = self.add(self.vendor_type())
        else:
            node = self.add(self.a_name(False))
        self.depth -= 1
        return node

    def wrap(self, kind: cython.int, node: cython.int) -> cython.int:
        """A pointer, reference or qualified type, which has two sides where what it is made of has."""
        return self.node(kind | self.nodes[node] & (PACKED | SHAPED), node, 0, 0)

    def substituted_type(self) -> cython.int:
        """A type that begins with `S`."""
        node: cython.int
        if self.text[self.at + 1] == ord("t"):
            return self.add(self.a_name(False))
        node = self.substitution()
        if self.kind(node) == MODULE:
            node = self.unqualified(False, 0, node)
            if self.text[self.at] != ord("I"):
                return self.add(node)
            self.add(node)
        if self.text[self.at] != ord("I") or not self.may_be_template(node):
            return node
        return self.add(self.template(node, False))

    def may_be_template(self, node: cython.int) -> cython.bint:
        """Whether template arguments can follow; else a pack does, which old releases of GCC begin with `I` as well."""
        kind: cython.int = self.kind(node)
        if kind in (PARAMETER, FORWARD):
            # Behind the type of a conversion operator its own arguments follow.
            if self.converting:
                return False
            kind = self.kind(self.nodes[node + 2])
        return not (POINTER <= kind <= VECTOR or kind == TEMPLATE)

    def parameter_type(self) -> cython.int:
        """A template parameter, a template that is one, or a class with the word in front of it."""
        node: cython.int
        if ord("a") <= self.text[self.at + 1] <= ord("z"):
            found = _ELABORATED.get(self.text[self.at + 1])
            if found is None:
                return self.fail()
            self.at += 2
            node = self.node(WORD, found, 0, 0)
            return self.add(self.node(PREFIXED, node, self.a_name(False), 0))
        node = self.add(self.parameter())
        if self.text[self.at] != ord("I") or not self.may_be_template(node):
            return node
        return self.add(self.template(node, False))

    def qualified_type(self) -> cython.int:
        """A type with qualifiers, all of which together are one candidate for back references."""
        node: cython.int
        name: cython.int
        arguments: cython.int = 0
        quals: cython.int
        start: cython.int = self.at
        byte: cython.uchar = self.text[self.at]
        if byte == ord("U"):
            self.at += 1
            name = self.slice()
            if self.text[self.at] == ord("I"):
                arguments = self.arguments(False)
            self.enter()
            node = self.qualified_type() if not self.bad else 0
            self.depth -= 1
            return self.join(VENDOR_QUALIFIED, node, name, arguments)
        while byte == ord("r") or byte == ord("V") or byte == ord("K"):
            self.at += 1
            byte = self.text[self.at]
        if self.at > start and (
            byte == ord("F")
            or (
                byte == ord("D")
                and (
                    self.text[self.at + 1] == ord("o")
                    or self.text[self.at + 1] == ord("O")
                    or self.text[self.at + 1] == ord("w")
                    or self.text[self.at + 1] == ord("x")
                )
            )
        ):
            # Qualifiers of what the function is called for.
            self.at = start
            return self.function_type()
        quals = self.at
        node = self.a_type()
        while quals > start:
            quals -= 1
            byte = self.text[quals]
            node = self.wrap(QUALIFIED, node)
            self.nodes[node] |= (CONST if byte == ord("K") else VOLATILE if byte == ord("V") else RESTRICT) << EXTRA
        return node

    def function_type(self) -> cython.int:
        """Qualifiers, exception specification, `F`, the return type and the parameters, `E`."""
        quals: cython.int
        node: cython.int
        head: cython.int = 0
        tail: cython.int = 0
        exceptions: cython.int = 0
        safe: cython.int = 0
        byte: cython.uchar
        quals = self.qualifiers()
        if self.text[self.at] == ord("D"):
            byte = self.text[self.at + 1]
            if byte == ord("o"):
                self.at += 2
                exceptions = self.node(WORD, _NOEXCEPT, 0, 0)
            elif byte == ord("O"):
                self.at += 2
                node = self.expression()
                self.expect(ord("E"))
                exceptions = self.join(ENCLOSED, self.node(WORD, _NOEXCEPT_IF, 0, 0), node, 0)
            elif byte == ord("w"):
                self.at += 2
                head = self.types(ord("E"))
                self.expect(ord("E"))
                exceptions = self.join(ENCLOSED, self.node(WORD, _THROW, 0, 0), head, 0)
        if self.eat_code(ord("D"), ord("x")):
            safe = self.node(WORD, _TRANSACTION_SAFE, 0, 0)
            exceptions = self.join(SUFFIXED, exceptions, safe, 0) if exceptions else safe
        self.expect(ord("F"))
        self.eat(ord("Y"))
        node = self.a_type()
        head = tail = 0
        while self.text[self.at] != ord("E") and not self.bad:
            byte = self.text[self.at + 1]
            if self.text[self.at] == ord("v"):
                self.at += 1
            elif byte == ord("E") and (self.text[self.at] == ord("R") or self.text[self.at] == ord("O")):
                quals |= LVALUE if self.text[self.at] == ord("R") else RVALUE
                self.at += 1
            else:
                tail = self.append(tail, self.a_type())
                head = head or tail
        self.expect(ord("E"))
        tail = self.join(SIGNATURE, self.close(head), 0, exceptions)
        self.nodes[tail] |= quals << EXTRA
        node = self.join(FUNCTION, node, tail, 0)
        self.nodes[node] |= SHAPED
        return node

    def array_type(self) -> cython.int:
        """`A`, a number, an expression or nothing, `_`, the type of the elements."""
        size: cython.int = 0
        self.at += 1
        if ord("0") <= self.text[self.at] <= ord("9"):
            size = self.digits()
        elif self.text[self.at] != ord("_"):
            size = self.expression()
        self.expect(ord("_"))
        size = self.join(ARRAY, size, self.a_type(), 0)
        self.nodes[size] |= SHAPED
        return size

    def vendor_type(self) -> cython.int:
        """`u`, an identifier, and arguments of a type that the compiler computes."""
        name: cython.int
        head: cython.int
        self.at += 1
        name = self.slice()
        if self.text[self.at] != ord("I"):
            return name
        head = self.arguments(False)
        return self.join(TRANSFORMED, name, head, 0)

    def decltype(self) -> cython.int:
        """`Dt` or `DT`, an expression, `E`."""
        node: cython.int
        self.at += 2
        # Clang 19 has no encoding for an element of a pack and leaves the expression out.
        node = self.expression() if self.text[self.at] != ord("E") else self.node(LIST, 0, 0, 0)
        self.expect(ord("E"))
        return self.join(ENCLOSED, self.node(WORD, _DECLTYPE, 0, 0), node, 0)

    def more_types(self) -> cython.int:
        """Types that begin with `D`."""
        node: cython.int
        found: cython.int
        byte: cython.uchar = self.text[self.at + 1]
        if byte == ord("p"):
            self.at += 2
            node = self.a_type()
            return self.add(self.node(EXPANSION, node, 0, 0))
        if byte == ord("t") or byte == ord("T"):
            return self.add(self.decltype())
        if byte == ord("v"):
            return self.add(self.vector_type())
        if byte == ord("o") or byte == ord("O") or byte == ord("w") or byte == ord("x"):
            return self.add(self.function_type())
        self.at += 2
        if byte == ord("F"):
            return self.float_type()
        if byte == ord("B") or byte == ord("U"):
            node = self.digits() if ord("0") <= self.text[self.at] <= ord("9") else self.expression()
            self.expect(ord("_"))
            found = self.node(WORD, _BIT_INT if byte == ord("B") else _UNSIGNED_BIT_INT, 0, 0)
            return self.add(self.join(ENCLOSED, found, node, 0))
        if byte == ord("k") or byte == ord("K"):
            node = self.a_name(False)
            found = self.node(WORD, _AUTO if byte == ord("k") else _DECLTYPE_AUTO, 0, 0)
            return self.join(CONSTRAINED, node, found, 0)
        if byte == ord("y"):
            node = self.a_type()
            return self.add(self.join(SELECTED, node, self.expression(), 0))
        found = _MORE_BUILTIN_WORDS[byte]
        return self.node(WORD, found, 0, 0) if found >= 0 else self.fail()

    def float_type(self) -> cython.int:
        """Behind `DF`: a floating-point type of so many bits, with an `x` of more, with a `b` bfloat16."""
        start: cython.int = self.at
        self.number()
        if self.eat(ord("b")):
            return self.node(WORD, _BFLOAT, 0, 0)
        if self.eat(ord("x")):
            return self.node(PREFIXED, self.node(WORD, _FLOAT_N, 0, 0), self.node(NAME, start, self.at, 0), 0)
        self.expect(ord("_"))
        return self.node(PREFIXED, self.node(WORD, _FLOAT_N, 0, 0), self.node(NAME, start, self.at - 1, 0), 0)

    def vector_type(self) -> cython.int:
        """`Dv`, a number, an expression or nothing, `_`, the type of the elements, or `p` for pixels."""
        size: cython.int = 0
        self.at += 2
        if ord("1") <= self.text[self.at] <= ord("9"):
            size = self.digits()
        elif self.text[self.at] == ord("_"):
            # The digit of an expression would read as a number.
            self.at += 1
            size = self.expression()
        else:
            size = self.expression()
        self.expect(ord("_"))
        if self.eat(ord("p")):
            return self.join(VECTOR, self.node(WORD, _PIXEL, 0, 0), size, 0)
        return self.join(VECTOR, self.a_type(), size, 0)

    def substitution(self) -> cython.int:
        """`S` what has been read before, or a class of the standard library."""
        index: cython.int
        node: cython.int
        byte: cython.uchar
        self.at += 1
        byte = self.text[self.at]
        if byte == ord("_") or ord("0") <= byte <= ord("9") or ord("A") <= byte <= ord("Z"):
            index = self.sequence()
            return self.subs[index] if index < self.substitutions else self.fail()
        index = _ABBREVIATED_TEXTS[byte]
        if index < 0:
            return self.fail()
        self.at += 1
        node = _ABBREVIATED_CLASSES[byte]
        self.last_name = self.node(WORD, node, 0, 0)
        if self.text[self.at] == ord("C") or (
            self.text[self.at] == ord("D") and ord("0") <= self.text[self.at + 1] <= ord("9")
        ):
            index = _ABBREVIATED_TEMPLATES[byte]
            node = self.node(WORD, index, 0, 0)
            index = _ABBREVIATED_ARGUMENTS[byte]
            return node if index < 0 else self.node(TEMPLATE, node, self.append(0, self.node(WORD, index, 0, 0)), 0)
        node = self.node(WORD, index, 0, 0)
        return self.add(self.tags(node)) if self.text[self.at] == ord("B") else node
