"""Builds of a made program: functions of instructions of 5 bytes, each of which calls the one before it."""

from collections.abc import Sequence

from symbolize.elf import ElfImage
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

BEGIN, OFFSET, SIZE, LENGTH = 0x1000, 0x4000, 80, 5
"""Where the code begins, in memory and in the file, and bytes of each function and of each instruction."""
CALLED_AT = 8 * LENGTH
"""Where each function calls the one before it."""
NAMES = [f"f{number}" for number in range(64)]
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
