# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""The functions of a list and the trees of what is inlined into each, as records of other formats have them."""

from dataclasses import dataclass

import cython
import numpy as np

from symbolize.core.arrays import Int32, Int64, UInt64, offsets_of, views
from symbolize.symbol_files.symbol_list import SymbolList

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MAX_CHAIN = cython.declare(cython.Py_ssize_t, 4096)
"""Functions inlined into each other; what is deeper is cut off."""


@dataclass(eq=False)
class InlineTrees:
    """Functions of one range each, `[begin[i], end[i])`, ascending; their ranges in the list are `[first[i], last[i])`
    and `node[i]` is that of the function.

    The inlined calls of function `i` are `[offset[i], offset[i + 1])`, in preorder: node, depth (1: called by the
    function itself), the call around it (-1: none), and the ranges `[range_offset[j], range_offset[j + 1])`, ascending.
    """

    begin: UInt64
    end: UInt64
    first: Int64
    last: Int64
    node: Int32
    offset: Int64
    call_node: Int32
    call_depth: Int32
    call_parent: Int32
    range_offset: Int64
    range_begin: UInt64
    range_end: UInt64


def inline_trees(listing: SymbolList) -> InlineTrees:
    """The functions and inlined calls of `listing`; parents come before children."""
    node, parent = listing.node.astype(np.int32), listing.node_parent.astype(np.int32)
    most = int(count_chains(*views(node, parent)))
    functions = np.zeros((3, len(node)), np.int64)
    calls = np.zeros((4, most), np.int32)
    spans = np.zeros((2, most), np.uint64)
    known, stamp = np.zeros(len(parent), np.int32), np.full(len(parent), -1, np.int64)
    counts = np.zeros(3, np.int64)
    grow_trees(*views(listing.start, node, parent, functions, calls, spans, known, stamp, counts))
    function_count, call_count, range_count = counts.tolist()
    first, last, function_node = functions[:, :function_count]
    owner, call_node, call_parent = calls[0, :range_count], calls[1, :call_count], calls[2, :call_count]
    function_of = calls[3, :call_count].astype(np.int64)
    order, depth = np.zeros(call_count, np.int32), np.zeros(call_count, np.int32)
    links = np.full((2, call_count), -1, np.int32)
    order_calls(*views(call_parent, function_of.astype(np.int32), links, order, depth))
    place = np.zeros(call_count + 1, np.int32)
    place[order] = np.arange(call_count, dtype=np.int32)
    place[call_count] = -1  # what -1 is the index of
    by_call = np.argsort(place[owner], kind="stable")
    return InlineTrees(
        begin=listing.start[first],
        end=np.append(listing.start, np.uint64(0xFFFFFFFFFFFFFFFF))[last],
        first=first.copy(),
        last=last.copy(),
        node=function_node.astype(np.int32),
        offset=offsets_of(np.bincount(function_of, minlength=function_count)),
        call_node=call_node[order],
        call_depth=depth[order],
        call_parent=place[call_parent[order]],
        range_offset=offsets_of(np.bincount(place[owner], minlength=call_count)),
        range_begin=spans[0, :range_count][by_call],
        range_end=spans[1, :range_count][by_call],
    )


@cython.ccall
def count_chains(  # type: ignore[no-untyped-def]
    nodes: cython.const[cython.int][::1], parents: cython.const[cython.int][::1]
) -> cython.longlong:
    """How many inlined calls the ranges have together: what `grow_trees` makes at most."""
    total: cython.longlong = 0
    i: cython.Py_ssize_t
    depth: cython.Py_ssize_t
    k: cython.int
    with cython.nogil:
        for i in range(len(nodes)):
            k = nodes[i]
            depth = 0
            while k >= 0 and parents[k] >= 0 and parents[k] < k and depth < MAX_CHAIN:
                depth += 1
                k = parents[k]
            total += depth
    return total


@cython.ccall
def grow_trees(  # type: ignore[no-untyped-def]
    starts: cython.const[cython.ulonglong][::1],
    nodes: cython.const[cython.int][::1],
    parents: cython.const[cython.int][::1],
    functions: cython.longlong[:, ::1],
    calls: cython.int[:, ::1],
    spans: cython.ulonglong[:, ::1],
    known: cython.int[::1],
    stamp: cython.longlong[::1],
    counts: cython.longlong[::1],
):
    """Gather ranges with the same outermost node into `functions`: first and last range, node.

    Each node is one call of a function: `calls` are owners of ranges, nodes, parents and functions, `spans` begins and
    ends of ranges. `known` is the call of a node, in the function `stamp`. `counts` become those of functions, calls
    and ranges.
    """
    chain: cython.int[::1] = memoryview(np.zeros(MAX_CHAIN, np.int32))
    last_range: cython.int[::1] = memoryview(np.zeros(calls.shape[1] + 1, np.int32))
    function: cython.Py_ssize_t = -1
    made: cython.Py_ssize_t = 0
    ranges: cython.Py_ssize_t = 0
    root: cython.int = -1
    i: cython.Py_ssize_t
    depth: cython.Py_ssize_t
    k: cython.int
    above: cython.int
    call: cython.int
    end: cython.ulonglong
    with cython.nogil:
        for i in range(len(nodes)):
            k = nodes[i]
            if k < 0:
                root = -1
                continue
            depth = 0
            while parents[k] >= 0 and parents[k] < k and depth < MAX_CHAIN:
                chain[depth] = k
                depth += 1
                k = parents[k]
            if k != root:
                root = k
                function += 1
                functions[0, function] = i
                functions[2, function] = k
            functions[1, function] = i + 1
            end = starts[i + 1] if i + 1 < len(starts) else MASK64
            above = -1
            while depth > 0:
                depth -= 1
                k = chain[depth]
                if stamp[k] != function:
                    stamp[k] = function
                    known[k] = cython.cast(cython.int, made)
                    calls[1, made] = k
                    calls[2, made] = above
                    calls[3, made] = cython.cast(cython.int, function)
                    last_range[made] = -1
                    made += 1
                call = known[k]
                if last_range[call] >= 0 and spans[1, last_range[call]] == starts[i]:
                    spans[1, last_range[call]] = end
                else:
                    calls[0, ranges] = call
                    spans[0, ranges] = starts[i]
                    spans[1, ranges] = end
                    last_range[call] = cython.cast(cython.int, ranges)
                    ranges += 1
                above = call
        counts[0] = function + 1
        counts[1] = made
        counts[2] = ranges


@cython.ccall
def order_calls(  # type: ignore[no-untyped-def]
    parents: cython.const[cython.int][::1],
    functions: cython.const[cython.int][::1],
    links: cython.int[:, ::1],
    order: cython.int[::1],
    depths: cython.int[::1],
):
    """Put calls, parents before children, into preorder: `order`, and the depth of each call from 1 on.

    `links`, filled with -1, become the first child and the next sibling.
    """
    last: cython.Py_ssize_t = len(parents)
    at: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    k: cython.int
    with cython.nogil:
        for i in range(last):
            k = parents[last - 1 - i]
            if k >= 0:
                links[1, last - 1 - i] = links[0, k]
                links[0, k] = cython.cast(cython.int, last - 1 - i)
        for i in range(last):
            if parents[i] >= 0:
                continue
            k = cython.cast(cython.int, i)
            depths[k] = 1
            while k >= 0:
                order[at] = k
                at += 1
                if links[0, k] >= 0:
                    depths[links[0, k]] = depths[k] + 1
                    k = links[0, k]
                    continue
                while k >= 0 and (links[1, k] < 0 or parents[k] < 0):
                    k = parents[k]
                if k >= 0:
                    depths[links[1, k]] = depths[k]
                    k = links[1, k]
