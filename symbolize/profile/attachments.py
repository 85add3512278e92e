"""What a profile may have beside its tables: times of samples, copies of their stacks, Java names."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np

from symbolize.core.arrays import Bool, Int32, Int64, UInt64
from symbolize.core.records import record

REGISTERS = {"x86-64": 17, "aarch64": 33}
"""Columns of `StackDumps.registers` by machine: the registers by their DWARF numbers (DWARF for the System V ABI of
x86-64 and for the Arm 64-bit architecture), the pc last."""


class ClassNames(Protocol):
    """Takes the methods of a class; `has_gaps` tells that some could not be read."""

    has_gaps: bool

    def add(self, obfuscated: bytes, name: bytes, arguments: bytes = b"", *numbers: int) -> object:
        """Add a method or a line range of it: first and last line, then those of the source, -1 where not known."""


class ClassMap(Protocol):
    """Takes classes by obfuscated name; `problems` are sentences."""

    @property
    def problems(self) -> list[str]:
        """What could not be read."""

    def add(self, obfuscated: bytes, name: bytes) -> ClassNames:
        """Add a class with its name in the source."""


class JavaNames(Protocol):
    """The names of one program. `source` says for people where they are from."""

    source: str

    def fill(self, wanted: Collection[bytes], into: ClassMap) -> None:
        """Add the classes with the obfuscated names `wanted`, as far as they are known."""


@dataclass(frozen=True)
class Obfuscation:
    """The names that came with a profile, and for what: `applies` has the rows of `maps` that speak of the code in each
    mapping, and at the end those of code in no mapping."""

    maps: Sequence[JavaNames]
    applies: Sequence[tuple[int, ...]]


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


class TimeConversion(NamedTuple):
    """How the counter of a processor becomes the time of the kernel (PERF_RECORD_TIME_CONV): as its clock counts from
    `zero` on, where `mask` is not 0 only the bits of it from `cycles` on."""

    shift: int
    multiplier: int
    zero: int
    cycles: int = 0
    mask: int = 0

    def times(self, counts: UInt64) -> UInt64:
        """The times of some values of the counter, modulo 2⁶⁴."""
        if self.mask:
            counts = np.uint64(self.cycles) + ((counts - np.uint64(self.cycles)) & np.uint64(self.mask))
        multiplier, shift = np.uint64(self.multiplier), np.uint64(min(self.shift, 63))
        rest = counts & np.uint64((1 << int(shift)) - 1)
        return np.uint64(self.zero) + (counts >> shift) * multiplier + ((rest * multiplier) >> shift)


@record
class SampleTimes:
    """When samples were taken that were counted under the samples of a profile: some of these, or parts of them.

    Row `i` is of the sample `sample[i]` of the profile. It was taken at `time[i]`, and of the values of that sample one
    in column `column[i]`, and `value[i]` in the next one, are its own.

    The times are those of the recorder. `is_monotonic` says that they are of CLOCK_MONOTONIC; `conversion` is how they
    follow from the counter of the processor, if that is known.
    """

    sample: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    time: UInt64 = field(default_factory=lambda: np.zeros(0, np.uint64))
    column: Int32 = field(default_factory=lambda: np.zeros(0, np.int32))
    value: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    is_monotonic: bool = False
    conversion: TimeConversion | None = None

    def __len__(self) -> int:
        return len(self.sample)

    def __repr__(self) -> str:
        return f"<SampleTimes: {len(self):,}>"

    def on_this_clock(self, times: UInt64, *, is_counter: bool) -> UInt64 | None:
        """Times of CLOCK_MONOTONIC, or values of the processor's counter, on the clock of the samples; None if nothing
        is known of the two together."""
        if is_counter:
            return self.conversion.times(times) if self.conversion is not None else None
        return times if self.is_monotonic else None

    def taken(self, kept: Bool) -> "SampleTimes":
        """The times of the samples that are `kept`."""
        rows = kept[self.sample]
        return replace(
            self,
            sample=(np.cumsum(kept) - 1)[self.sample[rows]],
            time=self.time[rows],
            column=self.column[rows],
            value=self.value[rows],
        )
