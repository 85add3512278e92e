"""The rows of rules at addresses of one binary, from the call frame information of its files."""

from collections.abc import Sequence

import numpy as np

from symbolize.core.arrays import UInt8, UInt64
from symbolize.elf import ElfImage
from symbolize.elf.call_frames import FrameSection, frame_section, frames_in
from symbolize.unwind.constants import (
    BAD_FRAME_INFO,
    CFA_REGISTER,
    CFA_RULE,
    EXPRESSION,
    EXPRESSION_SIZE,
    EXPRESSION_SIZE_BITS,
    FIRST_RULE,
    NO_FRAME_INFO,
)
from symbolize.unwind.machines import Machine64
from symbolize.unwind.rows import RowReader, find_rows

SECTIONS = (".eh_frame", ".debug_frame")
"""Where call frame information is; what the first one has counts, which is what unwinders use at run time."""


class Expressions:
    """The expressions of all binaries, each once, one behind another."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._known: dict[bytes, int] = {}

    def add(self, expression: bytes) -> int:
        """Position and size of an expression, as rows have them."""
        if expression not in self._known:
            self._known[expression] = len(self.data) << EXPRESSION_SIZE_BITS | len(expression)
            self.data += expression
        return self._known[expression]

    def collect(self, section: FrameSection, rows: UInt64) -> None:
        """Let the expressions of rows of a section be those that are collected."""
        rules = rows[:, FIRST_RULE::2] >= EXPRESSION
        columns = [(i, FIRST_RULE + 2 * k + 1) for i, k in np.argwhere(rules).tolist()]
        columns += [(i, CFA_REGISTER) for i in np.flatnonzero(rows[:, CFA_RULE] == EXPRESSION).tolist()]
        for i, column in columns:
            value = int(rows[i, column])
            begin, size = value >> EXPRESSION_SIZE_BITS, value & EXPRESSION_SIZE
            rows[i, column] = self.add(bytes(section.data[begin : begin + size]))


class CallFrames:
    """The call frame information of one binary, whose files are `images`: each with what is to be added to vaddrs to
    get those in it (R305, call frame information that counts)."""

    def __init__(self, images: Sequence[tuple[ElfImage, int]], machine: Machine64, expressions: Expressions) -> None:
        self._machine = machine
        self._expressions = expressions
        self._sections: list[tuple[FrameSection, int, RowReader]] = []
        for name in SECTIONS:
            for image, shift in images:
                section = frame_section(image, name)
                if section is not None and len(section.begin):
                    self._sections.append((section, shift, RowReader(section, machine.registers)))
        self._code = next((image for image in images if image[0].has_code), None)

    def rows(self, vaddrs: UInt64) -> tuple[UInt64, UInt8]:
        """The rows at `vaddrs`, which ascend: uint64[n, width]; and for each 0, or the reason why there is none."""
        machine = self._machine
        rows, reasons = no_rows(len(vaddrs), machine)
        for section, shift, reader in self._sections:
            read_rows(section, reader, self._expressions, vaddrs + np.uint64(shift), rows, reasons)
        if self._code is not None:
            image, shift = self._code
            trampolines = machine.trampolines(image, vaddrs + np.uint64(shift))
            trampolines &= (reasons != 0) | machine.trampolines_first
            rows[trampolines] = machine.trampoline_row
            reasons[trampolines] = 0
            unknown = np.flatnonzero(reasons)
            stubs = unknown[machine.stubs(image, vaddrs[unknown] + np.uint64(shift))]
            rows[stubs] = machine.stub_row
            reasons[stubs] = 0
        return rows, reasons


class FunctionFrames:
    """The call frame information of functions that no file has, each an .eh_frame and its vaddr, read once."""

    def __init__(self, machine: Machine64, expressions: Expressions) -> None:
        self._machine = machine
        self._expressions = expressions
        self._sections: dict[tuple[bytes, int], FrameSection] = {}

    def rows(self, function: tuple[bytes, int], vaddrs: UInt64) -> tuple[UInt64, UInt8]:
        """The rows of a function at vaddrs, as those of a binary. Its programs have no more instructions than each
        vaddr gives: there may be very many functions."""
        if function not in self._sections:
            self._sections[function] = frames_in(*function)
        section = self._sections[function]
        rows, reasons = no_rows(len(vaddrs), self._machine)
        read_rows(section, RowReader(section, self._machine.registers, 0), self._expressions, vaddrs, rows, reasons)
        return rows, reasons


def no_rows(count: int, machine: Machine64) -> tuple[UInt64, UInt8]:
    """So many rows without rules, and that there is none as the reason of each."""
    return np.zeros((count, FIRST_RULE + 2 * machine.registers), np.uint64), np.full(count, NO_FRAME_INFO, np.uint8)


def read_rows(
    section: FrameSection, reader: RowReader, expressions: Expressions, vaddrs: UInt64, rows: UInt64, reasons: UInt8
) -> None:
    """Fill in the rows that a section has at `vaddrs`, which ascend, where there is none yet."""
    fde = np.searchsorted(section.begin, vaddrs, side="right") - 1
    here = np.flatnonzero((reasons == NO_FRAME_INFO) & (fde >= 0))
    here = here[vaddrs[here] < section.end[fde[here]]]
    found = np.zeros(len(here), np.uint8)
    read = np.zeros((len(here), rows.shape[1]), np.uint64)
    find_rows(reader, section.position[fde[here]].data, vaddrs[here].data, read.data, found.data)
    expressions.collect(section, read)
    rows[here] = read
    reasons[here] = np.where(found, 0, BAD_FRAME_INFO)
