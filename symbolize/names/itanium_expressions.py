# cython: boundscheck=True, wraparound=False, initializedcheck=False, infer_types=True
"""Expressions and values in Itanium C++ linkage names (Itanium C++ ABI, 5.1.6 Expressions)."""

from __future__ import annotations

import cython

from symbolize.names.itanium_names import OPERATORS
from symbolize.names.itanium_tree import word

if not cython.compiled:
    from symbolize.names.itanium_names import NameParser
    from symbolize.names.itanium_nodes import *

# Expressions with a fixed number of operands, by the letters of `operand`; `w` is the word of an operator.
_OPERATORS = (
    (UNARY, b"we", b"ps ng ad de co nt"),
    (
        BINARY,
        b"wee",
        b"pl mi ml dv rm an or eo aS pL mI mL dV rM aN oR eO ls rs lS rS eq ne lt gt le ge ss aa oo cm pm",
    ),
    (POSTFIX, b"we", b"pp mm"),
)
_SPELLED = (
    (UNARY, b"we", b"dl", b"delete "), (UNARY, b"we", b"da", b"delete[] "), (UNARY, b"we", b"te", b"typeid "),
    (UNARY, b"we", b"sz", b"sizeof "), (UNARY, b"we", b"az", b"alignof "), (UNARY, b"we", b"tw", b"throw "),
    (UNARY, b"we", b"aw", b"co_await "), (UNARY | 1 << EXTRA, b"we", b"nx", b"noexcept"),
    (UNARY | 1 << EXTRA, b"wt", b"st", b"sizeof "), (UNARY, b"wt", b"at", b"alignof "),
    (UNARY, b"wt", b"ti", b"typeid "), (BINARY, b"wee", b"ds", b".*"), (BINARY, b"weu", b"dt", b"."),
    (BINARY, b"weu", b"pt", b"->"), (NAMED_CAST, b"wte", b"dc", b"dynamic_cast"),
    (NAMED_CAST, b"wte", b"sc", b"static_cast"), (NAMED_CAST, b"wte", b"cc", b"const_cast"),
    (NAMED_CAST, b"wte", b"rc", b"reinterpret_cast"),
)  # fmt: skip
_WITHOUT_WORD = (
    (INDEX, b"ee", b"ix"), (CONDITION, b"eee", b"qu"), (CALL, b"el", b"cl"), (CALL, b"ul", b"cp"),
    (BRACED, b"tl", b"tl"), (BRACED, b"0l", b"il"), (DESIGNATED, b".se", b"di"), (DESIGNATED, b"0ee", b"dx"),
    (DESIGNATED_RANGE, b"eee", b"dX"), (EXPANSION, b"e", b"sp"), (PACK_SIZE, b"e", b"sZ"), (LIST_SIZE, b"A", b"sP"),
    (SELECTED, b"ee", b"sy"),
)  # fmt: skip
_NO_WORD = cython.declare(cython.int, -1)
_rows = [
    (kind, operands, code, word(OPERATORS[code[0] << 8 | code[1]]))
    for kind, operands, codes in _OPERATORS
    for code in codes.split()
]
_rows += [(kind, operands, code, word(text)) for kind, operands, code, text in _SPELLED]
_rows += [(kind, operands, code, _NO_WORD) for kind, operands, code in _WITHOUT_WORD]
_EXPRESSIONS = cython.declare(
    dict, {code[0] << 8 | code[1]: (kind, operands.ljust(3, b"0"), index) for kind, operands, code, index in _rows}
)
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
        byte = self.text[self.at]
        if byte == ord("L"):
            return self.literal()
        if not self.enter():
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
        known = _EXPRESSIONS.get(code)
        if known is None:
            return self.other_expression(code)
        self.at += 2
        kind: cython.int = known[0]
        operands: bytes = known[1]
        index: cython.int = known[2]
        if kind == POSTFIX and self.eat(ord("_")):
            kind = UNARY
        first = self.node(WORD, index, 0, 0) if index != _NO_WORD else self.operand(operands[0])
        node = self.join(kind, first, self.operand(operands[1]), self.operand(operands[2]))
        if kind in (EXPANSION, PACK_SIZE, LIST_SIZE):
            self.nodes[node] = kind  # it has used up its packs
        return node

    def operand(self, of: cython.uchar) -> cython.int:
        """A part of an expression or of a special name, by a letter."""
        if of == ord("e"):
            return self.expression()
        if of == ord("t"):
            return self.a_type()
        if of == ord("n"):
            return self.a_name(False)
        if of == ord("f"):
            return self.encoding(False)
        if of == ord("u"):
            return self.unresolved()
        if of == ord("s"):
            return self.source_name()
        if of == ord("a"):
            return self.argument()
        if of == ord("m"):
            return self.module(0)
        if of == ord("."):
            return self.node(WORD, _DOT, 0, 0)
        return self.list(ord("E"), of == ord("A")) if of in b"lA" else 0

    def other_expression(self, code: cython.int) -> cython.int:
        """Expressions that are not an operator with a fixed number of operands."""
        byte: cython.uchar = code >> 8
        letter: cython.uchar = code & 0xFF
        if (byte == ord("s") and letter == ord("r")) or (byte in b"od" and letter == ord("n")):
            return self.unresolved()
        if byte == ord("u"):
            self.at += 1
            return self.join(TRANSFORMED, self.source_name(), self.list(ord("E"), True), 0)
        self.at += 2
        if byte == ord("s") and letter == ord("o"):
            return self.subobject()
        if byte == ord("c") and letter == ord("v"):
            node = self.a_type()
            if self.eat(ord("_")):
                return self.join(CAST, node, self.join(ARGUMENTS, self.list(ord("E"), False), 0, 0), 0)
            return self.join(CAST, node, self.expression(), 0)
        if byte == ord("g") and letter == ord("s"):
            node = self.node(WORD, _GLOBAL, 0, 0)
            letter = self.text[self.at]
            if letter == ord("n") or (letter == ord("d") and self.text[self.at + 1] != ord("n")):
                return self.join(UNARY, node, self.expression(), 0)  # `::new` and `::delete`
            return self.join(UNARY, node, self.unresolved(), 0)
        if byte == ord("t") and letter == ord("r"):
            return self.node(WORD, _THROW, 0, 0)
        if byte == ord("n") and letter in b"wa":
            return self.new(letter == ord("a"))
        if byte == ord("r") and letter in b"qQ":
            return self.requirements(letter == ord("Q"))
        return self.fail()

    def list(self, end: cython.uchar, of_arguments: cython.bint) -> cython.int:
        """Expressions, or template arguments, up to a character."""
        head = 0
        while not self.eat(end) and not self.bad:
            head = self.append(head, self.argument() if of_arguments else self.expression())
        return head

    def subobject(self) -> cython.int:
        """A type, an object, an offset, members of unions, `p` for the end of an array, `E`."""
        of = self.a_type()
        node = self.expression()
        start = self.at
        self.eat(ord("n"))
        self.digits()
        end = self.at
        while self.eat(ord("_")):
            self.digits()
        self.eat(ord("p"))
        self.expect(ord("E"))
        return self.join(SUBOBJECT, of, node, self.node(NAME, start, end, 0))

    def parameter_or_fold(self) -> cython.int:
        """`fp`, `fL`: a parameter of the function; `fl`, `fr`, `fL`, `fR`: a fold expression."""
        letter = self.text[self.at + 1]
        byte = self.text[self.at + 2]
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
        if found is None or found[2] == _NO_WORD or letter not in b"lrLR":
            return self.fail()
        self.at += 2
        operator = self.node(WORD, found[2], 0, 0)
        node = self.expression()
        if letter in b"LR":
            return self.join(FOLD, operator, node, self.expression())
        return self.node(FOLD | (LEFT_FOLD if letter == ord("l") else RIGHT_FOLD) << EXTRA, operator, node, 0)

    def new(self, array: cython.bint) -> cython.int:
        """Behind `nw` or `na`: placement arguments, `_`, a type, `pi` and an initializer, `E`."""
        initializer = 0
        placement = self.list(ord("_"), False)
        of = self.a_type()
        if self.text[self.at] == ord("p") and self.text[self.at + 1] == ord("i"):
            self.at += 2
            initializer = self.join(ARGUMENTS, self.list(ord("E"), False), 0, 0)
        elif self.text[self.at] == ord("i"):
            initializer = self.expression()
        else:
            self.expect(ord("E"))
        operator = self.node(WORD, _NEW_ARRAY if array else _NEW, 0, 0)
        return self.join(NEW, operator, self.join(SIGNATURE, placement, initializer, 0), of)

    def requirements(self, with_parameters: cython.bint) -> cython.int:
        """A requires expression: parameters, `_`, requirements, `E`."""
        parameters = 0
        head = 0
        while with_parameters and not self.eat(ord("_")) and not self.bad:
            parameters = self.append(parameters, self.a_type())
        while not self.eat(ord("E")) and not self.bad:
            byte = self.text[self.at]
            self.at += 1
            if byte == ord("X"):
                node = self.expression()
                kind = NEEDS_EXPRESSION | self.eat(ord("N")) << EXTRA
                node = self.join(kind, node, self.a_name(False) if self.eat(ord("R")) else 0, 0)
            elif byte == ord("T"):
                node = self.join(NEEDS_TYPE, self.a_type(), 0, 0)
            elif byte == ord("Q"):
                node = self.join(NEEDS_CONSTRAINT, self.expression(), 0, 0)
            else:
                return self.fail()
            head = self.append(head, node)
        return self.join(REQUIRES, parameters, head, 0)

    def unresolved(self) -> cython.int:
        """A name that is looked up when the template is instantiated.

        By the ABI, and by Clang, `sr` goes with a type, or with scopes up to an `E`; `srN` with a type and scopes in it
        up to an `E`. None of the scopes can be referred back to. GCC writes a type behind `sr` whatever its name, which
        can be referred back to in all its parts. Names of both look alike, so they are read in more than one way until
        the rest of the name makes sense: `srN` as GCC's, then as Clang's; scopes up to an `E` as such, then as GCC's.
        """
        if self.text[self.at] == ord("g") and self.text[self.at + 1] == ord("s"):
            self.at += 2
            return self.join(UNARY, self.node(WORD, _GLOBAL, 0, 0), self.unresolved(), 0)
        if self.text[self.at] != ord("s") or self.text[self.at + 1] != ord("r"):
            return self.unresolved_component()
        self.at += 2
        if self.text[self.at] == ord("N"):
            self.ambiguous = True
            if self.reading == CLANG_READING:
                self.at += 1
                return self.unresolved_in_scopes(self.a_type())
        elif ord("1") <= self.text[self.at] <= ord("9") and not self.bad:
            self.ambiguous = True
            at, count, last_name = self.at, self.count, self.last_name
            if self.reading != OLD_READING:
                substitutions = self.substitutions
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
        byte = self.text[self.at]
        if byte == ord("o") and self.text[self.at + 1] == ord("n"):
            self.at += 2
            node = self.operator_name(False)
        elif byte == ord("d") and self.text[self.at + 1] == ord("n"):
            self.at += 2
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
        self.at += 1
        if self.text[self.at] == ord("_") and self.text[self.at + 1] == ord("Z"):
            self.at += 1
        if self.eat(ord("Z")):
            node = self.encoding(False)
            self.expect(ord("E"))
            return node
        node = self.a_type()
        if self.eat(ord("E")):
            if self.kind(node) == ARRAY:
                return self.join(STRING, node, 0, 0)
            return self.join(LAMBDA_VALUE, node, 0, 0) if self.kind(node) != WORD else node
        negative = self.eat(ord("n"))
        start = self.at
        byte = self.text[start]
        while ord("0") <= byte <= ord("9") or ord("a") <= byte <= ord("z") or byte == ord("_"):
            self.at += 1
            byte = self.text[self.at]
        if self.at == start:
            return self.fail()
        node = self.join(LITERAL | negative << EXTRA, node, self.node(NAME, start, self.at, 0), 0)
        self.expect(ord("E"))
        return node
