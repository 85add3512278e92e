"""A made program, stacks of it, and what is found in them."""

import struct
from collections.abc import Sequence
from pathlib import Path

from symbolize import Symbolizer
from symbolize.profile import Profile
from symbolize.unwind import constants as c
from tests.support.frame_writer import CODE, CODE_OFFSET, Cie, Fde, framed_file
from tests.support.stack_dumps import PC, SP, Dump, Mapped, profile_of, stacks

BASE, STACK = 0x7F0000000000, 0x7FFF00001000
LEAF, CALLER, ROOT, BARE = 0x1100, 0x1200, 0x1300, 0x1600
"""Functions of the made file: each calls the one before. The last has no rules."""
FILE = Mapped("/opt/prog", BASE + CODE, BASE + CODE + 0x1000, CODE_OFFSET)
CALL, ARM_CALL = b"\xe8\0\0\0\0", b"\0\0\0\x94"
FRAME = bytes([c.DW_CFA_def_cfa_offset, 24])
"""Two words on the stack above the return address."""
ROOT_RULES = bytes([c.DW_CFA_undefined, 16])


def code_of(call: bytes = CALL) -> bytes:
    """Code with calls right before the addresses 0x80 behind the begin of functions."""
    code = bytearray(b"\x90" * 0x1000)
    for function in (LEAF, CALLER, ROOT, BARE):
        at = function - CODE + 0x80
        code[at - len(call) : at] = call
    return bytes(code)


def program_file(leaf: bytes = b"", caller: bytes = FRAME, root: bytes = ROOT_RULES) -> bytes:
    """A file with these programs of rules."""
    functions = [Fde(LEAF, 0x100, leaf), Fde(CALLER, 0x100, caller), Fde(ROOT, 0x100, root)]
    return framed_file([Cie(functions)], code_of())


def returns(function: int) -> int:
    """The return address in a function, whose call is right before it."""
    return BASE + function + 0x80


def registers(machine: str = "x86-64", pc: int = BASE + LEAF + 4, **values: int) -> list[int]:
    """Registers, of which `x6=1` gives number 6."""
    count = PC[machine] + 1
    result = [0] * count
    result[PC[machine]], result[SP[machine]] = pc, STACK
    for name, value in values.items():
        result[int(name[1:])] = value
    return result


def words(*values: int) -> bytes:
    """A stack of words."""
    return struct.pack(f"<{len(values)}Q", *(value % (1 << 64) for value in values))


def unwound(folder: Path, data: bytes, dumps: Sequence[Dump], machine: str = "x86-64") -> Profile:
    """The profile of these dumps with the callers that are found with a file."""
    (folder / "prog").write_bytes(data)
    profile = profile_of(machine, dumps, [FILE])
    with Symbolizer(folder) as symbolizer:
        symbolizer.match(profile)
    assert profile.stack_dumps is None
    return profile


def only(profile: Profile) -> tuple[list[int], str]:
    """The functions of the only stack, and the warning on it."""
    (stack,) = stacks(profile)
    assert len(profile.warnings) <= 1
    return [address - BASE & ~0xFF for address in stack], "".join(profile.warnings)


SOUND = words(returns(CALLER), 1, 2, returns(ROOT), 0)
