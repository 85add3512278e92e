"""Builds of a made program: functions of instructions of 5 bytes, each of which calls the one before it."""

import io
from collections.abc import Sequence

import numpy as np

import symbolize
from symbolize import Profile
from symbolize.elf import ElfImage
from symbolize.profile import LeafKind
from symbolize.symbols import Binary
from tests.support.eh_frame import Frames, eh_frame
from tests.support.elf_writer import (
    ALLOC,
    EXEC,
    NOBITS,
    NOTE,
    PROGBITS,
    X86_64,
    Section,
    Segment,
    Symbol,
    build_id_note,
    elf_file,
)
from tests.support.pprof_writer import Mapping, Place, profile

BEGIN, OFFSET, SIZE, LENGTH = 0x1000, 0x4000, 80, 5
"""Where the code begins, in memory and in the file, and bytes of each function and of each instruction."""
CALLED_AT = 8 * LENGTH
"""Where each function calls the one before it."""
NAMES = [f"f{number}" for number in range(64)]
BASE = 0x5000_0000_0000
"""Where the program is in memory, in each process."""
TOOL = "/opt/bin/tool"
NOP2 = bytes.fromhex("6690")


def program(
    names: Sequence[str] = NAMES,
    late: int = 0,
    machine: int = X86_64,
    build_id: str = "",
    mark: int = 0x11,
    *,
    has_code: bool = True,
    has_frames: bool = False,
    has_symbols: bool = True,
) -> bytes:
    """A program of these functions. Instructions of the last `late` ones begin 2 bytes later than they would;
    programs with another `mark` have other operands, and differ in nothing else. With `has_frames` there is call frame
    information for all."""
    move = bytes.fromhex("b8443322") + bytes([mark])
    code = bytearray()
    for number in range(len(names)):
        shift = 2 * (number >= len(names) - late)
        distance = SIZE * max(number - 1, 0) - (SIZE * number + CALLED_AT + LENGTH + shift)
        call = b"\xe8" + distance.to_bytes(4, "little", signed=True)
        code += (NOP2[:shift] + move * 8 + call + move * 7)[:SIZE]
    kind = PROGBITS if has_code else NOBITS
    sections = [Section(".text", bytes(code) if has_code else b"", kind, ALLOC | EXEC, BEGIN, len(code))]
    if build_id:
        note = build_id_note(bytes.fromhex(build_id))
        sections.append(Section(".note.gnu.build-id", note, NOTE, ALLOC, address=0x200))
    if has_frames:
        frames = Frames([(BEGIN + SIZE * number, SIZE) for number in range(len(names))])
        sections.append(Section(".eh_frame", eh_frame([frames], 0x8000), flags=ALLOC, address=0x8000))
    symbols = [Symbol(name, BEGIN + SIZE * number, SIZE) for number, name in enumerate(names) if has_symbols]
    made = elf_file(sections, [Segment(0, 0x400, 4, 0), Segment(BEGIN, len(code), 5, OFFSET)], symbols, machine=machine)
    return made.ljust(OFFSET, b"\0") + bytes(code) if has_code else made


def binary(data: bytes) -> Binary:
    """A file with these bytes."""
    return Binary([ElfImage.parse(memoryview(data), "tool")])


def leaf(number: int) -> int:
    """The vaddr of an instruction of a function."""
    return BEGIN + SIZE * number + LENGTH


def site(number: int) -> int:
    """The vaddr of the last byte of the call in a function."""
    return BEGIN + SIZE * number + CALLED_AT + LENGTH - 1


def of_tool(
    leaves: Sequence[int], stacks: Sequence[Sequence[int]] = (), mappings: int = 1, name: str = TOOL, build_id: str = ""
) -> Profile:
    """A profile of a made program: leaves, and stacks of call sites behind a leaf elsewhere. With several mappings of
    the program, one in each process, those in turn."""
    maps = [
        Mapping(BASE * number + BEGIN, BASE * number + BEGIN + 0x2000, OFFSET, name, build_id)
        for number in range(1, mappings + 1)
    ]
    maps.append(Mapping(0x1_0000, 0x2_0000, 0, "/elsewhere"))
    made = [([Place(BASE * (at % mappings + 1) + each, at % mappings + 1)], [1]) for at, each in enumerate(leaves)]
    made += [([Place(0x1_0010, len(maps)), *(Place(BASE + each, 1) for each in stack)], [1]) for stack in stacks]
    found = symbolize.load(io.BytesIO(profile(maps, made)))
    found.leaf_kinds = np.full(1, LeafKind.EXACT, np.uint8)
    return found
