# cython: boundscheck=True, wraparound=False, initializedcheck=False, infer_types=True
"""The tree of Itanium C++ linkage names, and their lexer: numbers, identifiers, back references, and what else has no
parts of its own.

A method passes over what it reads and returns the node of it, or the number.
"""

from __future__ import annotations

from array import array

import cython

from symbolize.names import itanium_codes
from symbolize.names.itanium_codes import word

if not cython.compiled:
    from symbolize.names.demangler import MAX_NAME, Demangler
    from symbolize.names.itanium_nodes import *

MAX_LOOKUPS = 1 << 20

_ABBREVIATED = cython.declare(list, itanium_codes.ABBREVIATED)
_PLACES = cython.declare(dict, itanium_codes.PLACES)
_ANONYMOUS = cython.declare(bytes, b"_GLOBAL_")  # with a sign that the object format allows, and `N`, behind it
_ANONYMOUS_NAMESPACE = cython.declare(cython.int, word(b"(anonymous namespace)"))


@cython.cclass
class CppTree(Demangler):
    """The tree of a linkage name (Itanium C++ ABI, chapter 5.1): the nodes of one name at a time; its arrays serve all
    names.

    A `CppParser` makes the nodes, a `CppPrinter` makes a text of them. A node is the offset of four numbers in one
    array: its kind with its flags, and three fields (`itanium_nodes`). 0 is no node. A back reference is the node
    itself, so a small name can expand to a text without bounds: parsing takes steps in proportion to the name, and what
    prints has limits of its own (R117).

    The argument of a template parameter (`PARAMETER`) depends on where it is printed, as compilers take the first
    parameters of all templates for one type that can be referred back to: the arguments of the function around it
    count, in the signature of a generic lambda it is `auto`, and elsewhere it is what it was where it was read. The
    arguments for the type of a conversion operator follow it (`FORWARD`).
    """

    def __init__(self) -> None:
        super().__init__()
        self.nodes = memoryview(array("i", bytes(4 * 1024)))
        self.count = 4

    def node(self, kind: cython.int, a: cython.int, b: cython.int, c: cython.int) -> cython.int:
        """A node whose fields are not all nodes."""
        at = self.count
        if at + 4 > len(self.nodes):
            self.nodes = memoryview(array("i", self.nodes) * 2)
        self.nodes[at] = kind
        self.nodes[at + 1] = a
        self.nodes[at + 2] = b
        self.nodes[at + 3] = c
        self.count = at + 4
        return at

    def join(self, kind: cython.int, a: cython.int, b: cython.int, c: cython.int) -> cython.int:
        """A node all of whose fields are nodes; it holds a pack if one of them does."""
        return self.node(kind | (self.nodes[a] | self.nodes[b] | self.nodes[c]) & PACKED, a, b, c)

    def append(self, head: cython.int, item: cython.int) -> cython.int:
        """The list with one more item; its head holds a pack if one of the items does."""
        node = self.node(LIST | self.nodes[item] & PACKED, item, 0, 0)
        if head:
            self.nodes[self.nodes[head + 3] + 2] = node
            self.nodes[head] |= self.nodes[node]
        else:
            head = node
        self.nodes[head + 3] = node
        return head

    def kind(self, node: cython.int) -> cython.int:
        """What a node is."""
        return self.nodes[node] & KIND

    def item(self, node: cython.int, index: cython.int) -> cython.int:
        """An item of a list; 0 if it has fewer."""
        self.count_steps(index >> 4)
        while node and index:
            node = self.nodes[node + 2]
            index -= 1
        return self.nodes[node + 1] if node else 0


@cython.cclass
class CppLexer(CppTree):
    """Makes the nodes that are leaves, and keeps those that can be referred back to."""

    def __init__(self) -> None:
        super().__init__()
        self.subs = memoryview(array("i", bytes(4 * 64)))
        self.substitutions = self.lookups = self.last_name = 0

    def word(self, text: bytes) -> cython.int:
        """A text of the language."""
        index = _PLACES.get(text)
        return self.node(WORD, word(text) if index is None else index, 0, 0)

    def number(self) -> cython.int:
        """Decimal digits, at least one."""
        value: cython.int = 0
        start = self.at
        while ord("0") <= self.text[self.at] <= ord("9"):
            if value > MAX_NAME * 16:
                return self.fail()
            value = value * 10 + self.text[self.at] - ord("0")
            self.at += 1
        return value if self.at > start else self.fail()

    def ordinal(self) -> cython.int:
        """`_` is 0, `0_` is 1 and so on."""
        value = 0
        if self.text[self.at] != ord("_"):
            value = self.number() + 1
        self.expect(ord("_"))
        return value

    def sequence(self) -> cython.int:
        """The same with digits of base 36, `0` to `9` and `A` to `Z`."""
        value: cython.int = 0
        start = self.at
        byte = self.text[start]
        while ord("0") <= byte <= ord("9") or ord("A") <= byte <= ord("Z"):
            value = value * 36 + byte - (ord("0") if byte <= ord("9") else ord("A") - 10)
            if value > MAX_NAME:
                return self.fail()
            self.at += 1
            byte = self.text[self.at]
        value += self.at > start
        self.expect(ord("_"))
        return value

    def digits(self) -> cython.int:
        """Decimal digits as they are written."""
        start = self.at
        while ord("0") <= self.text[self.at] <= ord("9"):
            self.at += 1
        return self.node(NAME, start, self.at, 0)

    def expect(self, byte: cython.uchar) -> cython.int:
        """Pass a character that must be there."""
        return 0 if self.eat(byte) else self.fail()

    def slice(self) -> cython.int:
        """The length of an identifier and the identifier."""
        size = self.length()
        start = self.at
        if not size or size > self.size - start:
            return self.fail()
        self.at = start + size
        return self.node(NAME, start, self.at, 0)

    def source_name(self) -> cython.int:
        """An identifier, which constructors behind it are named by; `_GLOBAL__N_1` is an anonymous namespace."""
        node = self.slice()
        start = self.nodes[node + 1]
        if self.text[start] == ord("_") and self.text[start + 1] == ord("G") and self.is_anonymous(start):
            self.nodes[node] = WORD
            self.nodes[node + 1] = _ANONYMOUS_NAMESPACE
        self.last_name = node
        return node

    def is_anonymous(self, start: cython.int) -> cython.bint:
        """Whether an identifier is the name of an anonymous namespace."""
        for i in range(len(_ANONYMOUS)):
            if self.text[start + i] != _ANONYMOUS[i]:
                return False
        return self.at - start > len(_ANONYMOUS) + 1 and self.text[start + len(_ANONYMOUS) + 1] == ord("N")

    def tags(self, node: cython.int) -> cython.int:
        """ABI tags, `B` an identifier each."""
        while self.eat(ord("B")) and not self.bad:
            node = self.node(TAGGED | self.nodes[node] & PACKED, node, self.slice(), 0)
        return node

    def qualifiers(self) -> cython.int:
        """The qualifiers of the object that a member function is called for."""
        if self.text[self.at] not in b"rVKRO":
            return 0
        quals = RESTRICT * self.eat(ord("r")) | VOLATILE * self.eat(ord("V")) | CONST * self.eat(ord("K"))
        return quals | (LVALUE if self.eat(ord("R")) else RVALUE * self.eat(ord("O")))

    def module(self, module: cython.int) -> cython.int:
        """`W` names of a module and its partitions."""
        while self.eat(ord("W")) and not self.bad:
            partition = self.eat(ord("P"))
            module = self.add(self.node(MODULE | partition << EXTRA, module, self.source_name(), 0))
        return module

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

    def add(self, node: cython.int) -> cython.int:
        """Take a component up among those that can be referred back to."""
        if self.substitutions == len(self.subs):
            self.subs = memoryview(array("i", self.subs) * 2)
        self.subs[self.substitutions] = node
        self.substitutions += 1
        return node

    def repeats(self, node: cython.int) -> cython.bint:
        """Whether a name in a scope could have been referred back to instead, had it been read as it should be."""
        name = self.nodes[node + 2]
        if self.kind(node) != NESTED or self.kind(name) != NAME:
            return False
        at = self.nodes[name + 1]
        size = self.nodes[name + 2] - at
        self.lookups += self.substitutions
        if self.lookups > MAX_LOOKUPS:
            self.refuse()
        for i in range(self.substitutions):
            other = self.subs[i]
            if self.kind(other) == NESTED and self.nodes[other + 1] == self.nodes[node + 1]:
                other = self.nodes[other + 2]
                if self.kind(other) == NAME and self.nodes[other + 2] - self.nodes[other + 1] == size:
                    other = self.nodes[other + 1]
                    k = 0
                    while k < size and self.text[at + k] == self.text[other + k]:
                        k += 1
                    if k == size:
                        return True
        return False

    def offset(self) -> cython.int:
        """What a thunk adjusts by: behind `h` one number, behind `v` two, with an underscore behind each."""
        count = 2 if self.eat(ord("v")) else 1
        if count == 1:
            self.expect(ord("h"))
        for _ in range(count):
            self.eat(ord("n"))
            self.number()
            self.expect(ord("_"))
        return 0

    def part(self) -> cython.int:
        """The offset of a part of an object; not printed are members of unions and `p` for the end of an array."""
        start = self.at
        self.eat(ord("n"))
        self.digits()
        end = self.at
        while self.eat(ord("_")):
            self.digits()
        self.eat(ord("p"))
        self.expect(ord("E"))
        return self.node(NAME, start, end, 0)

    def float_type(self) -> cython.int:
        """Behind `DF`: a floating-point type of so many bits, with an `x` of more, with a `b` bfloat16."""
        start = self.at
        self.number()
        end = self.at
        if self.eat(ord("b")):
            return self.word(b"std::bfloat16_t")
        if self.eat(ord("x")):
            end = self.at
        else:
            self.expect(ord("_"))
        return self.node(PREFIXED, self.word(b"_Float"), self.node(NAME, start, end, 0), 0)

    def discriminator(self) -> cython.int:
        """What tells things of one name in a function apart, `_` a digit or `__` a number `_`; not printed."""
        is_long: cython.bint = self.text[self.at + 1] == ord("_")
        byte = self.text[self.at + 2] if is_long else self.text[self.at + 1]
        if self.text[self.at] != ord("_") or not ord("0") <= byte <= ord("9"):
            return 0
        self.at += 2
        if is_long:
            self.number()
            self.expect(ord("_"))
        return 0

    def suffix(self) -> cython.int:
        """What compilers append to a name, behind a dot; versions of symbols are another matter (R114)."""
        byte = self.text[self.at + 1]
        if self.text[self.at] != ord(".") or byte == 0 or byte == ord("."):
            return self.fail()
        while self.at < self.size:
            if self.text[self.at] == ord("@"):
                return self.fail()
            self.at += 1
        return 0
