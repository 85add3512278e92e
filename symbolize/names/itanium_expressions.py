# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""Expressions and values in Itanium C++ linkage names (Itanium C++ ABI, 5.1.6 Expressions)."""

from __future__ import annotations

import cython

from symbolize.names.itanium_names import OPERATORS
from symbolize.names.itanium_tree import word

if not cython.compiled:
    from symbolize.names.itanium_names import NameParser
    from symbolize.names.itanium_nodes import *

# How the operands of an operator are written.
_UNARY = cython.declare(cython.int, 1)
_BINARY = cython.declare(cython.int, 2)
_INCREMENT = cython.declare(cython.int, 3)  # in front of the operand with `_`, else behind it
_OF_TYPE = cython.declare(cython.int, 4)
_MEMBER = cython.declare(cython.int, 5)
_NAMED_CAST = cython.declare(cython.int, 6)

_FORMS = (
    (_UNARY, b"ps ng ad de co nt aw"),
    (_BINARY, b"pl mi ml dv rm an or eo aS pL mI mL dV rM aN oR eO ls rs lS rS eq ne lt gt le ge ss aa oo cm pm"),
    (_INCREMENT, b"pp mm"),
)
_SPELLED = (
    (_UNARY, b"dl", b"delete "), (_UNARY, b"da", b"delete[] "), (_UNARY, b"te", b"typeid "),
    (_UNARY, b"sz", b"sizeof "), (_UNARY, b"az", b"alignof "), (_UNARY, b"nx", b"noexcept"),
    (_UNARY, b"tw", b"throw "), (_UNARY, b"aw", b"co_await "), (_OF_TYPE, b"st", b"sizeof "),
    (_OF_TYPE, b"at", b"alignof "), (_OF_TYPE, b"ti", b"typeid "), (_BINARY, b"ds", b".*"), (_MEMBER, b"dt", b"."),
    (_MEMBER, b"pt", b"->"), (_NAMED_CAST, b"dc", b"dynamic_cast"), (_NAMED_CAST, b"sc", b"static_cast"),
    (_NAMED_CAST, b"cc", b"const_cast"), (_NAMED_CAST, b"rc", b"reinterpret_cast"),
)  # fmt: skip
_expressions = {
    code[0] << 8 | code[1]: (form, word(OPERATORS[code[0] << 8 | code[1]]))
    for form, codes in _FORMS
    for code in codes.split()
} | {code[0] << 8 | code[1]: (form, word(text)) for form, code, text in _SPELLED}
_EXPRESSIONS = cython.declare(dict, _expressions)
_TILDE = cython.declare(cython.int, word(b"~"))
_GLOBAL = cython.declare(cython.int, word(b"::"))
_THROW = cython.declare(cython.int, word(b"throw"))
_NEW = cython.declare(cython.int, word(b"new "))
_NEW_ARRAY = cython.declare(cython.int, word(b"new[] "))
_DOT = cython.declare(cython.int, word(b"."))


@cython.cclass
class ExpressionParser(NameParser):
    """Makes the nodes of expressions."""

    def expression(self) -> cython.int:
        """An expression."""
        node: cython.int
        byte: cython.uchar = self.text[self.at]
        if byte == ord("L"):
            return self.literal()
        self.enter()
        if self.bad:
            return 0
        if byte == ord("T"):
            node = self.parameter()
            # A template that is a parameter, applied to arguments.
            if self.text[self.at] == ord("I"):
                node = self.template(node, False)
        elif ord("1") <= byte <= ord("9"):
            node = self.unresolved_component()
        elif byte == ord("f"):
            node = self.parameter_or_fold()
        else:
            node = self.operation(byte << 8 | self.text[self.at + 1])
        self.depth -= 1
        return node

    def operation(self, code: cython.int) -> cython.int:
        """An operator and its operands."""
        node: cython.int
        operator: cython.int
        form: cython.int
        known = _EXPRESSIONS.get(code)
        if known is None:
            return self.other_expression(code)
        self.at += 2
        form = known[0]
        operator = self.node(WORD, known[1], 0, 0)
        if form == _UNARY:
            node = self.join(UNARY, operator, self.expression(), 0)
            self.nodes[node] |= (code == ord("n") << 8 | ord("x")) << EXTRA
            return node
        if form == _BINARY:
            node = self.expression()
            return self.join(BINARY, operator, node, self.expression())
        if form == _OF_TYPE:
            node = self.join(UNARY, operator, self.a_type(), 0)
            self.nodes[node] |= (code == ord("s") << 8 | ord("t")) << EXTRA
            return node
        if form == _MEMBER:
            node = self.expression()
            return self.join(BINARY, operator, node, self.unresolved())
        if form == _NAMED_CAST:
            node = self.a_type()
            return self.join(NAMED_CAST, operator, node, self.expression())
        if self.eat(ord("_")):
            return self.join(UNARY, operator, self.expression(), 0)
        return self.join(POSTFIX, operator, self.expression(), 0)

    def other_expression(self, code: cython.int) -> cython.int:
        """Expressions that are not an operator with a fixed number of operands."""
        node: cython.int
        byte: cython.uchar = code >> 8
        letter: cython.uchar = code & 0xFF
        if byte == ord("s"):
            if letter == ord("r"):
                return self.unresolved()
            return self.pack_expression(letter)
        if byte == ord("c"):
            return self.call_or_cast(letter)
        if (byte == ord("o") and letter == ord("n")) or (byte == ord("d") and letter == ord("n")):
            return self.unresolved()
        if byte == ord("d"):
            return self.designated(letter)
        if self.eat_code(ord("g"), ord("s")):
            node = self.node(WORD, _GLOBAL, 0, 0)
            # `::new` and `::delete`.
            if self.text[self.at] == ord("n") or (
                self.text[self.at] == ord("d") and self.text[self.at + 1] != ord("n")
            ):
                return self.join(UNARY, node, self.expression(), 0)
            return self.join(UNARY, node, self.unresolved(), 0)
        if self.eat_code(ord("i"), ord("x")):
            node = self.expression()
            return self.join(INDEX, node, self.expression(), 0)
        if self.eat_code(ord("q"), ord("u")):
            node = self.expression()
            code = self.expression()
            return self.join(CONDITION, node, code, self.expression())
        if self.eat_code(ord("t"), ord("l")):
            node = self.a_type()
            return self.join(BRACED, node, self.list(False), 0)
        if self.eat_code(ord("i"), ord("l")):
            return self.join(BRACED, 0, self.list(False), 0)
        if self.eat_code(ord("t"), ord("r")):
            return self.node(WORD, _THROW, 0, 0)
        if byte == ord("n") and (letter == ord("w") or letter == ord("a")):
            return self.new(letter == ord("a"))
        if byte == ord("r") and (letter == ord("q") or letter == ord("Q")):
            return self.requirements(letter == ord("Q"))
        if byte == ord("u"):
            return self.vendor_expression()
        return self.fail()

    def list(self, of_arguments: cython.bint) -> cython.int:
        """Expressions, or template arguments, up to an `E`."""
        head: cython.int = 0
        tail: cython.int = 0
        while self.text[self.at] != ord("E") and not self.bad:
            tail = self.append(tail, self.argument() if of_arguments else self.expression())
            head = head or tail
        self.expect(ord("E"))
        return self.close(head)

    def call_or_cast(self, letter: cython.uchar) -> cython.int:
        """`cl` and `cp` a call, `cv` a conversion."""
        node: cython.int
        self.at += 2
        if letter == ord("l") or letter == ord("p"):
            node = self.expression() if letter == ord("l") else self.unresolved()
            return self.join(CALL, node, self.list(False), 0)
        if letter != ord("v"):
            return self.fail()
        node = self.a_type()
        if self.eat(ord("_")):
            return self.join(CAST, node, self.join(ARGUMENTS, self.list(False), 0, 0), 0)
        return self.join(CAST, node, self.expression(), 0)

    def pack_expression(self, letter: cython.uchar) -> cython.int:
        """Packs: expanded, counted, indexed; and parts of objects."""
        node: cython.int
        self.at += 2
        if letter == ord("p"):
            node = self.expression()
            return self.node(EXPANSION, node, 0, 0)
        if letter == ord("Z"):
            node = self.expression()
            return self.node(PACK_SIZE, node, 0, 0)
        if letter == ord("P"):
            return self.node(LIST_SIZE, self.list(True), 0, 0)
        if letter == ord("y"):
            node = self.expression()
            return self.join(SELECTED, node, self.expression(), 0)
        if letter == ord("o"):
            return self.subobject()
        return self.fail()

    def subobject(self) -> cython.int:
        """A type, an object, an offset, members of unions, `p` for the end of an array, `E`."""
        of: cython.int = self.a_type()
        node: cython.int = self.expression()
        start: cython.int = self.at
        end: cython.int
        self.eat(ord("n"))
        self.digits()
        end = self.at
        while not self.bad and self.eat(ord("_")):
            self.digits()
        self.eat(ord("p"))
        self.expect(ord("E"))
        return self.join(SUBOBJECT, of, node, self.node(NAME, start, end, 0))

    def parameter_or_fold(self) -> cython.int:
        """`fp`, `fL`: a parameter of the function; `fl`, `fr`, `fL`, `fR`: a fold expression."""
        node: cython.int
        operator: cython.int
        letter: cython.uchar = self.text[self.at + 1]
        byte: cython.uchar = self.text[self.at + 2]
        self.at += 2
        if letter == ord("p") or (letter == ord("L") and ord("0") <= byte <= ord("9")):
            if letter == ord("L"):
                self.number()
                self.expect(ord("p"))
            elif byte == ord("T"):
                self.at += 1
                return self.node(ARGUMENT, 0, 0, 0)
            self.qualifiers()
            return self.node(ARGUMENT, self.ordinal() + 1, 0, 0)
        found = _EXPRESSIONS.get(byte << 8 | self.text[self.at + 1])
        if found is None or (letter != ord("l") and letter != ord("r") and letter != ord("L") and letter != ord("R")):
            return self.fail()
        self.at += 2
        operator = self.node(WORD, found[1], 0, 0)
        node = self.expression()
        if letter == ord("L") or letter == ord("R"):
            return self.join(FOLD, operator, node, self.expression())
        return self.node(FOLD | (1 if letter == ord("l") else 2) << EXTRA, operator, node, 0)

    def designated(self, letter: cython.uchar) -> cython.int:
        """`di` a member and its value, `dx` an element, `dX` elements from one to another."""
        node: cython.int
        other: cython.int
        self.at += 2
        if letter == ord("i"):
            node = self.source_name()
            return self.join(DESIGNATED, self.node(WORD, _DOT, 0, 0), node, self.expression())
        if letter == ord("x"):
            node = self.expression()
            return self.join(DESIGNATED, 0, node, self.expression())
        if letter != ord("X"):
            return self.fail()
        node = self.expression()
        other = self.expression()
        return self.join(DESIGNATED_RANGE, node, other, self.expression())

    def new(self, array: cython.bint) -> cython.int:
        """`nw` or `na`, placement arguments, `_`, a type, `pi` and an initializer, `E`."""
        head: cython.int = 0
        tail: cython.int = 0
        of: cython.int
        initializer: cython.int = 0
        self.at += 2
        while self.text[self.at] != ord("_") and not self.bad:
            tail = self.append(tail, self.expression())
            head = head or tail
        self.expect(ord("_"))
        of = self.a_type()
        if self.eat_code(ord("p"), ord("i")):
            initializer = self.join(ARGUMENTS, self.list(False), 0, 0)
        elif self.text[self.at] == ord("i"):
            initializer = self.expression()
        else:
            self.expect(ord("E"))
        tail = self.join(SIGNATURE, self.close(head), initializer, 0)
        return self.join(NEW, self.node(WORD, _NEW_ARRAY if array else _NEW, 0, 0), tail, of)

    def requirements(self, with_parameters: cython.bint) -> cython.int:
        """A requires expression: parameters, `_`, requirements, `E`."""
        parameters: cython.int = 0
        head: cython.int = 0
        tail: cython.int = 0
        node: cython.int
        kind: cython.int
        byte: cython.uchar
        self.at += 2
        if with_parameters:
            parameters = self.types(ord("_"))
            self.expect(ord("_"))
        while self.text[self.at] != ord("E") and not self.bad:
            byte = self.text[self.at]
            self.at += 1
            if byte == ord("X"):
                node = self.expression()
                kind = NEEDS_EXPRESSION
                if self.eat(ord("N")):
                    kind |= 1 << EXTRA
                if self.eat(ord("R")):
                    node = self.join(kind, node, self.a_name(False), 0)
                else:
                    node = self.join(kind, node, 0, 0)
            elif byte == ord("T"):
                node = self.join(NEEDS_TYPE, self.a_type(), 0, 0)
            elif byte == ord("Q"):
                node = self.join(NEEDS_CONSTRAINT, self.expression(), 0, 0)
            else:
                return self.fail()
            tail = self.append(tail, node)
            head = head or tail
        self.expect(ord("E"))
        return self.join(REQUIRES, parameters, self.close(head), 0)

    def vendor_expression(self) -> cython.int:
        """`u`, an identifier, template arguments, `E`."""
        node: cython.int
        self.at += 1
        node = self.source_name()
        return self.join(VENDOR_CALL, node, self.list(True), 0)

    def unresolved(self) -> cython.int:
        """A name that is looked up when the template is instantiated.

        By the ABI, and by Clang, `sr` goes with a type, or with scopes up to an `E`; `srN` with a type and scopes in it
        up to an `E`. None of the scopes can be referred back to. GCC writes a type behind `sr` whatever its name, which
        can be referred back to in all its parts. Names of both look alike, so they are read in more than one way until
        the rest of the name makes sense: `srN` as GCC's, then as Clang's; scopes up to an `E` as such, then as GCC's.
        """
        node: cython.int
        at: cython.int
        count: cython.int
        last_name: cython.int
        if self.eat_code(ord("g"), ord("s")):
            return self.join(UNARY, self.node(WORD, _GLOBAL, 0, 0), self.unresolved(), 0)
        if not self.eat_code(ord("s"), ord("r")):
            return self.unresolved_component()
        if self.text[self.at] == ord("N"):
            self.ambiguous = True
            if self.reading == CLANG_READING:
                self.at += 1
                return self.unresolved_in_scopes(self.a_type())
        elif ord("1") <= self.text[self.at] <= ord("9"):
            self.ambiguous = True
            at = self.at
            count = self.count
            last_name = self.last_name
            if self.reading != OLD_READING:
                substitutions: cython.int = self.substitutions
                node = self.unresolved_in_scopes(self.unresolved_component())
                if not self.bad or self.refused:
                    return node
                self.bad = False
                self.substitutions = substitutions
            self.at, self.count, self.last_name = at, count, last_name
        node = self.a_type()
        return self.join(MEMBER, node, self.unresolved_component(), 0)

    def unresolved_in_scopes(self, node: cython.int) -> cython.int:
        """Scopes in the one given, `E`, and a name in them."""
        while ord("1") <= self.text[self.at] <= ord("9") and not self.bad:
            node = self.join(MEMBER, node, self.unresolved_component(), 0)
        self.expect(ord("E"))
        return self.join(MEMBER, node, self.unresolved_component(), 0)

    def unresolved_component(self) -> cython.int:
        """An identifier, `on` and an operator, or `dn` and a destructor, with template arguments if it has some."""
        node: cython.int
        byte: cython.uchar = self.text[self.at]
        if self.eat_code(ord("o"), ord("n")):
            node = self.operator_name(False)
        elif self.eat_code(ord("d"), ord("n")):
            byte = self.text[self.at]
            node = self.unresolved_component() if ord("1") <= byte <= ord("9") else self.a_type()
            return self.join(PREFIXED, self.node(WORD, _TILDE, 0, 0), node, 0)
        elif ord("1") <= byte <= ord("9"):
            node = self.source_name()
        else:
            return self.fail()
        if self.text[self.at] == ord("B"):
            node = self.tags(node)
        return self.template(node, False) if self.text[self.at] == ord("I") else node

    def literal(self) -> cython.int:
        """A number, null pointer, string, lambda, or the name of a function or object."""
        node: cython.int
        start: cython.int
        negative: cython.bint = False
        byte: cython.uchar
        self.at += 1
        byte = self.text[self.at]
        if (byte == ord("_") and self.text[self.at + 1] == ord("Z")) or byte == ord("Z"):
            self.at += 2 if byte == ord("_") else 1
            node = self.encoding(False)
            self.expect(ord("E"))
            return node
        node = self.a_type()
        if self.eat(ord("E")):
            if self.kind(node) == ARRAY:
                return self.join(STRING, node, 0, 0)
            return self.join(LAMBDA_VALUE, node, 0, 0) if self.kind(node) != WORD else node
        if self.eat(ord("n")):
            negative = True
        start = self.at
        byte = self.text[start]
        while ord("0") <= byte <= ord("9") or ord("a") <= byte <= ord("z") or byte == ord("_"):
            self.at += 1
            byte = self.text[self.at]
        if self.at == start:
            return self.fail()
        node = self.join(LITERAL, node, self.node(NAME, start, self.at, 0), 0)
        self.nodes[node] |= negative << EXTRA
        self.expect(ord("E"))
        return node
