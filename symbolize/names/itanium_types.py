# cython: boundscheck=True, wraparound=False, initializedcheck=False, infer_types=True
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
# The abbreviated text, and in front of a constructor or destructor the name of the class and its template arguments.
_ABBREVIATIONS = {
    ord("a"): (b"std::allocator", b"allocator", b""),
    ord("b"): (b"std::basic_string", b"basic_string", b""),
    ord("s"): (b"std::string", b"basic_string", _CHARACTERS + b", std::allocator<char>"),
    ord("i"): (b"std::istream", b"basic_istream", _CHARACTERS),
    ord("o"): (b"std::ostream", b"basic_ostream", _CHARACTERS),
    ord("d"): (b"std::iostream", b"basic_iostream", _CHARACTERS),
}
# The words of the text, the class, the class with its scope, and the arguments.
_abbreviated = {
    letter: (word(text), word(name), word(b"std::" + name), word(arguments) if arguments else -1)
    for letter, (text, name, arguments) in _ABBREVIATIONS.items()
}
_ABBREVIATED = cython.declare(list, [_abbreviated.get(i) for i in range(256)])
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

    def operand(self, of: cython.uchar) -> cython.int:
        """A part of a special name or an expression."""
        return self.fail()

    def lookup(self, node: cython.int, index: cython.int) -> cython.int:
        """The template argument of an index in a list; 0 if there is none (yet)."""
        if node <= 0:
            return 0
        self.lookups += index + 1
        if self.lookups > MAX_LOOKUPS:
            return self.refuse()
        return self.item(node, index)

    def parameter(self) -> cython.int:
        """`T_`, `T0_` and so on: a template parameter.

        In constraints, also those of parameters, those of templates around the innermost one are `T_`, its own `TL0__`
        and so on.
        """
        node = 0
        kind = PARAMETER | PACKED | SHAPED
        level = 0
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
        if self.leveled and not level and not self.generic:
            # The constraint of a parameter is not printed. What refers back to it may be of the innermost template.
            self.forwards = node = self.node(FORWARD | 1 << EXTRA | PACKED | SHAPED, index, 0, self.forwards)
            return node
        if self.leveled and not level and self.outer:
            node = self.lookup(self.outer, index)
            kind |= 1 << EXTRA
        elif self.leveled or not level:
            node = self.lookup(self.params, index)
        if not node and not self.generic:
            return self.fail()
        return self.node(kind, index, node, 0)

    def arguments(self, state: cython.bint) -> cython.int:
        """`I` or `J`, template arguments, `E`; with `state` they are the arguments of parameters from here on."""
        head = 0
        last_name = self.last_name
        self.at += 1
        self.enter()
        if state:
            self.outer = self.params if self.params > 0 else 0
            self.params = _NO_LIST
        while self.text[self.at] != ord("E") and not self.bad:
            if self.text[self.at] == ord("Q"):
                self.constraint()
                break
            head = self.append(head, self.argument())
            if state:
                self.params = head
        self.expect(ord("E"))
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
        """A type, a value, an expression, or a pack of them, with the declaration of its parameter if that is told."""
        byte = self.text[self.at]
        if byte == ord("L"):
            return self.expression()
        if byte == ord("X"):
            self.at += 1
            node = self.expression()
            self.expect(ord("E"))
            return node
        if byte in b"IJ":
            node = self.arguments(False)
            return self.node(PACK | self.nodes[node] & PACKED, node, 0, 0)
        if self.at_declaration():
            leveled = self.leveled
            self.leveled = True
            self.declaration()
            self.leveled = leveled
            node = self.argument() if self.enter() else 0
            self.depth -= 1
            return node
        return self.a_type()

    def at_declaration(self) -> cython.bint:
        """Whether the declaration of a template parameter follows, and not the use of one."""
        return self.text[self.at] == ord("T") and self.text[self.at + 1] in b"ykntp"

    def declarations(self) -> cython.int:
        """The declarations of template parameters that follow."""
        head = 0
        while self.at_declaration() and not self.bad:
            head = self.append(head, self.declaration())
        return head

    def declaration(self) -> cython.int:
        """The declaration of a template parameter: a type, constrained or not, a value, a template, or a pack."""
        byte = self.text[self.at + 1]
        self.enter()
        self.at += 2
        if byte == ord("y"):
            node = self.node(TYPE_PARAMETER, 0, 0, 0)
        elif byte == ord("k"):
            node = self.join(TYPE_PARAMETER, self.a_name(False), 0, 0)
        elif byte == ord("n"):
            # Templates around the innermost one have been instantiated in the types of values, but not in constraints.
            leveled = self.leveled
            self.leveled = False
            node = self.join(VALUE_PARAMETER, self.a_type(), 0, 0)
            self.leveled = leveled
        elif byte == ord("p"):
            if not self.at_declaration():
                return self.fail()
            node = self.join(PACK_OF_PARAMETERS, self.declaration(), 0, 0)
        else:
            node = self.node(TEMPLATE_PARAMETER, self.declarations(), 0, 0)
            if self.text[self.at] == ord("Q"):
                self.constraint()
            self.expect(ord("E"))
        self.depth -= 1
        return node

    def constraint(self) -> cython.int:
        """`Q` an expression: a requires-clause."""
        generic = self.generic
        leveled = self.leveled
        self.at += 1
        self.generic = self.leveled = True
        node = self.expression()
        self.generic, self.leveled = generic, leveled
        return node

    def a_type(self) -> cython.int:
        """A type (5.1.5)."""
        byte = self.text[self.at]
        # Simple types first: they need no more.
        if ord("a") <= byte <= ord("z") and byte not in b"ru":
            node: cython.int = _BUILTIN_WORDS[byte]
            if node < 0:
                return self.fail()
            self.at += 1
            return self.node(WORD, node, 0, 0)
        if not self.enter():
            return 0
        if byte == ord("S"):
            node = self.substituted_type()
        elif byte in b"PRO":
            self.at += 1
            kind = POINTER if byte == ord("P") else REFERENCE if byte == ord("R") else RVALUE_REFERENCE
            node = self.add(self.wrap(kind, self.a_type()))
        elif byte in b"KVr":
            node = self.add(self.qualified_type())
        elif byte == ord("U"):
            byte = self.text[self.at + 1]
            node = self.add(self.qualified_type() if ord("1") <= byte <= ord("9") else self.a_name(False))
        elif byte == ord("T"):
            node = self.parameter_type()
        elif byte == ord("D"):
            node = self.more_types()
        elif byte == ord("F"):
            node = self.add(self.function_type())
        elif byte == ord("A"):
            node = self.add(self.array_type())
        elif byte == ord("M"):
            self.at += 1
            node = self.add(self.join(MEMBER_POINTER | SHAPED, self.a_type(), self.a_type(), 0))
        elif byte in b"CG":
            self.at += 1
            kind = _COMPLEX if byte == ord("C") else _IMAGINARY
            node = self.add(self.join(SUFFIXED, self.a_type(), self.node(WORD, kind, 0, 0), 0))
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
        kind = self.kind(node)
        if kind in (PARAMETER, FORWARD):
            # Behind the type of a conversion operator its own arguments follow.
            if self.converting:
                return False
            kind = self.kind(self.nodes[node + 2])
        return not (POINTER <= kind <= VECTOR or kind == TEMPLATE)

    def parameter_type(self) -> cython.int:
        """A template parameter, a template that is one, or a class with the word in front of it."""
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
        arguments = 0
        start = self.at
        byte = self.text[self.at]
        if byte == ord("U"):
            self.at += 1
            name = self.slice()
            if self.text[self.at] == ord("I"):
                arguments = self.arguments(False)
            node = self.qualified_type() if self.enter() else 0
            self.depth -= 1
            return self.join(VENDOR_QUALIFIED, node, name, arguments)
        while byte in b"rVK":
            self.at += 1
            byte = self.text[self.at]
        if self.at > start and (byte == ord("F") or (byte == ord("D") and self.text[self.at + 1] in b"oOwx")):
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
        head = 0
        exceptions = 0
        quals = self.qualifiers()
        byte = self.text[self.at + 1] if self.text[self.at] == ord("D") else 0
        if byte in b"oOw":
            self.at += 2
        if byte == ord("o"):
            exceptions = self.node(WORD, _NOEXCEPT, 0, 0)
        elif byte == ord("O"):
            exceptions = self.join(ENCLOSED, self.node(WORD, _NOEXCEPT_IF, 0, 0), self.expression(), 0)
            self.expect(ord("E"))
        elif byte == ord("w"):
            while not self.eat(ord("E")) and not self.bad:
                exceptions = self.append(exceptions, self.a_type())
            exceptions = self.join(ENCLOSED, self.node(WORD, _THROW, 0, 0), exceptions, 0)
        if self.text[self.at] == ord("D") and self.text[self.at + 1] == ord("x"):
            self.at += 2
            safe = self.node(WORD, _TRANSACTION_SAFE, 0, 0)
            exceptions = self.join(SUFFIXED, exceptions, safe, 0) if exceptions else safe
        self.expect(ord("F"))
        self.eat(ord("Y"))
        returned = self.a_type()
        while not self.eat(ord("E")) and not self.bad:
            byte = self.text[self.at]
            if byte == ord("v"):
                self.at += 1
            elif byte in b"RO" and self.text[self.at + 1] == ord("E"):
                quals |= LVALUE if byte == ord("R") else RVALUE
                self.at += 1
            else:
                head = self.append(head, self.a_type())
        return self.join(FUNCTION | SHAPED, returned, self.join(SIGNATURE | quals << EXTRA, head, 0, exceptions), 0)

    def dimension(self) -> cython.int:
        """A number or an expression, `_`."""
        node = self.digits() if ord("0") <= self.text[self.at] <= ord("9") else self.expression()
        self.expect(ord("_"))
        return node

    def array_type(self) -> cython.int:
        """`A`, a number, an expression or nothing, `_`, the type of the elements."""
        self.at += 1
        size = 0 if self.eat(ord("_")) else self.dimension()
        return self.join(ARRAY | SHAPED, size, self.a_type(), 0)

    def vendor_type(self) -> cython.int:
        """`u`, an identifier, and arguments of a type that the compiler computes."""
        self.at += 1
        name = self.slice()
        return self.join(TRANSFORMED, name, self.arguments(False), 0) if self.text[self.at] == ord("I") else name

    def decltype(self) -> cython.int:
        """`Dt` or `DT`, an expression, `E`."""
        self.at += 2
        # Clang 19 has no encoding for an element of a pack and leaves the expression out.
        node = self.expression() if self.text[self.at] != ord("E") else self.node(LIST, 0, 0, 0)
        self.expect(ord("E"))
        return self.join(ENCLOSED, self.node(WORD, _DECLTYPE, 0, 0), node, 0)

    def more_types(self) -> cython.int:
        """Types that begin with `D`."""
        byte = self.text[self.at + 1]
        if byte in b"tT":
            return self.add(self.decltype())
        if byte in b"oOwx":
            return self.add(self.function_type())
        self.at += 2
        if byte == ord("p"):
            return self.add(self.node(EXPANSION, self.a_type(), 0, 0))
        if byte == ord("v"):
            return self.add(self.vector_type())
        if byte == ord("F"):
            return self.float_type()
        if byte in b"BU":
            found: cython.int = _BIT_INT if byte == ord("B") else _UNSIGNED_BIT_INT
            return self.add(self.join(ENCLOSED, self.node(WORD, found, 0, 0), self.dimension(), 0))
        if byte in b"kK":
            found = _AUTO if byte == ord("k") else _DECLTYPE_AUTO
            return self.join(CONSTRAINED, self.a_name(False), self.node(WORD, found, 0, 0), 0)
        if byte == ord("y"):
            return self.add(self.join(SELECTED, self.a_type(), self.expression(), 0))
        found = _MORE_BUILTIN_WORDS[byte]
        return self.node(WORD, found, 0, 0) if found >= 0 else self.fail()

    def float_type(self) -> cython.int:
        """Behind `DF`: a floating-point type of so many bits, with an `x` of more, with a `b` bfloat16."""
        start = self.at
        self.number()
        end = self.at
        if self.eat(ord("b")):
            return self.node(WORD, _BFLOAT, 0, 0)
        if self.eat(ord("x")):
            end = self.at
        else:
            self.expect(ord("_"))
        return self.node(PREFIXED, self.node(WORD, _FLOAT_N, 0, 0), self.node(NAME, start, end, 0), 0)

    def vector_type(self) -> cython.int:
        """Behind `Dv`: a number or an expression, `_`, the type of the elements, or `p` for pixels."""
        if ord("1") <= self.text[self.at] <= ord("9"):
            size = self.digits()
        else:
            self.eat(ord("_"))  # in front of an expression that begins with a digit
            size = self.expression()
        self.expect(ord("_"))
        of = self.node(WORD, _PIXEL, 0, 0) if self.eat(ord("p")) else self.a_type()
        return self.join(VECTOR, of, size, 0)

    def substitution(self) -> cython.int:
        """`S` what has been read before, or a class of the standard library."""
        self.at += 1
        byte = self.text[self.at]
        if byte == ord("_") or ord("0") <= byte <= ord("9") or ord("A") <= byte <= ord("Z"):
            index = self.sequence()
            return self.subs[index] if index < self.substitutions else self.fail()
        found = _ABBREVIATED[byte]
        if found is None:
            return self.fail()
        self.at += 1
        self.last_name = self.node(WORD, found[1], 0, 0)
        byte = self.text[self.at]
        if byte == ord("C") or (byte == ord("D") and ord("0") <= self.text[self.at + 1] <= ord("9")):
            node = self.node(WORD, found[2], 0, 0)
            if found[3] < 0:
                return node
            return self.node(TEMPLATE, node, self.append(0, self.node(WORD, found[3], 0, 0)), 0)
        node = self.node(WORD, found[0], 0, 0)
        return self.add(self.tags(node)) if byte == ord("B") else node
