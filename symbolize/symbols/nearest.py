"""The nearest earlier line for addresses whose own is unknown, on demand (R170, nearest line)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from symbolize.core.arrays import Bool, Int32, UInt32, UInt64, distinct, views
from symbolize.symbols.range_table import lookup
from symbolize.symbols.table import Frames, SymbolTable

if TYPE_CHECKING:
    from symbolize.symbols.binary import Binary
    from symbolize.symbols.symbol_list_binary import SymbolListBinary

MAX_STEPS = 128
"""How many instructions earlier, of the smallest size of the processor, a line may be."""
STEPS = {
    "EM_AARCH64": 4,
    "EM_ARM": 2,
    "EM_LOONGARCH": 4,
    "EM_MIPS": 2,
    "EM_PPC": 4,
    "EM_PPC64": 4,
    "EM_RISCV": 2,
    "EM_S390": 2,
    "EM_SPARC": 4,
    "EM_SPARCV9": 4,
}
"""The smallest instruction of processors that have no instructions of one byte."""

MAX_DEPTH = 4096
"""Frames of an address, as in a lookup."""
AT_ONCE = 4096
"""So many addresses are walked back from at once, which bounds what is allocated."""
MAX_ASKED = 1 << 14
"""For more addresses than this the whole table is read rather than one for the addresses before them."""


class Leaves(NamedTuple):
    """Node (-1: none), file (-1: unknown), line and column (0: unknown) at some addresses."""

    node: Int32
    file: Int32
    line: UInt32
    column: UInt32


def lookup_nearest(binary: Binary | SymbolListBinary, vaddrs: UInt64) -> tuple[SymbolTable, Frames, Bool]:
    """Look up `vaddrs` (ascending); innermost frames without a line get the nearest earlier one (R170, nearest line).

    Returns the table that answered, the frames, and which addresses have such a line: bool[n]. The nearest earlier
    range with one and the same inline stack gives file, line and column; ranges of other inlined functions are skipped,
    and the stack itself is not changed. The walk ends where the function begins or is interrupted, and 128 instructions
    of the smallest size before the address: of 4 bytes on AArch64, PowerPC, LoongArch and SPARC, 2 on ARM, MIPS, RISC-V
    and S/390, 1 elsewhere. Such a line is a guess, and the report counts it as approximate.
    """
    table = binary.table(vaddrs)
    frames = table.lookup(vaddrs)
    approximate = np.zeros(len(vaddrs), np.bool_)
    without = np.flatnonzero(without_line(frames))
    if not len(without) or not len(table.file_path):
        return table, frames, approximate
    machine = binary.images[0].machine if binary.images else ""
    step = STEPS.get(machine, 1)
    if not binary.has_whole:
        # A table for some addresses does not cover those before them.
        asked = distinct(vaddrs[without])
        if len(asked) > MAX_ASKED:
            table = binary.table()
        else:
            table = binary.table_again(distinct(np.append(vaddrs, places_before(asked, step))))
        frames = table.lookup(vaddrs)
        without = np.flatnonzero(without_line(frames))
    asked = vaddrs[without]
    for i in range(0, len(without), AT_ONCE):
        here = without[i : i + AT_ONCE]
        found = nearest_places(table, asked[i : i + AT_ONCE], step)
        has_line = found.line > 0
        leaf = frames.offsets[here[has_line]]
        frames.file[leaf], frames.line[leaf] = found.file[has_line], found.line[has_line]
        frames.column[leaf] = found.column[has_line]
        approximate[here[has_line]] = True
    return table, frames, approximate


def without_line(frames: Frames) -> Bool:
    """Which addresses have a function and no line in its innermost frame: bool[n]."""
    without = np.diff(frames.offsets) > 0
    without[without] = frames.line[frames.offsets[:-1][without]] == 0
    return without


def places_before(vaddrs: UInt64, step: int) -> UInt64:
    """Vaddrs of up to MAX_STEPS earlier instructions, the nearest first: uint64[n, MAX_STEPS]."""
    back = np.arange(1, MAX_STEPS + 1, dtype=np.uint64) * np.uint64(step)
    before: UInt64 = vaddrs[:, None] - np.minimum(back, vaddrs[:, None])
    return before


def nearest_places(table: SymbolTable, vaddrs: UInt64, step: int) -> Leaves:
    """The nearest earlier lines in the same function and inline stack; `line` is 0 where there is none."""
    own = leaves_at(table, vaddrs)
    before = places_before(vaddrs, step)
    flat, shape = leaves_at(table, before.ravel()), before.shape
    passed = Leaves(
        flat.node.reshape(shape), flat.file.reshape(shape), flat.line.reshape(shape), flat.column.reshape(shape)
    )
    function = outermost_nodes(table.node_parent, np.concatenate((own.node, flat.node)))
    inside = function[len(vaddrs) :].reshape(shape) == function[: len(vaddrs), None]
    answers = np.logical_and.accumulate(inside, axis=1) & (passed.node == own.node[:, None]) & (passed.line > 0)
    chosen = np.arange(len(vaddrs)), answers.argmax(axis=1)
    line = np.where(answers[chosen], passed.line[chosen], 0).astype(np.uint32)
    return Leaves(own.node, passed.file[chosen], line, passed.column[chosen])


def leaves_at(table: SymbolTable, vaddrs: UInt64) -> Leaves:
    """The entries of a table at `vaddrs`, in any order."""
    count = len(vaddrs)
    leaves = Leaves(
        np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.uint32), np.empty(count, np.uint32)
    )
    columns = views(table.block_start, table.block_offset, table.ranges, vaddrs, *leaves)
    lookup(*columns, len(table.node_parent), len(table.file_path))
    return leaves


def outermost_nodes(parents: Int32, nodes: Int32) -> Int32:
    """The function of its own that each of `nodes` is inlined into; -1 stays -1."""
    found = nodes.copy()
    rows = np.flatnonzero(found >= 0)
    for _ in range(MAX_DEPTH):
        parent = parents[found[rows]]
        inlined = (parent >= 0) & (parent < found[rows])  # parents come before children
        rows = rows[inlined]
        if not len(rows):
            break
        found[rows] = parent[inlined]
    return found
