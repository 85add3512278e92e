"""Copies of the stacks of samples whose callers are not known yet, as `perf record --call-graph dwarf` stores them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from symbolize.core.arrays import Bool, Int32, Int64, UInt64

REGISTERS = {"x86-64": 17, "aarch64": 33}
"""Columns of `StackDumps.registers` by machine: the registers by their DWARF numbers (DWARF for the System V ABI of
x86-64 and for the Arm 64-bit architecture), the pc last."""


@dataclass(eq=False, repr=False)
class StackDumps:
    """Registers of user code and copies of the memory above its stack pointer: a row for each sample that has them.

    Row `i` is of sample `sample[i]` (ascending, each at most once). `data[offset[i]:offset[i] + size[i]]` is the memory
    from the stack pointer on, only the part that is valid; `is_full[i]` means that it was cut at the size that the
    recorder asked for, so that the stack may go on behind it. `data` is what the profile was read from, mapped or in
    memory, and is never copied as a whole.

    `registers` is uint64[n, r] by the DWARF numbers of `machine`, `REGISTERS` of it: of "x86-64" 0 to 15 (7 is the
    stack pointer) and 16, the pc; of "aarch64" 0 to 30 (30 is the link register), 31, the stack pointer, and 32, the
    pc. A register that was not recorded is 0. Rows of `is_32bit` are of 32-bit code and cannot be unwound.

    `space[i]` is the address space of the process when the sample was taken: its executable mappings are
    `space_mappings[space_offsets[s]:space_offsets[s + 1]]`, rows of `Profile.mappings`, disjoint and ascending by
    start. Samples between two changes of the memory map share one.

    The stack of such a sample holds the frames of the kernel, if any, and the leaf of user code, whose address is the
    pc. Unwinding appends the callers, their addresses inside the calls (R131, one adjustment).

    `check` is called when `data` was read; it raises ReadFailure if that does not count, because its file changed.
    """

    machine: str
    data: memoryview
    sample: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    offset: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    size: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    registers: UInt64 = field(default_factory=lambda: np.zeros((0, 0), np.uint64))
    is_32bit: Bool = field(default_factory=lambda: np.zeros(0, np.bool_))
    is_full: Bool = field(default_factory=lambda: np.zeros(0, np.bool_))
    space: Int32 = field(default_factory=lambda: np.zeros(0, np.int32))
    space_offsets: Int64 = field(default_factory=lambda: np.zeros(1, np.int64))
    space_mappings: Int32 = field(default_factory=lambda: np.zeros(0, np.int32))
    check: Callable[[], None] = lambda: None

    @property
    def warning(self) -> str:
        """What the profile says until they are unwound."""
        return f"{len(self):,} samples lack their callers until their stack dumps are unwound."

    def taken(self, rows: Bool, kept: Bool) -> "StackDumps":
        """Those at `rows` (bool[n]), of samples of which the `kept` ones are left."""
        columns = ("offset", "size", "registers", "is_32bit", "is_full", "space")
        taken = {name: getattr(self, name)[rows] for name in columns}
        return replace(self, sample=(np.cumsum(kept) - 1)[self.sample[rows]], **taken)

    def __len__(self) -> int:
        return len(self.sample)

    def __repr__(self) -> str:
        return f"<StackDumps: {len(self):,} of {self.machine}>"
