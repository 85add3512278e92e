"""Damaged call frame information, registers and stacks."""

import random
from functools import cache
from typing import NamedTuple

import numpy as np

from symbolize.elf import ElfError, ElfImage
from symbolize.profile import Profile
from symbolize.unwind import End, MappedCode, unwind
from symbolize.unwind import constants as c
from symbolize.unwind.constants import MAX_FRAMES
from tests.support.frame_writer import CODE, CODE_OFFSET, Cie, Fde, advance, block, breg, framed_file, offset
from tests.support.stack_dumps import FIXTURES, PC, SP, Dump, Mapped, noted, profile_of, stacks
from tools.fuzz.mutate import ANY, HOW_MANY, mutate_file


class Sample(NamedTuple):
    """A sound file, how it is mapped, and dumps of stacks of it."""

    data: bytes
    machine: str
    mapped: Mapped
    dumps: list[Dump]


@cache
def samples() -> list[Sample]:
    """Programs that ran, and made ones with every kind of rule."""
    x86 = Mapped("x86-64", 0x401000, 0x402000, 0x1000), "x86-64"
    arm = Mapped("aarch64", 0x400000, 0x401000), "aarch64"
    found = [
        Sample((FIXTURES / machine).read_bytes(), machine, mapped, [dump for dump, _ in noted(machine)])
        for mapped, machine in (x86, arm)
    ]
    program = (
        offset(6, 2)
        + block(c.DW_CFA_expression, breg(7, 16), 3)
        + block(c.DW_CFA_val_expression, breg(7, 8) + bytes([c.DW_OP_dup, c.DW_OP_plus, c.DW_OP_bra, 0xFA, 0xFF]), 12)
        + advance(8)
        + bytes([c.DW_CFA_remember_state, c.DW_CFA_def_cfa_offset, 24, c.DW_CFA_register, 13, 12])
        + advance(8)
        + bytes([c.DW_CFA_restore_state])
        + block(
            c.DW_CFA_def_cfa_expression, breg(7, 8) + breg(16, 0) + bytes([c.DW_OP_lit0, c.DW_OP_mul, c.DW_OP_plus])
        )
    )
    functions = [Fde(CODE + 64 * i, 64, program) for i in range(8)]
    stack = np.arange(CODE + 40, CODE + 40 + 64 * 60, 61, np.uint64).tobytes()
    dump = Dump([*range(7), 0x7000, *range(8), CODE + 5], stack, True)
    for section in (".eh_frame", ".debug_frame"):
        data = framed_file([Cie(functions), Cie(functions[:2], augmentation=b"zRS")], section=section)
        found.append(Sample(data, "x86-64", Mapped("made", CODE, CODE + 0x1000, CODE_OFFSET), [dump]))
    return found


def damaged_frames(chance: random.Random, data: bytes) -> bytes:
    """A file whose call frame information is damaged."""
    with ElfImage.parse(memoryview(data), "sound") as image:
        section = next(s for name in (".eh_frame", ".debug_frame") if (s := image.find(name)) is not None)
    part = bytearray(data[section.file_offset : section.file_offset + section.size])
    for _ in range(chance.choice(HOW_MANY)):
        chance.choice(ANY[:4])(chance, part)
    part = part[: section.size].ljust(section.size, b"\0")
    return data[: section.file_offset] + bytes(part) + data[section.file_offset + section.size :]


def damaged_dump(chance: random.Random, machine: str, dump: Dump) -> Dump:
    """A dump with some other registers and another stack."""
    registers, stack = list(dump.registers), bytearray(dump.stack)
    for _ in range(chance.randrange(4)):
        registers[chance.randrange(PC[machine])] = registers[SP[machine]] + chance.randrange(-64, len(stack) + 64)
    for _ in range(chance.randrange(4)):
        at = 8 * chance.randrange(len(stack) // 8)
        stack[at : at + 8] = chance.choice((registers[SP[machine]] + at, registers[PC[machine]], 0)).to_bytes(
            8, "little"
        )
    registers = [register % (1 << 64) for register in registers]
    return dump._replace(registers=registers, stack=bytes(stack[: chance.choice((len(stack), 24, 7))]))


def check(profile: Profile, mapped: Mapped) -> None:
    """Whatever is found is in executable mappings, and no deeper than the limit."""
    addresses = profile.locations.address
    assert ((addresses >= mapped.start) & (addresses < mapped.limit) | (profile.locations.mapping < 0)).all()
    assert (np.diff(profile.samples.location_offsets) <= MAX_FRAMES).all()
    assert profile.stack_dumps is None


def found_in(seed: int) -> tuple[int, list[list[int]], list[str]]:
    """Stacks of a damaged program, or damaged stacks: the bytes of the input, the addresses found, and the warnings."""
    chance = random.Random(seed)
    sample = chance.choice(samples())
    damage = chance.choice((damaged_frames, damaged_frames, mutate_file, lambda _, data: data))
    data = damage(chance, sample.data)
    dumps = [damaged_dump(chance, sample.machine, dump) for dump in sample.dumps if chance.random() < 0.7]
    profile = profile_of(sample.machine, dumps, [sample.mapped])
    shift = np.uint64(sample.mapped.start - CODE) if sample.mapped.name == "made" else np.uint64(0)
    size = len(data) + sum(len(dump.stack) for dump in dumps)
    try:
        with ElfImage.parse(memoryview(data), "damaged") as image:
            code = MappedCode([(image, 0)], lambda addresses: (addresses - shift, addresses >= np.uint64(0)))
            result = unwind(profile, lambda mapping: code if chance.random() < 0.95 else End.NO_FILE).profile
    except ElfError as error:
        assert "\n" not in str(error)
        return size, [], [str(error)]
    check(result, sample.mapped)
    return size, stacks(result), result.warnings


def stack_target(seed: int) -> int:
    """Stacks of a damaged program, or damaged stacks."""
    return found_in(seed)[0]
