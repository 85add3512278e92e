"""Writes the relocations of object files."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from tests.support.elf_writer import AARCH64, ARM, I386, LOONGARCH, MIPS, PPC64, RISCV, S390, X86_64
from tests.support.line_writer import sleb, uleb

MASK64 = (1 << 64) - 1


class Reloc(NamedTuple):
    """A relocation; `symbol` counts SYMBOLS from 1."""

    offset: int
    type: int
    symbol: int = 1
    addend: int = 0


class Machine(NamedTuple):
    """How a machine writes object files."""

    number: int
    is_64: bool = True
    big: bool = False
    rela: bool = True


def table_bytes(relocs: Sequence[Reloc], machine: Machine) -> bytes:
    """A section of relocations."""
    order, data = ">" if machine.big else "<", b""
    for reloc in relocs:
        if machine.is_64 and machine.number == MIPS:
            data += struct.pack(order + "QIBBBB", reloc.offset, reloc.symbol, 0, 0, 0, reloc.type)
        elif machine.is_64:
            data += struct.pack(order + "QQ", reloc.offset, reloc.symbol << 32 | reloc.type)
        else:
            data += struct.pack(order + "II", reloc.offset, reloc.symbol << 8 | reloc.type)
        if machine.rela:
            data += struct.pack(order + ("q" if machine.is_64 else "i"), reloc.addend)
    return data


MACHINES = {
    "x86-64": Machine(X86_64),
    "i386": Machine(I386, False, rela=False),
    "aarch64": Machine(AARCH64),
    "aarch64 big": Machine(AARCH64, big=True),
    "arm": Machine(ARM, False, rela=False),
    "arm big": Machine(ARM, False, True, rela=False),
    "riscv": Machine(RISCV),
    "loongarch": Machine(LOONGARCH),
    "ppc64": Machine(PPC64, big=True),
    "mips": Machine(MIPS, False, True, rela=False),
    "mips64": Machine(MIPS, True, True),
    "mips64el": Machine(MIPS),
    "s390": Machine(S390, big=True),
    "sparc": Machine(2, False, True),
    "sparc64": Machine(43, big=True),
    "m68k": Machine(4, False, True),
    "bpf": Machine(247, rela=False),
    "bpf big": Machine(247, big=True, rela=False),
    "amdgpu": Machine(224),
    "hexagon": Machine(164, False),
    "avr": Machine(83, False),
    "msp430": Machine(105, False),
}


VALUES = {
    "x86-64": {1: 8, 10: 4, 11: 4, 12: 2, 14: 1},
    "i386": {1: 4, 20: 2, 22: 1},
    "aarch64": {257: 8, 258: 4, 259: 2},
    "aarch64 big": {257: 8, 258: 4},
    "arm": {2: 4},
    "arm big": {2: 4},
    "riscv": {1: 4, 2: 8, 54: 1, 55: 2, 56: 4},
    "loongarch": {1: 4, 2: 8},
    "ppc64": {1: 4, 38: 8},
    "mips": {2: 4},
    "mips64": {2: 4, 18: 8},
    "mips64el": {2: 4, 18: 8},
    "s390": {4: 4, 22: 8, 3: 2},
    "sparc": {3: 4, 23: 4, 2: 2, 55: 2},
    "sparc64": {3: 4, 23: 4, 32: 8, 54: 8},
    "m68k": {1: 4, 2: 2, 3: 1},
    "bpf": {2: 8, 3: 4, 4: 4},
    "bpf big": {2: 8, 3: 4, 4: 4},
    "amdgpu": {3: 8, 6: 4},
    "hexagon": {6: 4, 7: 2, 8: 1},
    "avr": {1: 4, 4: 2, 26: 1},
    "msp430": {1: 4, 3: 2, 5: 2, 9: 1},
}


def crel(relocs: Sequence[Reloc], addends: bool = True, shift: int = 0) -> bytes:
    """The relocations as a CREL stream."""
    out = uleb(len(relocs) << 3 | addends << 2 | shift)
    flag_bits = 3 if addends else 2
    last = Reloc(0, 0, 0, 0)
    for reloc in relocs:
        step = ((reloc.offset - last.offset) & MASK64) >> shift
        flags = (reloc.symbol != last.symbol) | (reloc.type != last.type) << 1
        flags |= (addends and reloc.addend != last.addend) << 2
        low = 7 - flag_bits
        more = step >> low
        out += bytes([(step & ((1 << low) - 1)) << flag_bits | flags | bool(more) << 7])
        out += uleb(more) if more else b""
        out += sleb(reloc.symbol - last.symbol) if flags & 1 else b""
        out += sleb(reloc.type - last.type) if flags & 2 else b""
        out += sleb(reloc.addend - last.addend) if flags & 4 else b""
        last = reloc
    return out
