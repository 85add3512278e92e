"""What a binary answers for addresses: the frames there, the nearest earlier line where their own is unknown (R170,
nearest line), and why one is missing. All doors ask for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from symbolize.core.arrays import Bool, Int32, Int64, UInt8, UInt64, distinct, distinct_inverse
from symbolize.core.folded_code import Callers, FoldedCode, no_callers
from symbolize.core.reasons import Reason
from symbolize.core.records import record
from symbolize.symbols.functions import Calls, ShownNames
from symbolize.symbols.table import Frames, Leaves, SymbolTable

if TYPE_CHECKING:
    from symbolize.elf import ElfImage
    from symbolize.names import Mode

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


class Asked(NamedTuple):
    """What is asked of a binary: n vaddrs, ascending; which `callers` of shared code are wanted; and whether frames
    without a line get the nearest earlier one."""

    vaddrs: UInt64
    callers: Callers
    nearest_line: bool


class HasTable(Protocol):
    """A binary as lookups see it: its files, and the symbol table that answers for them."""

    @property
    def images(self) -> Sequence[ElfImage]:
        """Its files, the one with the code first."""

    @property
    def is_stripped(self) -> bool:
        """Whether it has no symbols at all."""

    @property
    def is_android_linker(self) -> bool:
        """Whether it is Android's dynamic linker."""

    @property
    def has_whole(self) -> bool:
        """Whether its table is one for all addresses."""

    def table(self, vaddrs: UInt64 | None = None, callers: Callers | None = None) -> SymbolTable:
        """The table for some addresses, or for all."""

    def table_again(self, vaddrs: UInt64, callers: Callers | None = None) -> SymbolTable:
        """Another table, for further addresses."""

    def is_loaded(self, vaddrs: UInt64) -> Bool:
        """Which of `vaddrs` are in its memory."""

    def function_starts(self, vaddrs: UInt64) -> UInt64:
        """Where the functions at `vaddrs` begin by call frame information, 0 where it has none."""

    def check(self) -> None:
        """Raise ReadFailure if what was read of it does not count."""


@record(frozen=True)
class Answer:
    """The answer of a binary for n `vaddrs`.

    `reasons` say why each has no frame, or that it has one: uint8[n] of `Reason`. `function_start` is the vaddr, in the
    file with the code, at which the function of one without a frame begins (0: unknown). `approximate` are those with a
    line that is not their own (None: none has). `folded` is code that several functions share, with the rows of the
    addresses there, and `calls` are the calls of these functions. `problems` are sentences about the files. `check`
    raises ReadFailure if one of these has changed since. `machine` is the processor of the binary, and `of_linker`
    whether it is Android's dynamic linker.
    """

    vaddrs: UInt64
    frames: Frames
    reasons: UInt8
    function_start: UInt64
    approximate: Bool | None
    folded: Sequence[tuple[FoldedCode, Int64]]
    calls: Calls
    problems: Sequence[str]
    check: Callable[[], None]
    machine: str
    of_linker: bool

    def take(self, rows: Int64) -> Answer:
        """The answer for some of the addresses, in any order, also several times."""
        return replace(
            self,
            vaddrs=self.vaddrs[rows],
            frames=self.frames.take(rows),
            reasons=self.reasons[rows],
            function_start=self.function_start[rows],
            approximate=self.approximate[rows] if self.approximate is not None else None,
            folded=[(code, np.flatnonzero(np.isin(rows, here))) for code, here in self.folded],
        )

    def shown(self, functions: Int64, mode: Mode) -> ShownNames:
        """The names of some functions, given by their rows, as `mode` shows them."""
        return self.frames.functions.shown(functions, mode, self.of_linker)


def in_order(vaddrs: ArrayLike, ask: Callable[[UInt64], Answer]) -> Answer:
    """What `ask` answers for addresses in any order; it is given them ascending. Raises as `as_vaddrs`."""
    asked = as_vaddrs(vaddrs)
    if np.all(asked[:-1] <= asked[1:]):
        return ask(asked)
    ascending, which = distinct_inverse(asked)
    return ask(ascending).take(which)


def table_answer(binary: HasTable, asked: Asked, made: SymbolTable | None = None) -> Answer:
    """The answer of one table, `made` or that of the binary."""
    vaddrs = asked.vaddrs
    if asked.nearest_line:
        table, frames, approximate = lookup_nearest(binary, vaddrs, asked.callers)
    else:
        table = made or binary.table(vaddrs, asked.callers)
        frames, approximate = table.lookup(vaddrs), None
    starts, nameless = np.zeros(len(vaddrs), np.uint64), np.diff(frames.offsets) == 0
    if nameless.any():
        starts[nameless] = binary.function_starts(vaddrs[nameless])

    def check() -> None:
        table.check()
        binary.check()

    return Answer(
        *(vaddrs, frames, _reasons(binary, table, vaddrs, frames), starts, approximate, list(table.folded(vaddrs))),
        *(table.calls(), table.problems, check),
        machine=binary.images[0].machine if binary.images else "",
        of_linker=binary.is_android_linker,
    )


def _reasons(binary: HasTable, table: SymbolTable, vaddrs: UInt64, frames: Frames) -> UInt8:
    """Why each of `vaddrs` has no frame, or that it has one."""
    reasons = np.full(len(vaddrs), Reason.SYMBOLIZED, np.uint8)
    rows = np.flatnonzero(np.diff(frames.offsets) == 0)
    corrupt = Reason.CORRUPT_DEBUG_INFO if table.has_names else Reason.UNREADABLE
    missing = Reason.NO_SYMBOLS if binary.is_stripped else Reason.OUTSIDE_SYMBOLS
    reasons[rows] = np.where(table.doubtful(vaddrs[rows]), corrupt, missing)
    reasons[rows[~binary.is_loaded(vaddrs[rows])]] = Reason.OUTSIDE_SEGMENTS
    return reasons


def as_vaddrs(values: ArrayLike) -> UInt64:
    """Addresses as a column: uint64[n]. Raises TypeError for other than whole numbers, ValueError for other dimensions
    or more than 64 bits."""
    try:
        column = values if isinstance(values, np.ndarray) else as_column([*map(index, values)])  # type: ignore[arg-type]
    except TypeError as error:
        raise TypeError("vaddrs: expected whole numbers") from error
    except OverflowError as error:
        raise ValueError("vaddrs: an address is negative or has more than 64 bits") from error
    if column.ndim != 1:
        raise ValueError(f"vaddrs: expected one dimension, not {column.ndim}")
    if len(column) and column.dtype.kind not in "ui":
        raise TypeError(f"vaddrs: expected whole numbers, not {column.dtype}")
    if column.dtype.kind == "i" and len(column) and column.min() < 0:
        raise ValueError("vaddrs: an address is negative")
    return column.astype(np.uint64, copy=False)


def as_column(numbers: list[int]) -> UInt64:
    """Whole numbers as a column. Raises OverflowError for those that do not fit; numpy 1 takes negative ones."""
    if min(numbers, default=0) < 0:
        raise OverflowError("an address is negative")
    return np.array(numbers, np.uint64)


def lookup_nearest(binary: HasTable, vaddrs: UInt64, callers: Callers = no_callers) -> tuple[SymbolTable, Frames, Bool]:
    """Look up `vaddrs` (ascending); innermost frames without a line get the nearest earlier one (R170, nearest line).

    Returns the table that answered, the frames, and which addresses have such a line: bool[n]. The nearest earlier
    range with one and the same inline stack gives file, line and column; ranges of other inlined functions are skipped,
    and the stack itself is not changed. The walk ends where the function begins or is interrupted, and 128 instructions
    of the smallest size before the address: of 4 bytes on AArch64, PowerPC, LoongArch and SPARC, 2 on ARM, MIPS, RISC-V
    and S/390, 1 elsewhere. Such a line is a guess, and the report counts it as approximate.
    """
    table = binary.table(vaddrs, callers)
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
            table = binary.table_again(distinct(np.append(vaddrs, places_before(asked, step))), callers)
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
    own = table.leaves(vaddrs)
    before = places_before(vaddrs, step)
    flat, shape = table.leaves(before.ravel()), before.shape
    passed = Leaves(
        flat.node.reshape(shape), flat.file.reshape(shape), flat.line.reshape(shape), flat.column.reshape(shape)
    )
    function = outermost_nodes(table.node_parent, np.concatenate((own.node, flat.node)))
    inside = function[len(vaddrs) :].reshape(shape) == function[: len(vaddrs), None]
    answers = np.logical_and.accumulate(inside, axis=1) & (passed.node == own.node[:, None]) & (passed.line > 0)
    chosen = np.arange(len(vaddrs)), answers.argmax(axis=1)
    line = np.where(answers[chosen], passed.line[chosen], 0).astype(np.uint32)
    return Leaves(own.node, passed.file[chosen], line, passed.column[chosen])


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
