"""The rows of rules at addresses of one binary, from the call frame information of its files, and what differs between
the machines whose stacks are unwound."""

import re
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from symbolize.core.arrays import Bool, UInt8, UInt64
from symbolize.elf import ElfImage, code_around
from symbolize.elf.call_frames import FrameSection, frame_section, frames_in
from symbolize.profile.attachments import REGISTERS
from symbolize.unwind.constants import (
    BAD_FRAME_INFO,
    CFA_REGISTER,
    CFA_RULE,
    CFA_VALUE,
    EXPRESSION,
    EXPRESSION_SIZE,
    EXPRESSION_SIZE_BITS,
    FIRST_RULE,
    FLAGS,
    IS_SIGNAL,
    NO_FRAME_INFO,
    OFFSET,
    REGISTER,
    RETURN_COLUMN,
)
from symbolize.unwind.rows import RowReader, find_rows

SECTIONS = (".eh_frame", ".debug_frame")
"""Where call frame information is; what the first one has counts, which is what unwinders use at run time."""


class Machine64(NamedTuple):
    """A machine: the ELF name, how many registers there are, the columns of the stack pointer, the pc and the frame
    pointer, and the bits that addresses of code have.

    `trampoline` is the code that a signal handler returns to, and `trampoline_row` where it finds the registers that
    the kernel saved (R313, signal frames); with `trampolines_first` that counts more than the call frame information
    there. `stub` matches the instructions of linkage stubs that have nothing pushed, where `stub_row` leads to the
    caller; where `stub_mark` is at the begin of a section its first `stub_header` bytes are none.

    A stub of linkage that jumps through memory and has no rules has pushed nothing. On aarch64 the saved registers are
    taken in any case: the rules of the vdso know the frame pointer and the pc only.
    """

    elf_name: str
    registers: int
    sp: int
    pc: int
    fp: int
    code_mask: int
    trampoline: bytes
    trampoline_row: UInt64
    trampolines_first: bool
    stub: re.Pattern[bytes]
    stub_mark: bytes
    stub_header: int
    stub_row: UInt64

    def trampolines(self, image: ElfImage, vaddrs: UInt64) -> Bool:
        """Which of `vaddrs` are right before a trampoline: what returns there was called by the kernel."""
        code = np.frombuffer(self.trampoline, np.uint8)
        found: Bool = (code_around(image, vaddrs + np.uint64(1), 0, len(code)) == code).all(axis=1)
        return found

    def stubs(self, image: ElfImage, vaddrs: UInt64) -> Bool:
        """Which of `vaddrs` are in linkage stubs (.plt), at an instruction before which nothing was pushed."""
        found = np.zeros(len(vaddrs), np.bool_)
        for section in image.sections:
            if section.name.startswith(".plt"):
                first = (
                    code_around(image, np.array([section.vaddr], np.uint64), 0, STUB_BYTES).astype(np.uint8).tobytes()
                )
                distance = vaddrs - np.uint64(section.vaddr)  # modulo 2⁶⁴
                header = self.stub_header if self.stub_mark in first else 0
                found |= (distance >= np.uint64(header)) & (distance < np.uint64(section.size))
        rows = np.flatnonzero(found)
        code = code_around(image, vaddrs[rows], 0, STUB_BYTES).astype(np.uint8)
        found[rows] = [self.stub.match(each.tobytes()) is not None for each in code]
        return found


def at_entry(registers: int, sp: int, pc: int, return_register: int) -> UInt64:
    """The row of the first instruction of a function: the return address is at the top of the stack (x86-64), or in a
    register."""
    row = np.zeros(FIRST_RULE + 2 * registers, np.uint64)
    on_stack = return_register == pc
    row[[CFA_RULE, CFA_REGISTER, CFA_VALUE, RETURN_COLUMN]] = REGISTER, sp, 8 if on_stack else 0, return_register
    if on_stack:
        row[FIRST_RULE + 2 * pc : FIRST_RULE + 2 * pc + 2] = OFFSET, (1 << 64) - 8
    return row


def saved_registers(registers: int, sp: int, pc: int, offsets: Sequence[int]) -> UInt64:
    """The row of a trampoline: the registers are at these offsets from the stack pointer."""
    row = np.zeros(FIRST_RULE + 2 * registers, np.uint64)
    row[[CFA_RULE, CFA_REGISTER, CFA_VALUE, RETURN_COLUMN, FLAGS]] = REGISTER, sp, 0, pc, IS_SIGNAL
    row[FIRST_RULE::2] = OFFSET
    row[FIRST_RULE + 1 :: 2] = offsets
    return row


STUB_BYTES = 8
"""Bytes of the instructions that mark a linkage stub."""
CONTEXT = 40
"""Offset of the registers in the x86-64 `ucontext`, on which the stack pointer is in the trampoline (<asm/ucontext.h>,
<asm/sigcontext.h>)."""
X86_ORDER = (13, 12, 14, 11, 9, 8, 10, 15, *range(8), 16)
"""Where each register, by its DWARF number, is in `struct sigcontext`."""
ARM_REGISTERS = 128 + 176 + 8
"""Offset of x0 in the aarch64 `struct rt_sigframe`: behind siginfo, the begin of `ucontext`, and the fault address."""

X86_64 = Machine64(
    "EM_X86_64",
    REGISTERS["x86-64"],
    sp=7,
    pc=16,
    fp=6,
    code_mask=(1 << 64) - 1,
    trampoline=bytes.fromhex("48c7c00f0000000f05"),  # mov $15, %rax; syscall
    trampoline_row=saved_registers(REGISTERS["x86-64"], 7, 16, [CONTEXT + 8 * at for at in X86_ORDER]),
    trampolines_first=False,
    stub=re.compile(rb"(\xf3\x0f\x1e\xfa)?\xf2?\xff\x25", re.DOTALL),  # endbr64; bnd jmp *target(%rip)
    stub_mark=b"\xff\x35",  # push offset(%rip)
    stub_header=16,
    stub_row=at_entry(REGISTERS["x86-64"], 7, 16, 16),
)
AARCH64 = Machine64(
    "EM_AARCH64",
    REGISTERS["aarch64"],
    sp=31,
    pc=32,
    fp=29,
    code_mask=(1 << 48) - 1,
    trampoline=struct.pack("<II", 0xD2801168, 0xD4000001),  # mov x8, #139; svc #0
    trampoline_row=saved_registers(REGISTERS["aarch64"], 31, 32, [ARM_REGISTERS + 8 * at for at in range(33)]),
    trampolines_first=True,
    # bti c; adrp x16, page; ldr x17, [x16, #offset]; add x16, x16, #offset; br x17
    stub=re.compile(
        rb"\x5f\x24\x03\xd5|[\x10\x30\x50\x70\x90\xb0\xd0\xf0]..[\x90\xb0\xd0\xf0]|\x11.[\x40-\x7f]\xf9|\x10.[\0-\x3f]\x91|\x20\x02\x1f\xd6",
        re.DOTALL,
    ),
    stub_mark=b"\xf0\x7b\xbf\xa9",  # stp x16, x30, [sp, #-16]!
    stub_header=32,
    stub_row=at_entry(REGISTERS["aarch64"], 31, 32, 30),
)
MACHINES = {"x86-64": X86_64, "aarch64": AARCH64}


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
