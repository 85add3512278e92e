# cython: boundscheck=True, wraparound=False, initializedcheck=False, infer_types=True
"""The tree of an Itanium C++ linkage name (Itanium C++ ABI, chapter 5.1).

A `CppParser` makes the nodes, a `CppPrinter` makes a text of them. A node is the offset of four numbers in one array:
its kind with its flags, and three fields (`itanium_nodes`). 0 is no node. A back reference is the node itself, so a
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
    from symbolize.names.demangler import Demangler
    from symbolize.names.itanium_nodes import *


@cython.cclass
class CppTree(Demangler):
    """The nodes of one name at a time; its arrays serve all names."""

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
