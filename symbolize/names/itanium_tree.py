# cython: boundscheck=True, wraparound=False, initializedcheck=False, infer_types=True
"""The tree of an Itanium C++ linkage name (Itanium C++ ABI, chapter 5.1).

A `Tree` holds the nodes; `itanium_types`, `itanium_names` (names) and `itanium_expressions` make them,
`itanium_printer` (names and types) and `itanium_demangler` (expressions) print them. A node is the offset of four
numbers in one array: its kind with its flags, and three fields. 0 is no node. A back reference is the node itself, so a
small name can expand to a text without bounds: parsing takes steps in proportion to the name, and what prints has
limits of its own (R117).

The argument of a template parameter (`PARAMETER`) depends on where it is printed, as compilers take the first
parameters of all templates for one type that can be referred back to: the arguments of the function around it count, in
the signature of a generic lambda it is `auto`, and elsewhere it is what it was where it was read. The arguments for the
type of a conversion operator follow it (`FORWARD`).
"""

from __future__ import annotations

from array import array

import cython

if not cython.compiled:
    from symbolize.names.demangler import MAX_NAME, Demangler
    from symbolize.names.itanium_nodes import *

MAX_LOOKUPS = 1 << 20

WORDS: list[bytes] = []
_INDEX: dict[bytes, int] = {}


def word(text: bytes) -> int:
    """The index of a text of the language in `WORDS`."""
    index = _INDEX.setdefault(text, len(WORDS))
    if index == len(WORDS):
        WORDS.append(text)
    return index


_ANONYMOUS_SIZE = cython.declare(cython.int, len("_GLOBAL__N"))
_ANONYMOUS = cython.declare(cython.int, word(b"(anonymous namespace)"))


@cython.cclass
class Tree(Demangler):
    """The nodes of one name at a time; its arrays serve all names."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes = memoryview(array("i", bytes(4 * 1024)))
        self.subs = memoryview(array("i", bytes(4 * 64)))
        self.reading = 0
        self.reset()

    def reset(self) -> cython.int:
        """Begin anew with the name."""
        self.bad = self.refused = self.generic = self.forwarding = self.converting = self.ambiguous = self.leveled = (
            False
        )
        self.templated = self.special = False
        self.at = self.depth = self.lookups = self.quals = 0
        self.params = self.outer = self.forwards = self.last_name = self.substitutions = 0
        self.count = 4
        return 0

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

    def kind(self, node: cython.int) -> cython.int:
        """What a node is."""
        return self.nodes[node] & KIND

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

    def item(self, node: cython.int, index: cython.int) -> cython.int:
        """An item of a list; 0 if it has fewer."""
        self.count_steps(index >> 4)
        while node and index:
            node = self.nodes[node + 2]
            index -= 1
        return self.nodes[node + 1] if node else 0

    def pack_length(self, pack: cython.int) -> cython.int:
        """The number of elements of a pack."""
        count = 0
        node = self.nodes[pack + 1]
        while node:
            count += 1
            node = self.nodes[node + 2]
        self.count_steps(count)
        return count

    def add(self, node: cython.int) -> cython.int:
        """Take a component up among those that can be referred back to."""
        if self.substitutions == len(self.subs):
            self.subs = memoryview(array("i", self.subs) * 2)
        self.subs[self.substitutions] = node
        self.substitutions += 1
        return node

    def expect(self, byte: cython.uchar) -> cython.int:
        """Pass a character that must be there."""
        return 0 if self.eat(byte) else self.fail()

    def number(self) -> cython.int:
        """Decimal digits, at least one."""
        value = 0
        byte = self.text[self.at]
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
        value = 0
        if self.text[self.at] != ord("_"):
            value = self.number() + 1
        self.expect(ord("_"))
        return value

    def sequence(self) -> cython.int:
        """The same with digits of base 36, `0` to `9` and `A` to `Z`."""
        value = 0
        byte = self.text[self.at]
        if byte == ord("_"):
            self.at += 1
            return 0
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
        if (
            self.text[start] == ord("_")
            and self.nodes[node + 2] - start >= _ANONYMOUS_SIZE
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
        while self.eat(ord("B")) and not self.bad:
            node = self.node(TAGGED | self.nodes[node] & PACKED, node, self.slice(), 0)
        return node

    def qualifiers(self) -> cython.int:
        """The qualifiers of the object that a member function is called for."""
        quals = 0
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
        start = self.at
        while ord("0") <= self.text[self.at] <= ord("9"):
            self.at += 1
        return self.node(NAME, start, self.at, 0)
