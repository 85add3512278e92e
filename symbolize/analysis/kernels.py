# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""One pass over the stacks: sums of values, and the call tree."""

import cython
import numpy as np

from symbolize.core.arrays import Int64
from symbolize.core.interning import random_mixer

if not cython.compiled:
    from symbolize.core.interning import Lists, Tuples

NODE_WORDS = cython.declare(cython.Py_ssize_t, 3)
"""Words of a node in the table: parent, key, flags."""


@cython.cclass
class StackColumns:
    """Stacks, leaf first: `locations` of stack i from `location_offsets[i]` on, a key for each frame of location j in
    `keys` from `frame_offsets[j]` on; offsets are int64[n + 1], rows and keys int32."""

    def __init__(
        self,
        location_offsets: cython.const[cython.longlong][::1],
        locations: cython.const[cython.int][::1],
        frame_offsets: cython.const[cython.longlong][::1],
        keys: cython.const[cython.int][::1],
    ) -> None:
        self.location_offsets = location_offsets
        self.locations = locations
        self.frame_offsets = frame_offsets
        self.keys = keys


@cython.ccall
@cython.boundscheck(False)  # a third faster; `analysis.totals.sums` has checked all indices
def weigh(  # type: ignore[no-untyped-def]
    values: cython.const[cython.double][::1],
    stacks: StackColumns,
    groups: cython.const[cython.int][::1],
    by_location: cython.double[::1],
    flat: cython.double[::1],
    cumulative: cython.double[::1],
    by_group: cython.double[::1],
):
    """Add each stack's value to its locations, to the keys of its frames, and to groups of locations.

    `groups` has the group of each location. A location counts as often as it is on a stack, a key once a stack in
    `cumulative`, and in `flat` when it is the leaf; a group once a stack.
    """
    location_offsets: cython.const[cython.longlong][::1] = stacks.location_offsets
    locations: cython.const[cython.int][::1] = stacks.locations
    frame_offsets: cython.const[cython.longlong][::1] = stacks.frame_offsets
    keys: cython.const[cython.int][::1] = stacks.keys
    # Where a key and a group were counted last.
    last_sample: cython.longlong[::1] = memoryview(np.full(len(cumulative), -1, np.int64))
    last_of_group: cython.longlong[::1] = memoryview(np.full(len(by_group), -1, np.int64))
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    location: cython.Py_ssize_t
    key: cython.Py_ssize_t
    is_leaf: cython.bint
    value: cython.double
    with cython.nogil:
        for i in range(len(values)):
            value = values[i]
            if value == 0:
                continue
            is_leaf = True
            for j in range(location_offsets[i], location_offsets[i + 1]):
                location = locations[j]
                by_location[location] += value
                if last_of_group[groups[location]] != i:
                    last_of_group[groups[location]] = i
                    by_group[groups[location]] += value
                for k in range(frame_offsets[location], frame_offsets[location + 1]):
                    key = keys[k]
                    if is_leaf:
                        flat[key] += value
                        is_leaf = False
                    if last_sample[key] != i:
                        last_sample[key] = i
                        cumulative[key] += value


def grow_tree(
    stacks: StackColumns,
    flags: cython.const[cython.uchar][::1],
    leaves: cython.longlong[::1],
    inverted: cython.bint,
    most: cython.Py_ssize_t,
) -> Int64:
    """Merge the stacks into a tree: parent, key and flags of each node, int64[n, 3].

    Node 0 is the root, whose own row is 0; stacks begin there with their outermost frame, or with their innermost if
    the tree is `inverted`. `leaves` is filled with the node at which each stack ends. A tree of more than `most` nodes
    is not finished.
    """
    location_offsets: cython.const[cython.longlong][::1] = stacks.location_offsets
    locations: cython.const[cython.int][::1] = stacks.locations
    frame_offsets: cython.const[cython.longlong][::1] = stacks.frame_offsets
    keys: cython.const[cython.int][::1] = stacks.keys
    nodes: Tuples = Tuples(2, random_mixer(), 1)
    lists: Lists = Lists(random_mixer())
    leaf_of: cython.longlong[::1] = memoryview(np.zeros(len(leaves), np.int64))
    known: cython.Py_ssize_t
    stack: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    node: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(leaves)):
            # Most stacks recur, and a list is found faster than a path.
            known = lists.count
            lists.size = 0
            for j in range(location_offsets[i], location_offsets[i + 1]):
                lists.append(locations[j])
            stack = lists.add()
            if stack < known:
                leaves[i] = leaf_of[stack]
                continue
            node = 0
            if inverted:
                for j in range(location_offsets[i], location_offsets[i + 1]):
                    if nodes.count >= most:
                        break
                    for k in range(frame_offsets[locations[j]], frame_offsets[locations[j] + 1]):
                        node = child(nodes, node, keys[k], flags[k])
            else:
                for j in range(location_offsets[i + 1] - 1, location_offsets[i] - 1, -1):
                    if nodes.count >= most:
                        break
                    for k in range(frame_offsets[locations[j] + 1] - 1, frame_offsets[locations[j]] - 1, -1):
                        node = child(nodes, node, keys[k], flags[k])
            leaves[i] = leaf_of[stack] = node
    tree = np.zeros((nodes.count + 1, NODE_WORDS), np.int64)
    tree[1:] = nodes.array()
    return tree


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1)
def child(nodes: Tuples, node: cython.Py_ssize_t, key: cython.int, flags: cython.uchar) -> cython.Py_ssize_t:
    """The child of `node` with `key`, which is added if it is new; it gets `flags` too."""
    row: cython.Py_ssize_t
    nodes.key[0] = node
    nodes.key[1] = key
    row = nodes.add()
    nodes.words[row * NODE_WORDS + 2] |= flags
    return row + 1


@cython.ccall
def add_to_parents(parent: cython.const[cython.int][::1], totals: cython.double[:, ::1]):  # type: ignore[no-untyped-def]
    """Add the values of each node to its parent, which comes before it: own values become totals."""
    node: cython.Py_ssize_t
    column: cython.Py_ssize_t
    with cython.nogil:
        for node in range(len(parent) - 1, 0, -1):
            for column in range(totals.shape[1]):
                totals[parent[node], column] += totals[node, column]


@cython.ccall
def number_nodes(  # type: ignore[no-untyped-def]
    parent: cython.const[cython.int][::1],
    size: cython.longlong[::1],
    free: cython.longlong[::1],
    order: cython.longlong[::1],
    depth: cython.longlong[::1],
):
    """Order a tree, whose parents come before their children, so that every subtree is behind its root.

    `order` and `depth` are filled with the nodes in that order, and with the depth of each node. `size`, filled with 1,
    becomes the nodes of each subtree; `free`, filled with 1, is where the next child of a node goes.
    """
    node: cython.Py_ssize_t
    above: cython.Py_ssize_t
    at: cython.longlong
    with cython.nogil:
        for node in range(len(parent) - 1, 0, -1):
            size[parent[node]] += size[node]
        for node in range(1, len(parent)):
            above = parent[node]
            at = free[above]
            free[above] += size[node]
            free[node] = at + 1
            order[at] = node
            depth[node] = depth[above] + 1
