"""Writes call frame programs, and files whose code they describe."""

from collections.abc import Sequence
from typing import NamedTuple

from symbolize.unwind import constants as c
from tests.support.elf_writer import ALLOC, EXEC, NOBITS, X86_64, Section, Segment, elf_file
from tests.support.line_writer import sleb, uleb

CODE, FRAMES = 0x1000, 0x4000
"""Vaddrs of .text and .eh_frame in the files that are written."""
CODE_OFFSET = 120
"""Where .text is in these files."""
X86_START = bytes([c.DW_CFA_def_cfa, 7, 8, c.DW_CFA_offset | 16, 1])
"""The program of CIEs for x86-64: the CFA is rsp + 8, the return address below it."""
ARM_START = bytes([c.DW_CFA_def_cfa, 31, 0])


class Fde(NamedTuple):
    """The rules of a function."""

    begin: int
    size: int
    program: bytes = b""


class Cie(NamedTuple):
    """What FDEs share."""

    fdes: Sequence[Fde]
    program: bytes = X86_START
    version: int = 1
    augmentation: bytes = b"zR"
    return_register: int = 16
    code_factor: int = 1
    data_factor: int = -8
    wide: bool = False


def advance(distance: int) -> bytes:
    """`advance_loc` by up to 63 bytes."""
    return bytes([c.DW_CFA_advance_loc | distance])


def offset(register: int, factored: int) -> bytes:
    """`offset` of a register below 64."""
    return bytes([c.DW_CFA_offset | register]) + uleb(factored)


def block(operation: int, expression: bytes, register: int | None = None) -> bytes:
    """An instruction with an expression."""
    return bytes([operation]) + (uleb(register) if register is not None else b"") + uleb(len(expression)) + expression


def breg(register: int, distance: int) -> bytes:
    """The operation that pushes a register with an offset."""
    return bytes([c.DW_OP_breg0 + register]) + sleb(distance)


def frame_bytes(cies: Sequence[Cie], *, is_debug: bool = False) -> bytes:
    """The contents of .eh_frame, with absolute addresses of 8 bytes, or of .debug_frame."""
    out = bytearray()

    def entry(body: bytes, wide: bool) -> None:
        nonlocal out
        body += bytes(-(len(body) + 4) % 8)
        out += (b"\xff" * 4 + len(body).to_bytes(8, "little")) if wide else len(body).to_bytes(4, "little")
        out += body

    for cie in cies:
        start, width = len(out), 8 if cie.wide and is_debug else 4
        has_data = cie.augmentation.startswith(b"z")
        data = bytes(cie.augmentation.count(b"R"))  # DW_EH_PE_absptr
        body = (b"\xff" if is_debug else b"\0") * width + bytes([cie.version]) + cie.augmentation + b"\0"
        body += bytes([8, 0]) if cie.version == 4 else b""
        body += uleb(cie.code_factor) + sleb(cie.data_factor)
        body += bytes([cie.return_register]) if cie.version == 1 else uleb(cie.return_register)
        entry(body + (uleb(len(data)) + data if has_data else b"") + cie.program, cie.wide)
        for fde in cie.fdes:
            back = start if is_debug else len(out) + (12 if cie.wide else 4) - start
            body = back.to_bytes(width, "little") + fde.begin.to_bytes(8, "little") + fde.size.to_bytes(8, "little")
            entry(body + (uleb(0) if has_data else b"") + fde.program, cie.wide)
    return bytes(out)


def framed_file(
    cies: Sequence[Cie],
    code: bytes = b"\x90" * 0x1000,
    *,
    section: str = ".eh_frame",
    machine: int = X86_64,
    stubs: tuple[int, int] = (0, 0),
) -> bytes:
    """A file with code at CODE, mapped from its offset CODE_OFFSET on, and call frame information.

    `stubs` are vaddr and size of a .plt in the code.
    """
    frames = frame_bytes(cies, is_debug=section == ".debug_frame")
    flags = ALLOC if section == ".eh_frame" else 0
    sections = [
        Section(".text", code, flags=ALLOC | EXEC, address=CODE),
        *([Section(".plt", type=NOBITS, flags=ALLOC | EXEC, address=stubs[0], size=stubs[1])] if stubs[1] else []),
        Section(section, frames, flags=flags, address=FRAMES if flags else 0),
    ]
    return elf_file(sections, [Segment(CODE, len(code), offset=CODE_OFFSET)], machine=machine)
