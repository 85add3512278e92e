"""What differs between the machines whose stacks are unwound."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from symbolize.core.arrays import Bool, UInt64
from symbolize.elf import ElfImage
from symbolize.profile.stack_dumps import REGISTERS
from symbolize.unwind.constants import (
    CFA_REGISTER,
    CFA_RULE,
    CFA_VALUE,
    FIRST_RULE,
    FLAGS,
    IS_SIGNAL,
    OFFSET,
    REGISTER,
    RETURN_COLUMN,
)


class Machine64(NamedTuple):
    """A machine: the ELF name, how many registers there are, the columns of the stack pointer, the pc and the frame
    pointer, and the bits that addresses of code have.

    `trampoline` is the code that a signal handler returns to, and `trampoline_row` where it finds the registers that
    the kernel saved (R313, signal frames); with `trampolines_first` that counts more than
    the call frame information there.
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

    def trampolines(self, image: ElfImage, vaddrs: UInt64) -> Bool:
        """Which of `vaddrs` are right before a trampoline: what returns there was called by the kernel."""
        found = np.zeros(len(vaddrs), np.bool_)
        code, at = np.frombuffer(self.trampoline, np.uint8), vaddrs + np.uint64(1)
        data = np.frombuffer(image.data, np.uint8)
        for segment in image.segments:
            size = min(segment.file_size, len(data) - segment.file_offset) - len(code)
            if segment.executable and size >= 0:
                offset = at - np.uint64(segment.vaddr)
                here = np.flatnonzero((at >= np.uint64(segment.vaddr)) & (offset <= np.uint64(size)))
                first = offset[here].astype(np.int64) + segment.file_offset
                found[here] |= (data[first[:, None] + np.arange(len(code))] == code).all(axis=1)
        return found


def saved_registers(registers: int, sp: int, pc: int, offsets: Sequence[int]) -> UInt64:
    """The row of a trampoline: the registers are at these offsets from the stack pointer."""
    row = np.zeros(FIRST_RULE + 2 * registers, np.uint64)
    row[[CFA_RULE, CFA_REGISTER, CFA_VALUE, RETURN_COLUMN, FLAGS]] = REGISTER, sp, 0, pc, IS_SIGNAL
    row[FIRST_RULE::2] = OFFSET
    row[FIRST_RULE + 1 :: 2] = offsets
    return row


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
)
MACHINES = {"x86-64": X86_64, "aarch64": AARCH64}
